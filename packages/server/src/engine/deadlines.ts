/**
 * Deadlines of very many calls, of which hardly any is ever missed.
 *
 * 1. They fall on whole seconds, up to one before the time that was given, and one timer serves all: a call costs an entry in a set.
 * 2. There is a timer only while something is waited for: it would keep a process from ending.
 */
import type { Clock } from "./ports/clock.ts";

type Waiting = { readonly most: number; readonly reject: (error: Error) => void };

const second = 1_000;

export class Deadlines {
  readonly #clock: Clock;
  readonly #late: (most: number) => Error;
  /** By the second at which they are late. */
  readonly #waiting = new Map<number, Set<Waiting>>();
  #count = 0;
  #cancelTick: (() => void) | undefined;

  /** `late` makes the error of a call that was given so many milliseconds. */
  constructor(clock: Clock, late: (most: number) => Error) {
    this.#clock = clock;
    this.#late = late;
  }

  /** What a call comes to, or that it had no answer for so many milliseconds. */
  within<T>(most: number, answer: T): Promise<Awaited<T>> {
    return new Promise((resolve, reject) => {
      const at = Math.floor((this.#clock.now() + most) / second);
      const waiting: Waiting = { most, reject };
      let due = this.#waiting.get(at);
      if (due === undefined) {
        due = new Set();
        this.#waiting.set(at, due);
      }
      due.add(waiting);
      this.#count += 1;
      if (this.#cancelTick === undefined) this.#tick();
      Promise.resolve(answer).then(
        (value) => {
          this.#answered(due, waiting);
          resolve(value);
        },
        (error: unknown) => {
          this.#answered(due, waiting);
          reject(error);
        },
      );
    });
  }

  #answered(due: Set<Waiting>, waiting: Waiting): void {
    if (!due.delete(waiting)) return;
    this.#count -= 1;
    if (this.#count > 0) return;
    // What is left are empty sets.
    this.#waiting.clear();
    this.#cancelTick?.();
    this.#cancelTick = undefined;
  }

  /** Once a second while there is anything to wait for. */
  #tick(): void {
    this.#cancelTick = this.#clock.wakeAt((Math.floor(this.#clock.now() / second) + 1) * second, () => {
      this.#cancelTick = undefined;
      const now = this.#clock.now() / second;
      for (const [at, due] of this.#waiting) {
        if (due.size > 0 && at > now) continue;
        this.#waiting.delete(at);
        this.#count -= due.size;
        for (const { most, reject } of due) reject(this.#late(most));
        due.clear();
      }
      if (this.#count > 0) this.#tick();
    });
  }
}
