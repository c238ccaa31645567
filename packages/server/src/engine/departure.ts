/** The end of a node's time as the owner of something. Any number of calls hear of it; an AbortSignal with more than ten of them is taken for a leak. */
export class Departure {
  readonly #listeners = new Set<() => void>();
  #over = false;

  get over(): boolean {
    return this.#over;
  }

  /** The listener is called once, now if it is over. Returns what takes it away. */
  listen(listener: () => void): () => void {
    if (this.#over) listener();
    else this.#listeners.add(listener);
    return () => void this.#listeners.delete(listener);
  }

  end(): void {
    if (this.#over) return;
    this.#over = true;
    for (const listener of this.#listeners) listener();
    this.#listeners.clear();
  }
}
