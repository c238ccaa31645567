/** An orchestrator for a family of rows, closed whatever happens. */
import { createOrchestrator, type Orchestrator, type OrchestratorOptions, postgresStore } from "@wovyr/server";
import { workflows } from "./workloads.ts";

export async function withOrchestrator<T>(
  options: Partial<OrchestratorOptions>,
  work: (orchestrator: Orchestrator) => Promise<T>,
): Promise<T> {
  const orchestrator = await createOrchestrator({ workflows, ...options });
  try {
    return await work(orchestrator);
  } finally {
    await orchestrator.close();
  }
}

export function withPostgres<T>(url: string | undefined, work: (orchestrator: Orchestrator) => Promise<T>): Promise<T> {
  if (url === undefined) throw new Error("this family of rows asked for too few databases");
  return withOrchestrator({ store: postgresStore(url) }, work);
}
