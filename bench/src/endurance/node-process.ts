/** One orchestrator, until its parent goes or it is killed. */
import { createOrchestrator, postgresStore } from "@wovyr/server";
import { order } from "./workloads.ts";

const [database = "", port = "0"] = process.argv.slice(2);

process.on("disconnect", () => process.exit(0));
const orchestrator = await createOrchestrator({ workflows: [order], store: postgresStore(database), lease: "6s" });
const url = await orchestrator.listen({ port: Number(port) });
process.send?.({ url });
