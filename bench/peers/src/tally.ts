/** Counts workflow functions that have returned, for engines whose clients learn of results by asking again and again, which would be measured instead of the engine. */
const askAgainMilliseconds = 5;

export class Tally {
  #returned = 0;
  #waiting: { readonly until: number; readonly resolve: () => void } | undefined;

  get returned(): number {
    return this.#returned;
  }

  add(): void {
    this.#returned += 1;
    if (this.#waiting !== undefined && this.#returned >= this.#waiting.until) {
      this.#waiting.resolve();
      this.#waiting = undefined;
    }
  }

  /** Resolves when so many more have returned than `before`, and `completed` says that as many are recorded. */
  async reaches(before: number, count: number, completed: () => Promise<number>): Promise<void> {
    if (this.#returned < before + count) {
      await new Promise<void>((resolve) => {
        this.#waiting = { until: before + count, resolve };
      });
    }
    while ((await completed()) < count) await new Promise((resolve) => setTimeout(resolve, askAgainMilliseconds));
  }
}
