/**
 * Deadlines of very many calls, of which hardly any is ever missed.
 *
 * 1. They fall on whole seconds, up to one before the time that was given, and one timer serves all: a call costs an entry in a set.
 */
import type { Clock } from "./ports/clock.ts";

type Waiting = { readonly most: number; readonly reject: (error: Error) => void };

const second = 1_000;

export class Deadlines {
  readonly #clock: Clock;
  readonly #late: (most: number) => Error;
  /** By the second at which they are late. */
  readonly #waiting = new Map<number, Set<Waiting>>();
  #ticking = false;

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
      if (!this.#ticking) this.#tick();
      Promise.resolve(answer).then(
        (value) => {
          due.delete(waiting);
          resolve(value);
        },
        (error: unknown) => {
          due.delete(waiting);
          reject(error);
        },
      );
    });
  }

  /** Once a second while there is anything to wait for. */
  #tick(): void {
    this.#ticking = true;
    this.#clock.wakeAt((Math.floor(this.#clock.now() / second) + 1) * second, () => {
      const now = this.#clock.now() / second;
      for (const [at, due] of this.#waiting) {
        if (due.size > 0 && at > now) continue;
        this.#waiting.delete(at);
        for (const { most, reject } of due) reject(this.#late(most));
      }
      if (this.#waiting.size > 0) this.#tick();
      else this.#ticking = false;
    });
  }
}
