/** An orchestrator in a process of its own, whose step waits for a word of its parent before it returns. */
import { once } from "node:events";
import { createOrchestrator, postgresStore } from "../../src/index.ts";
import { held } from "./held.ts";

const { url } = JSON.parse(process.argv[2] ?? "{}") as { url: string };
process.once("disconnect", () => process.kill(process.pid, "SIGKILL"));
const workflow = held("frozen", async () => {
  process.send?.("written");
  await once(process, "message");
  process.send?.("returns");
});
const { client } = await createOrchestrator({ workflows: [workflow], store: postgresStore(url), lease: 1_000 });
await client.start(workflow, undefined, { id: "held" });
