/** The watchdog's thread (watchdog.ts). It stays idle but for one look in a while. */
import { writeSync } from "node:fs";
import { workerData } from "node:worker_threads";
import { recordStrike } from "../store/strike-sink.ts";
import { headerBytes, lengthCell, turnCell, type WatchdogData } from "./watchdog.ts";

const exitCode = 70;
const looksPerTimeout = 10;
const recordTimeout = 5_000;

const { shared, strikes, turnTimeout } = workerData as WatchdogData;
const cells = new Int32Array(shared, 0, 2);
const text = new Uint8Array(shared, headerBytes);
let seen = 0;
let seenAt = performance.now();

setInterval(() => {
  const number = Atomics.load(cells, turnCell);
  if (number === 0 || number !== seen) {
    seen = number;
    seenAt = performance.now();
    return;
  }
  if (performance.now() - seenAt >= turnTimeout) void strike();
}, turnTimeout / looksPerTimeout);

async function strike(): Promise<void> {
  seenAt = Number.POSITIVE_INFINITY;
  const described = new TextDecoder().decode(text.slice(0, Atomics.load(cells, lengthCell)));
  const [tail = "0", tenant = "", run = "", workflow = ""] = described.split("\n");
  writeSync(
    2,
    `A turn of workflow "${workflow}" (run ${run}) has not yielded for ${turnTimeout} ms and blocks this process. Look for a loop without \`yield*\` in its code. The process exits with code ${exitCode}; after the third time at the same place the run is parked.\n`,
  );
  const late = new Promise<void>((resolve) => setTimeout(resolve, recordTimeout));
  await Promise.race([
    late,
    recordStrike(strikes, { tenant, run, workflow, tail: Number(tail) }).catch((error: unknown) => {
      writeSync(2, `The strike against run ${run} could not be recorded: ${String(error)}\n`);
    }),
  ]);
  // In a worker thread process.exit ends only the thread.
  process.kill(process.pid, "SIGABRT");
}
