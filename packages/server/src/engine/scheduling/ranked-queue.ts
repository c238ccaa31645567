/** A heap: the least rank is first, and of equal ranks the one that came first. */

type Entry<T> = { readonly value: T; readonly rank: number; readonly turn: number };

export class RankedQueue<T> {
  readonly #entries: Entry<T>[] = [];
  #turn = 0;

  get size(): number {
    return this.#entries.length;
  }

  add(value: T, rank: number): void {
    this.#turn += 1;
    const entry = { value, rank, turn: this.#turn };
    const entries = this.#entries;
    let at = entries.length;
    entries.push(entry);
    while (at > 0) {
      const parent = (at - 1) >> 1;
      const above = entries[parent] as Entry<T>;
      if (!isBefore(entry, above)) break;
      entries[at] = above;
      at = parent;
    }
    entries[at] = entry;
  }

  take(): T | undefined {
    const entries = this.#entries;
    const first = entries[0];
    const last = entries.pop();
    if (first === undefined || last === undefined) return undefined;
    if (entries.length > 0) this.#sink(last);
    return first.value;
  }

  #sink(entry: Entry<T>): void {
    const entries = this.#entries;
    for (let at = 0; ; ) {
      let child = 2 * at + 1;
      const right = entries[child + 1];
      if (right !== undefined && isBefore(right, entries[child] as Entry<T>)) child += 1;
      const below = entries[child];
      if (below === undefined || !isBefore(below, entry)) {
        entries[at] = entry;
        return;
      }
      entries[at] = below;
      at = child;
    }
  }
}

const isBefore = <T>(a: Entry<T>, b: Entry<T>): boolean => a.rank < b.rank || (a.rank === b.rank && a.turn < b.turn);
