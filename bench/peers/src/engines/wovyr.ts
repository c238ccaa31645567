/** Wovyr in process: the client and the orchestrator share a process. Defaults throughout. */
import { createOrchestrator, postgresStore } from "@wovyr/server";
import type { Engine, EngineOptions } from "../engine.ts";
import { engineOver, workflowsWith } from "./wovyr-workflows.ts";

export async function start({ database, lastStep }: EngineOptions): Promise<Engine> {
  const { long, all } = workflowsWith(lastStep);
  const orchestrator = await createOrchestrator({ workflows: all, store: postgresStore(database) });
  const { client } = orchestrator;
  return {
    ...engineOver(client),
    async startLong(steps) {
      await client.start(long, steps);
    },
    close: () => orchestrator.close(),
  };
}
