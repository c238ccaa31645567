/** The orchestrator's process: tells its parent where it listens, and closes when its parent goes. */
import { createOrchestrator, postgresStore } from "@wovyr/server";
import { workflowsWith } from "./wovyr-workflows.ts";

const orchestrator = await createOrchestrator({
  workflows: workflowsWith(async () => {}).all,
  store: postgresStore(process.argv[2] as string),
});
process.once("disconnect", () => void orchestrator.close().finally(() => process.exit(0)));
process.send?.(await orchestrator.listen({ port: 0 }));
