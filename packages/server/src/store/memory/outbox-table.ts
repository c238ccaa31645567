/**
 * What is on its way to other databases, in the order in which it was written.
 *
 * 1. Positions rise and are never used twice.
 */
import type { OutboxKey, OutboxRow, OutboxWrite } from "../../engine/ports/databases.ts";
import type { RunAddress } from "../../engine/ports/store.ts";

export class OutboxTable {
  readonly #rows = new Map<string, OutboxRow>();
  #last = 0;

  add({ tenant, run, shard }: RunAddress & { readonly shard: number }, write: OutboxWrite): void {
    this.#last += 1;
    const row = { ...write, tenant, run, shard, position: this.#last };
    this.#rows.set(nameOf(row), row);
  }

  list(target: number, shards: ReadonlySet<number>, after: number, limit: number): readonly OutboxRow[] {
    const found: OutboxRow[] = [];
    for (const row of this.#rows.values()) {
      if (found.length >= limit) break;
      if (row.target === target && row.position > after && shards.has(row.shard)) found.push(row);
    }
    return found;
  }

  remove(key: OutboxKey): void {
    this.#rows.delete(nameOf(key));
  }
}

const nameOf = ({ tenant, run, name, target }: OutboxKey): string => JSON.stringify([tenant, run, name, target]);
