/** Committed turns, for those who follow a run live. */
import type { HistoryFact } from "@wovyr/sdk/internal";

export type CommittedTurn = {
  readonly run: string;
  readonly seq: number;
  readonly at: number;
  readonly facts: readonly HistoryFact[];
};

type Listener = (turn: CommittedTurn | undefined) => void;

type Followed = { readonly shard: number; readonly listeners: Set<Listener> };

export class EventHub {
  readonly #byRun = new Map<string, Followed>();

  /** The listener hears every turn of the run, and undefined when there will be no more. */
  subscribe(run: string, shard: number, listener: Listener): () => void {
    const followed = this.#byRun.get(run) ?? { shard, listeners: new Set() };
    const { listeners } = followed;
    listeners.add(listener);
    this.#byRun.set(run, followed);
    return () => {
      listeners.delete(listener);
      if (listeners.size === 0 && this.#byRun.get(run) === followed) this.#byRun.delete(run);
    };
  }

  /** Nothing of these shards is published here any more. */
  endShards(shards: ReadonlySet<number>): void {
    for (const { shard, listeners } of [...this.#byRun.values()])
      if (shards.has(shard)) for (const listener of [...listeners]) listener(undefined);
  }

  /** Nothing is published any more. */
  close(): void {
    for (const { listeners } of [...this.#byRun.values()]) for (const listener of [...listeners]) listener(undefined);
  }

  publish(run: string, make: () => CommittedTurn): void {
    const followed = this.#byRun.get(run);
    if (followed === undefined) return;
    const turn = make();
    for (const listener of [...followed.listeners]) listener(turn);
  }
}
