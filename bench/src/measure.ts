/** Repeating, timing, summing up. */
import { cpuMeter, type Meter } from "./cpu.ts";

export const runsOfRow = 3;

export type Throughput = {
  readonly perSecond: number;
  /** Microseconds of processor time for each unit: of this process, and of the database's. */
  readonly ours: number;
  readonly theirs: number | undefined;
};

/** Keeps `inFlight` calls going for about `seconds`, waits for the last ones, and counts all of them over the whole time. */
export async function throughput(
  options: { readonly inFlight: number; readonly seconds: number; readonly size: number; readonly meter: Meter },
  once: () => Promise<unknown>,
): Promise<Throughput> {
  let calls = 0;
  const cpu = cpuMeter(options.meter);
  const began = performance.now();
  const end = began + options.seconds * 1_000;
  const worker = async () => {
    while (performance.now() < end) {
      await once();
      calls += 1;
    }
  };
  await Promise.all(Array.from({ length: options.inFlight }, worker));
  const seconds = (performance.now() - began) / 1_000;
  const units = calls * options.size;
  const { ours, theirs } = cpu();
  return {
    perSecond: units / seconds,
    ours: (ours * 1e6) / units,
    theirs: theirs === undefined ? undefined : (theirs * 1e6) / units,
  };
}

/** Milliseconds of each of `count` calls, one after another, sorted. */
export async function latencies(count: number, once: () => Promise<unknown>): Promise<number[]> {
  const all: number[] = [];
  for (let at = 0; at < count; at += 1) {
    const began = performance.now();
    await once();
    all.push(performance.now() - began);
  }
  return all.sort((a, b) => a - b);
}

export function percentile(sorted: readonly number[], part: number): number {
  return sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * part))] ?? Number.NaN;
}

export function median(values: readonly number[]): number {
  return percentile(
    [...values].sort((a, b) => a - b),
    0.5,
  );
}

/** Runs `once` the number of times that a row is run. */
export async function repeat<T>(once: (run: number) => Promise<T>): Promise<T[]> {
  const all: T[] = [];
  for (let run = 0; run < runsOfRow; run += 1) all.push(await once(run));
  return all;
}
