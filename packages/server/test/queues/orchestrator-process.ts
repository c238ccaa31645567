/** An orchestrator in a process of its own; it tells its parent its URL, and ends with it. */
import { createOrchestrator, postgresStore } from "../../src/index.ts";
import { many, single } from "./work.ts";

const { database, port } = JSON.parse(process.argv[2] ?? "{}") as { readonly database: string; readonly port: number };

process.once("disconnect", () => process.kill(process.pid, "SIGKILL"));
const orchestrator = await createOrchestrator({ workflows: [single, many], store: postgresStore(database), lease: "2s" });
process.send?.(await orchestrator.listen({ port }));
