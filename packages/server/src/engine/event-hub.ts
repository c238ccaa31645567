/** Committed turns, for those who follow a run live. */
import type { HistoryFact } from "@wovyr/sdk/internal";

export type CommittedTurn = {
  readonly run: string;
  readonly seq: number;
  readonly at: number;
  readonly facts: readonly HistoryFact[];
};

type Listener = (turn: CommittedTurn | undefined) => void;

export class EventHub {
  readonly #byRun = new Map<string, Set<Listener>>();

  /** The listener hears every turn of the run, and undefined when there will be no more. */
  subscribe(run: string, listener: Listener): () => void {
    const listeners = this.#byRun.get(run) ?? new Set();
    listeners.add(listener);
    this.#byRun.set(run, listeners);
    return () => {
      listeners.delete(listener);
      if (listeners.size === 0 && this.#byRun.get(run) === listeners) this.#byRun.delete(run);
    };
  }

  /** Nothing is published any more. */
  close(): void {
    for (const listeners of [...this.#byRun.values()]) for (const listener of [...listeners]) listener(undefined);
  }

  publish(run: string, make: () => CommittedTurn): void {
    const listeners = this.#byRun.get(run);
    if (listeners === undefined) return;
    const turn = make();
    for (const listener of [...listeners]) listener(turn);
  }
}
