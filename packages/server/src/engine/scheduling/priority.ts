/**
 * The most urgent first.
 *
 * 1. Each step of priority is worth `ageing`: one that has waited so long comes before those of the next higher priority that come now. So nobody waits for
 *    ever: what comes later by three times `ageing` overtakes nothing.
 */
import type { Duration, Priority } from "@wovyr/sdk";
import { checkOptions, milliseconds } from "@wovyr/sdk/internal";
import { RankedQueue } from "./ranked-queue.ts";
import type { SchedulingQueue, SchedulingStrategy, WaitingAttempt } from "./strategy.ts";

export type PriorityOptions = {
  /** How long one waits until it is as urgent as the next higher priority; default 1 minute. */
  readonly ageing?: Duration | undefined;
};

const steps: Readonly<Record<Priority, number>> = { critical: 0, high: 1, normal: 2, low: 3 };

class PriorityQueue implements SchedulingQueue {
  readonly #ageing: number;
  readonly #waiting = new RankedQueue<WaitingAttempt>();

  constructor(ageing: number) {
    this.#ageing = ageing;
  }

  get size(): number {
    return this.#waiting.size;
  }

  add(waiting: WaitingAttempt): void {
    this.#waiting.add(waiting, waiting.since + steps[waiting.priority] * this.#ageing);
  }

  take(): WaitingAttempt | undefined {
    return this.#waiting.take();
  }
}

export function priority(options: PriorityOptions = {}): SchedulingStrategy {
  checkOptions(options, ["ageing"], "priority()");
  const ageing = milliseconds(options.ageing ?? "1m", "ageing");
  return Object.freeze({ name: "priority", createQueue: () => new PriorityQueue(ageing) });
}
