/**
 * Time that moves only when it is told to.
 *
 * 1. `now` never goes back.
 * 2. Wake-ups are called in order of their time, ties in the order in which they were asked for, each in a macrotask of its own batch: never from within
 *    the call that asked for it.
 */
import type { Clock } from "@wovyr/server/internal";

type WakeUp = { readonly at: number; readonly order: number; readonly wake: () => void };

export class VirtualClock implements Clock {
  #now: number;
  #order = 0;
  /** By time, then by order. */
  readonly #wakeUps: WakeUp[] = [];
  #firing = false;

  constructor(start: number) {
    this.#now = start;
  }

  now(): number {
    return this.#now;
  }

  wakeAt(at: number, wake: () => void): () => void {
    const wakeUp: WakeUp = { at, order: this.#order++, wake };
    this.#insert(wakeUp);
    if (at <= this.#now) this.#fireSoon();
    return () => this.#remove(wakeUp);
  }

  /** The time of the earliest wake-up; undefined when there is none. */
  get next(): number | undefined {
    return this.#wakeUps[0]?.at;
  }

  /** Whether something is due and has not been called yet. */
  get due(): boolean {
    const next = this.#wakeUps[0];
    return next !== undefined && next.at <= this.#now;
  }

  /** Moves on to `at` (a time that has passed changes nothing); what is due by then is called in the next macrotask. */
  advanceTo(at: number): void {
    if (at > this.#now) this.#now = at;
    if (this.due) this.#fireSoon();
  }

  /** Moves on by milliseconds. */
  advance(by: number): void {
    this.advanceTo(this.#now + by);
  }

  #fireSoon(): void {
    if (this.#firing) return;
    this.#firing = true;
    setImmediate(() => {
      this.#firing = false;
      const last = this.#order;
      for (let next = this.#wakeUps[0]; next !== undefined && next.at <= this.#now && next.order < last; next = this.#wakeUps[0]) {
        this.#wakeUps.shift();
        next.wake();
      }
      if (this.due) this.#fireSoon();
    });
  }

  #insert(wakeUp: WakeUp): void {
    let low = 0;
    let high = this.#wakeUps.length;
    while (low < high) {
      const middle = (low + high) >> 1;
      if ((this.#wakeUps[middle] as WakeUp).at <= wakeUp.at) low = middle + 1;
      else high = middle;
    }
    this.#wakeUps.splice(low, 0, wakeUp);
  }

  #remove(wakeUp: WakeUp): void {
    const index = this.#wakeUps.indexOf(wakeUp);
    if (index >= 0) this.#wakeUps.splice(index, 1);
  }
}
