/** A worker in a process of its own; it tells its parent when it works, and ends with it. */
import { createWorker } from "@wovyr/sdk/worker";
import { recorded } from "./work.ts";

type Options = {
  readonly url: string;
  readonly id: string;
  readonly record: string;
  readonly lease: number;
  readonly concurrency?: number;
};
const { url, id, record, lease, concurrency } = JSON.parse(process.argv[2] ?? "{}") as Options;

process.once("disconnect", () => process.kill(process.pid, "SIGKILL"));
const worker = await createWorker({ url, id, activities: [recorded(record, id)], lease, concurrency });
process.once("SIGTERM", () => void worker.stop({ grace: 0 }).then(() => process.disconnect()));
process.send?.("working");
await worker.run();
