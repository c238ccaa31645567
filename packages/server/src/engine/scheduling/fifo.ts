/** First in, first out: what is used when nobody says anything. */
import type { SchedulingQueue, SchedulingStrategy, WaitingAttempt } from "./strategy.ts";

/** What was taken is let go of when it is more than this, and more than half. */
const slack = 4_096;

class FifoQueue implements SchedulingQueue {
  #waiting: WaitingAttempt[] = [];
  #head = 0;

  get size(): number {
    return this.#waiting.length - this.#head;
  }

  add(waiting: WaitingAttempt): void {
    this.#waiting.push(waiting);
  }

  take(): WaitingAttempt | undefined {
    const next = this.#waiting[this.#head];
    if (next === undefined) {
      this.#waiting = [];
      this.#head = 0;
      return undefined;
    }
    this.#head += 1;
    if (this.#head > slack && this.#head * 2 > this.#waiting.length) {
      this.#waiting = this.#waiting.slice(this.#head);
      this.#head = 0;
    }
    return next;
  }
}

const strategy: SchedulingStrategy = Object.freeze({ name: "fifo", createQueue: () => new FifoQueue() });

export const fifo = (): SchedulingStrategy => strategy;
