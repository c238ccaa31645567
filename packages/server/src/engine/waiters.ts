/** Those who wait for a run to close: told once, in the commit that closes it. */
import { WovyrError } from "@wovyr/sdk";

export class Waiters<T> {
  readonly #byRun = new Map<string, Set<(value: T) => void>>();
  readonly #limit: number;
  #count = 0;

  /** `limit`: how many may wait at once. */
  constructor(limit: number) {
    this.#limit = limit;
  }

  get count(): number {
    return this.#count;
  }

  /** Returns a function that gives the wait up. Throws OVERLOADED when too many wait. */
  add(run: string, tell: (value: T) => void): () => void {
    if (this.#count >= this.#limit)
      throw new WovyrError(`${this.#limit} callers wait for results, the limit. Try again soon, or poll with a shorter wait.`, {
        code: "OVERLOADED",
      });
    const waiting = this.#byRun.get(run) ?? new Set();
    waiting.add(tell);
    this.#byRun.set(run, waiting);
    this.#count += 1;
    return () => {
      if (!waiting.delete(tell)) return;
      this.#count -= 1;
      if (waiting.size === 0 && this.#byRun.get(run) === waiting) this.#byRun.delete(run);
    };
  }

  tell(run: string, value: T): void {
    const waiting = this.#byRun.get(run);
    if (waiting === undefined) return;
    this.#byRun.delete(run);
    this.#count -= waiting.size;
    for (const tell of [...waiting]) tell(value);
  }
}
