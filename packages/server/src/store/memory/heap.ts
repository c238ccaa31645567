/** A binary heap: `peek` and `pop` give the least item. */
export class Heap<T> {
  readonly #compare: (a: T, b: T) => number;
  #items: T[];

  constructor(compare: (a: T, b: T) => number, items: T[] = []) {
    this.#compare = compare;
    this.#items = items;
    for (let at = (items.length >> 1) - 1; at >= 0; at -= 1) this.#sink(at);
  }

  get size(): number {
    return this.#items.length;
  }

  /** The item at a place of the tree: its children are at `2 * place + 1` and `2 * place + 2` and not less than it. */
  at(place: number): T | undefined {
    return this.#items[place];
  }

  peek(): T | undefined {
    return this.#items[0];
  }

  push(item: T): void {
    const items = this.#items;
    let at = items.length;
    items.push(item);
    while (at > 0) {
      const parent = (at - 1) >> 1;
      const above = items[parent] as T;
      if (this.#compare(item, above) >= 0) break;
      items[at] = above;
      at = parent;
    }
    items[at] = item;
  }

  pop(): T | undefined {
    const items = this.#items;
    const least = items[0];
    const last = items.pop();
    if (items.length > 0 && last !== undefined) {
      items[0] = last;
      this.#sink(0);
    }
    return least;
  }

  /** Keeps only the items that `keep` accepts. */
  filter(keep: (item: T) => boolean): void {
    this.#items = this.#items.filter(keep);
    for (let at = (this.#items.length >> 1) - 1; at >= 0; at -= 1) this.#sink(at);
  }

  #sink(from: number): void {
    const items = this.#items;
    const item = items[from] as T;
    let at = from;
    for (;;) {
      let child = 2 * at + 1;
      if (child >= items.length) break;
      if (child + 1 < items.length && this.#compare(items[child + 1] as T, items[child] as T) < 0) child += 1;
      if (this.#compare(items[child] as T, item) >= 0) break;
      items[at] = items[child] as T;
      at = child;
    }
    items[at] = item;
  }
}

/** The least `limit` of the items, in order. */
export function least<T>(items: Iterable<T>, limit: number, compare: (a: T, b: T) => number): T[] {
  const kept = new Heap<T>((a, b) => compare(b, a));
  for (const item of items) {
    if (kept.size < limit) kept.push(item);
    else if (limit > 0 && compare(item, kept.peek() as T) < 0) {
      kept.pop();
      kept.push(item);
    }
  }
  const ordered: T[] = [];
  for (let item = kept.pop(); item !== undefined; item = kept.pop()) ordered.push(item);
  return ordered.reverse();
}
