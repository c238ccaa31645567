/**
 * Engines that were stopped where they stood, while another took over.
 *
 * 1. What one of them writes after its shards were taken is a trespass: it is counted from the moment of the takeover.
 */

import type { Store } from "@wovyr/server/internal";
import { bareStore } from "../faults/store-calls.ts";
import { allRows } from "./all-rows.ts";
import type { Session } from "./session.ts";

/** An engine that was stopped where it stood, while another took over. */
export type FrozenEngine = {
  /** Lets it go on; resolves when it has done what it still does. What it writes that it may not write is noted as trouble. */
  thaw(): Promise<void>;
};

export class Zombies {
  /** With the turns that each had written when another took over. */
  readonly #written = new Map<Session, number>();

  add(session: Session): void {
    this.#written.set(session, Number.POSITIVE_INFINITY);
  }

  get moving(): boolean {
    for (const zombie of this.#written.keys()) if (zombie.moving) return true;
    return false;
  }

  /** Another engine is about to take the shards. */
  async takenOver(): Promise<void> {
    for (const [zombie, turns] of this.#written)
      if (turns === Number.POSITIVE_INFINITY && zombie.store !== undefined)
        this.#written.set(zombie, await turnsOf(bareStore(zombie.store), zombie.node));
  }

  /** What one has written that it may not have. */
  async trespass(session: Session, store: Store): Promise<string | undefined> {
    const written = (await turnsOf(store, session.node)) - (this.#written.get(session) ?? 0);
    return written > 0 ? `node ${session.node} wrote ${written} turns after its shards had been taken` : undefined;
  }

  crash(): void {
    for (const zombie of this.#written.keys()) zombie.crash();
  }
}

/** Turns that a node has written. */
async function turnsOf(store: Store, node: string): Promise<number> {
  let count = 0;
  for (const row of await store.listInstances("default", {}, { limit: allRows }))
    for (const turn of await store.readHistory(row, 1, allRows)) if (turn.node === node) count += 1;
  return count;
}
