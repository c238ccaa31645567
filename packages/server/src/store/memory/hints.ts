/** Hints among engines that share one memory. */
import type { Hints } from "../../engine/ports/store.ts";

type Listener = (shards: readonly number[] | undefined) => void;

export class MemoryHints implements Hints {
  readonly healthy = true;
  readonly #listeners = new Set<Listener>();

  tell(shards: readonly number[] | undefined): void {
    for (const listener of [...this.#listeners]) listener(shards);
  }

  listen(heard: Listener): () => void {
    this.#listeners.add(heard);
    return () => void this.#listeners.delete(heard);
  }
}
