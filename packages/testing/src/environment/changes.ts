/** Tells those who wait that something has changed: cheap where nobody waits. */
export class Changes {
  #next: Promise<void> | undefined;
  #tell = () => {};

  /** Resolves at the next change. */
  get next(): Promise<void> {
    this.#next ??= new Promise<void>((resolve) => {
      this.#tell = resolve;
    });
    return this.#next;
  }

  tell(): void {
    if (this.#next === undefined) return;
    this.#next = undefined;
    this.#tell();
  }
}
