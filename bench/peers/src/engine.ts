/**
 * What every engine of the comparison does, each in its own way.
 *
 * 1. Steps cost nothing and return the time at which they ran. A sequence returns the milliseconds between its first step and its last.
 * 2. A run counts as done when the engine's own client, or its database, says that it is recorded as completed.
 * 3. `close` leaves no process behind. What an engine starts stays in the process group of the engine's process, which is ended as a whole when that fails.
 */
export type WorkloadName = "sequence" | "fanOut";

export type WaitingRun = {
  /** Tells the run what it waits for; resolves when its result is known. */
  deliver(): Promise<void>;
};

export type Engine = {
  /** One run from the call to its result, as the published client tells it. */
  run(workload: WorkloadName, size: number): Promise<number>;
  /** So many runs at once. */
  runAll(workload: WorkloadName, size: number, count: number): Promise<void>;
  /** A run that waits for an event, or will within a moment. */
  startWaiting(): Promise<WaitingRun>;
  /** A run of so many steps one after another, and a last one that calls `lastStep`. Resolves when it is recorded as started. */
  startLong(steps: number): Promise<void>;
  close(): Promise<void>;
};

export type EngineOptions = {
  /** A database of this engine's own. */
  readonly database: string;
  /** A directory of this engine's own, on a disk. */
  readonly directory: string;
  readonly lastStep: () => Promise<void>;
};

/** What a file in `engines/` exports. */
export type EngineModule = { readonly start: (options: EngineOptions) => Promise<Engine> };

/** What a step returns: comparable between the processes of one machine, in milliseconds. */
export function timeOfDay(): number {
  return performance.timeOrigin + performance.now();
}

/** At most `limit` calls under way. */
export async function bounded(limit: number, count: number, once: () => Promise<unknown>): Promise<void> {
  let left = count;
  const lane = async () => {
    while (left > 0) {
      left -= 1;
      await once();
    }
  };
  await Promise.all(Array.from({ length: Math.min(limit, count) }, lane));
}
