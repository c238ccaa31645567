/** Those who wait for a run to close: told once, in the commit that closes it. */
import { WovyrError } from "@wovyr/sdk";

export type Waiter<T> = { readonly tell: (value: T) => void; readonly giveUp: (reason: WovyrError) => void };

/** A waiter, and what it waits for. */
type Place<T> = { readonly waiter: Waiter<T>; readonly shard: number | undefined; run: string };

export class Waiters<T> {
  readonly #byRun = new Map<string, Set<Place<T>>>();
  readonly #limit: number;
  #count = 0;

  /** `limit`: how many may wait at once. */
  constructor(limit: number) {
    this.#limit = limit;
  }

  get count(): number {
    return this.#count;
  }

  /** Returns a function that gives the wait up. Throws OVERLOADED when too many wait. `shard` is that of the run. */
  add(run: string, waiter: Waiter<T>, shard?: number): () => void {
    if (this.#count >= this.#limit)
      throw new WovyrError(`${this.#limit} callers wait for results, the limit. Try again soon, or poll with a shorter wait.`, {
        code: "OVERLOADED",
      });
    const place = { waiter, shard, run };
    this.#enter(place);
    this.#count += 1;
    return () => {
      const waiting = this.#byRun.get(place.run);
      if (waiting?.delete(place) !== true) return;
      this.#count -= 1;
      if (waiting.size === 0) this.#byRun.delete(place.run);
    };
  }

  /** Those who wait for one wait for another from now on. */
  move(from: string, to: string): void {
    const waiting = this.#byRun.get(from);
    if (waiting === undefined) return;
    this.#byRun.delete(from);
    for (const place of waiting) {
      place.run = to;
      this.#enter(place);
    }
  }

  #enter(place: Place<T>): void {
    const waiting = this.#byRun.get(place.run) ?? new Set();
    this.#byRun.set(place.run, waiting.add(place));
  }

  tell(run: string, value: T): void {
    const waiting = this.#byRun.get(run);
    if (waiting === undefined) return;
    this.#byRun.delete(run);
    for (const waiter of this.#taken(waiting)) waiter.tell(value);
  }

  /** Those who wait for it are told why it does not come. */
  refuse(run: string, reason: WovyrError): void {
    const waiting = this.#byRun.get(run);
    if (waiting === undefined) return;
    this.#byRun.delete(run);
    for (const waiter of this.#taken(waiting)) waiter.giveUp(reason);
  }

  /** What becomes of runs of these shards is not known here any more. */
  giveUpShards(shards: ReadonlySet<number>, reason: WovyrError): void {
    for (const [run, waiting] of [...this.#byRun])
      for (const { shard } of waiting)
        if (shard !== undefined && shards.has(shard)) {
          this.refuse(run, reason);
          break;
        }
  }

  /** Nobody is told any more. */
  giveUp(reason: WovyrError): void {
    const all = [...this.#byRun.values()].flatMap((waiting) => this.#taken(waiting));
    this.#byRun.clear();
    for (const waiter of all) waiter.giveUp(reason);
  }

  /** Those of a run, who are counted no more: giving the wait up afterwards changes nothing. */
  #taken(waiting: Set<Place<T>>): Waiter<T>[] {
    const taken = [...waiting].map(({ waiter }) => waiter);
    waiting.clear();
    this.#count -= taken.length;
    return taken;
  }
}
