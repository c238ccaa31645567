/**
 * The earliest deadline first: that of all attempts of the activity (scheduleToClose), or of the run, whichever ends first.
 *
 * 1. What has none counts as if it had one `allowance` after it was due. So nobody waits for ever.
 */
import type { Duration } from "@wovyr/sdk";
import { checkOptions, milliseconds } from "@wovyr/sdk/internal";
import { RankedQueue } from "./ranked-queue.ts";
import type { SchedulingQueue, SchedulingStrategy, WaitingAttempt } from "./strategy.ts";

export type DeadlineFirstOptions = {
  /** What those without a deadline are given; default 1 hour. */
  readonly allowance?: Duration | undefined;
};

class DeadlineQueue implements SchedulingQueue {
  readonly #allowance: number;
  readonly #waiting = new RankedQueue<WaitingAttempt>();

  constructor(allowance: number) {
    this.#allowance = allowance;
  }

  get size(): number {
    return this.#waiting.size;
  }

  add(waiting: WaitingAttempt): void {
    this.#waiting.add(waiting, waiting.deadline ?? waiting.since + this.#allowance);
  }

  take(): WaitingAttempt | undefined {
    return this.#waiting.take();
  }
}

export function deadlineFirst(options: DeadlineFirstOptions = {}): SchedulingStrategy {
  checkOptions(options, ["allowance"], "deadlineFirst()");
  const allowance = milliseconds(options.allowance ?? "1h", "allowance");
  return Object.freeze({ name: "deadlineFirst", createQueue: () => new DeadlineQueue(allowance) });
}
