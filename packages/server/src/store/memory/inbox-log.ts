/**
 * Every message under way, in the order in which it was posted.
 *
 * 1. Positions rise and are never used twice.
 * 2. A removed message leaves a hole; holes are closed when they are half of the log.
 */
import type { InboxMessage } from "../../engine/ports/store.ts";

export type Letter = InboxMessage & {
  readonly position: number;
  gone: boolean;
};

export class InboxLog {
  #letters: Letter[] = [];
  #last = 0;
  #gone = 0;

  add(message: InboxMessage): Letter {
    const { tenant, run, shard, message: id, fact } = message;
    this.#last += 1;
    const letter = {
      tenant,
      run,
      shard,
      message: id,
      fact,
      position: this.#last,
      gone: false,
    };
    this.#letters.push(letter);
    return letter;
  }

  remove(letter: Letter): void {
    letter.gone = true;
    this.#gone += 1;
    if (this.#gone > 64 && this.#gone * 2 > this.#letters.length) {
      this.#letters = this.#letters.filter((each) => !each.gone);
      this.#gone = 0;
    }
  }

  list(shards: ReadonlySet<number>, after: number, limit: number): (InboxMessage & { position: number })[] {
    const found: (InboxMessage & { position: number })[] = [];
    for (let at = this.#firstAfter(after); at < this.#letters.length && found.length < limit; at += 1) {
      const letter = this.#letters[at];
      if (letter === undefined || letter.gone || !shards.has(letter.shard)) continue;
      const { gone: _, ...row } = letter;
      found.push(row);
    }
    return found;
  }

  #firstAfter(position: number): number {
    let low = 0;
    let high = this.#letters.length;
    while (low < high) {
      const middle = (low + high) >> 1;
      if ((this.#letters[middle]?.position ?? 0) > position) high = middle;
      else low = middle + 1;
    }
    return low;
  }
}
