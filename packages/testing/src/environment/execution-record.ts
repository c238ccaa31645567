/** What really happened: counts by key, outside of any engine, so that neither crash nor replay touches them. */
export class ExecutionRecord {
  readonly #counts = new Map<string, number>();
  /** Every key in the order in which it was noted. */
  readonly order: string[] = [];

  /** Notes one execution; returns how many of this key there are now. */
  note(key: string): number {
    const count = this.count(key) + 1;
    this.#counts.set(key, count);
    this.order.push(key);
    return count;
  }

  count(key: string): number {
    return this.#counts.get(key) ?? 0;
  }

  get total(): number {
    return this.order.length;
  }

  entries(): IterableIterator<[string, number]> {
    return this.#counts.entries();
  }
}
