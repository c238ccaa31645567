/**
 * Calls that are made as one: while one is under way, what comes gathers for the next.
 *
 * 1. One call at most is under way, with `most` items at most; items go in the order in which they came.
 * 2. When a call fails, all its items fail with it.
 */
export class Gathered<Item, Result> {
  readonly #call: (items: readonly Item[]) => Promise<readonly Result[]>;
  readonly #most: number;
  #waiting: { readonly item: Item; readonly resolve: (result: Result) => void; readonly reject: (error: unknown) => void }[] = [];
  #working = false;

  constructor(call: (items: readonly Item[]) => Promise<readonly Result[]>, most: number) {
    this.#call = call;
    this.#most = most;
  }

  add(item: Item): Promise<Result> {
    return new Promise((resolve, reject) => {
      this.#waiting.push({ item, resolve, reject });
      if (!this.#working) void this.#work();
    });
  }

  async #work(): Promise<void> {
    this.#working = true;
    while (this.#waiting.length > 0) {
      const batch = this.#waiting.splice(0, this.#most);
      try {
        const results = await this.#call(batch.map(({ item }) => item));
        for (const [index, { resolve }] of batch.entries()) resolve(results[index] as Result);
      } catch (error) {
        for (const { reject } of batch) reject(error);
      }
    }
    this.#working = false;
  }
}
