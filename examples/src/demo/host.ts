/** The process that is killed: an orchestrator for the order example on an embedded store. It ends with the process that started it. */
import { setTimeout } from "node:timers/promises";
import { consoleLog, createOrchestrator, pgliteStore } from "@wovyr/server";
import { order, ship } from "../order.ts";
import { onDeed } from "../shop.ts";
import { note } from "./ledger.ts";

const [directory = "", port = "", ledger = "", stuckOn] = process.argv.slice(2);

onDeed(async (deed) => {
  note(ledger, deed, "began");
  // Whoever answers never, so that the kill is sure to find this deed under way.
  if (stuckOn === `${deed.what} ${deed.order}`) await new Promise(() => {});
  await setTimeout(30);
  note(ledger, deed, "done");
});

const orchestrator = await createOrchestrator({ workflows: [order, ship], store: pgliteStore(directory), log: consoleLog("error") });
await orchestrator.listen({ port: Number(port) });

async function close(): Promise<void> {
  await orchestrator.close();
  process.exit(0);
}
process.once("SIGTERM", close);
process.once("disconnect", close);
process.send?.("ready");
