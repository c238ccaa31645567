/** The watchdog's thread (watchdog.ts). It stays idle but for one look in a while. */
import { writeSync } from "node:fs";
import { workerData } from "node:worker_threads";
import { recordStrike } from "../store/strike-sink.ts";
import { headerBytes, nameBytes, tailCell, turnCell, type WatchdogData } from "./watchdog.ts";

const looksPerTimeout = 10;
const recordTimeout = 5_000;

const { shared, strikes, turnTimeout } = workerData as WatchdogData;
const cells = new Int32Array(shared, 0, 2);
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
  const [run, tenant, workflow] = [nameAt(0), nameAt(1), nameAt(2)];
  const tail = cells[tailCell] as number;
  writeSync(
    2,
    `A turn of workflow "${workflow}" (run ${run}) has not yielded for ${turnTimeout} ms and blocks this process. Look for a loop without \`yield*\` in its code. The process is ended (SIGABRT); a run that has done this three times is parked.\n`,
  );
  const late = new Promise<void>((resolve) => setTimeout(resolve, recordTimeout));
  await Promise.race([
    late,
    recordStrike(strikes, { tenant, run, workflow, tail }).catch((error: unknown) => {
      writeSync(2, `The strike against run ${run} could not be recorded: ${String(error)}\n`);
    }),
  ]);
  // In a worker thread process.exit ends only the thread.
  process.kill(process.pid, "SIGABRT");
}

function nameAt(place: number): string {
  const bytes = new Uint8Array(shared, headerBytes + place * nameBytes, nameBytes);
  return String.fromCharCode(...bytes.subarray(1, 1 + (bytes[0] as number)));
}
