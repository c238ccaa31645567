/** An orchestrator that makes transfers, in a process of its own; it says when the given number of them has ended. */
import { createOrchestrator, postgresStore } from "../../src/index.ts";
import { transfer } from "./transfers.ts";

const { url, count } = JSON.parse(process.argv[2] ?? "{}") as { url: string; count: number };
process.once("disconnect", () => process.kill(process.pid, "SIGKILL"));
process.on("unhandledRejection", (error) => {
  console.error("unhandledRejection", error);
  process.exit(99);
});

const { client } = await createOrchestrator({
  workflows: [transfer],
  store: postgresStore(url, { transactions: { max: 8 } }),
  turnTimeout: false,
  lease: 2_000,
  log: { debug() {}, info() {}, warn() {}, error: console.error },
});
process.send?.("ready");
/** On a busy machine the shards are taken late. */
const started = async (id: string) => {
  for (;;)
    try {
      return await client.start(transfer, undefined, { id, idempotencyKey: id });
    } catch (error) {
      if ((error as { retryable?: boolean }).retryable !== true) throw error;
      await new Promise((resolve) => setTimeout(resolve, 50));
    }
};
const one = async (index: number) => {
  const id = `transfer-${index}`;
  const run = await started(id);
  if (index % 5 === 0) {
    await new Promise((resolve) => setTimeout(resolve, index % 70));
    await run.cancel({ mode: index % 10 === 0 ? "immediate" : "graceful" }).catch(() => {});
  }
  await run.result().catch(() => {});
};
await Promise.all(Array.from({ length: count }, (_, index) => one(index)));
process.send?.("done");
