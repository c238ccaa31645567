/** Tells outside of a run that it has come to a place, in the process that runs it. */
export class Arrivals<T = void> {
  readonly #waiting = new Map<string, (value: T) => void>();

  /** Resolves with what the run of this key brings. */
  of(key: string): Promise<T> {
    return new Promise((resolve) => this.#waiting.set(key, resolve));
  }

  /** A run may come by more than once: what is run again counts no more. */
  arrive(key: string, value: T): void {
    this.#waiting.get(key)?.(value);
    this.#waiting.delete(key);
  }
}
