/**
 * The store for tests and simulation, and the reference for the contract.
 *
 * 1. Opening a provider again gives the same data. Whoever opened it before is taken for dead: every shard is given up, epochs stay.
 * 2. Every call is done before it returns its promise: a caller that does not await sees calls applied in the order in which it made them.
 */
import {
  type ClaimRequest,
  type Flush,
  type FlushOutcome,
  type InboxMessage,
  type InstanceKey,
  type InstanceRow,
  type ListFilter,
  type ShardEpoch,
  type Store,
  type StoreOptions,
  type StoreProvider,
  StoreUnavailableError,
} from "../engine/ports/store.ts";
import { least } from "./memory/heap.ts";
import { type RunRecord, toRow } from "./memory/run-record.ts";
import { startSlot, Tables } from "./memory/tables.ts";
import { earliest } from "./memory/timer-queue.ts";
import { messageProblem } from "./storable.ts";
import { compareText } from "./text-order.ts";

/** A store that lives as long as the provider: open it again and the data is still there. */
export function memoryStore(): StoreProvider {
  const tables = new Tables();
  return {
    kind: "memory",
    shared: false,
    async open(options: StoreOptions): Promise<Store> {
      tables.shards.releaseAll();
      return new MemoryStore(tables, options.now);
    },
  };
}

class MemoryStore implements Store {
  readonly kind = "memory";
  readonly strikes = { kind: "none" } as const;
  readonly #tables: Tables;
  readonly #now: () => number;
  #closed = false;

  constructor(tables: Tables, now: () => number) {
    this.#tables = tables;
    this.#now = now;
  }

  async claimShards(request: ClaimRequest) {
    return this.#open().shards.claim(request, this.#now());
  }

  async renewShards(owner: string, shards: readonly ShardEpoch[], lease: number) {
    return this.#open().shards.renew(owner, shards, lease, this.#now());
  }

  async releaseShards(owner: string, shards: readonly ShardEpoch[]) {
    this.#open().shards.release(owner, shards);
  }

  async commit(flush: Flush): Promise<FlushOutcome> {
    return this.#open().commit(flush);
  }

  async post(messages: readonly InboxMessage[]) {
    const tables = this.#open();
    for (const message of messages) {
      const problem = messageProblem(message);
      if (problem !== undefined) throw problem;
    }
    for (const message of messages) tables.deliver(message);
  }

  async drop(messages: readonly (InstanceKey & { readonly message: string })[]) {
    const tables = this.#open();
    for (const message of messages) tables.remove(message);
  }

  async findInstance(tenant: string, id: string) {
    const record = this.#open().tenant(tenant).find(id);
    return record && toRow(record);
  }

  async getInstance(key: InstanceKey) {
    const record = this.#open().run(key);
    return record && toRow(record);
  }

  async findStartKey(tenant: string, workflow: string, key: string) {
    const found = this.#open().tenant(tenant).startKeys.get(startSlot(workflow, key));
    return found && { run: found.run, digest: found.digest };
  }

  async loadInstances(keys: readonly InstanceKey[]) {
    const tables = this.#open();
    return keys.flatMap((key) => {
      const record = tables.run(key);
      return record === undefined ? [] : [{ row: toRow(record), turns: [...record.turns] }];
    });
  }

  async readHistory(key: InstanceKey, fromSeq: number, limit: number) {
    const turns = this.#open().run(key)?.turns ?? [];
    let first = turns.length;
    while (first > 0) {
      const turn = turns[first - 1];
      if (turn === undefined || turn.seq + turn.count <= fromSeq) break;
      first -= 1;
    }
    return turns.slice(first, first + limit);
  }

  async readLastTurn(key: InstanceKey) {
    return this.#open().run(key)?.turns.at(-1);
  }

  async listInstances(tenant: string, filter: ListFilter, page: { after?: string; limit: number }) {
    const rows: InstanceRow[] = [];
    if (page.limit <= 0) return rows;
    for (const record of this.#open().tenant(tenant).newestFirst(page.after)) {
      if (!matches(record, filter)) continue;
      rows.push(toRow(record));
      if (rows.length >= page.limit) break;
    }
    return rows;
  }

  async listRunnable(shards: readonly number[], which: "busy" | "parked", page: { after?: InstanceKey; limit: number }) {
    const tables = this.#open();
    const { after } = page;
    function* candidates(): Generator<RunRecord> {
      for (const shard of new Set(shards)) {
        for (const record of tables.runnable(shard, which)) if (after === undefined || compareKeys(record, after) > 0) yield record;
      }
    }
    return least(candidates(), page.limit, compareKeys).map(toRow);
  }

  async listInbox(shards: readonly number[], page: { after?: number; limit: number }) {
    return this.#open().inbox.list(new Set(shards), page.after ?? 0, page.limit);
  }

  async listTimers(shards: readonly number[], until: number, limit: number) {
    const tables = this.#open();
    const queues = [...new Set(shards)].map((shard) => tables.timers(shard));
    return earliest(queues, until, limit);
  }

  async listStrikes() {
    this.#open();
    return [];
  }

  async clearStrikes() {
    this.#open();
  }

  async expireStartKeys(before: number) {
    for (const tenant of this.#open().tenants()) {
      for (const [slot, { at }] of tenant.startKeys) if (at < before) tenant.startKeys.delete(slot);
    }
  }

  async ping() {
    this.#open();
  }

  async close() {
    this.#closed = true;
  }

  #open(): Tables {
    if (this.#closed) throw new StoreUnavailableError("the store is closed");
    return this.#tables;
  }
}

function compareKeys(a: InstanceKey, b: InstanceKey): number {
  return compareText(a.run, b.run) || compareText(a.tenant, b.tenant);
}

function matches(record: RunRecord, filter: ListFilter): boolean {
  if (filter.id !== undefined && record.instance.id !== filter.id) return false;
  if (filter.workflow !== undefined && record.instance.workflow !== filter.workflow) return false;
  if (filter.statuses !== undefined && !filter.statuses.includes(record.status)) return false;
  if (filter.startedAfter !== undefined && record.createdAt <= filter.startedAfter) return false;
  if (filter.startedBefore !== undefined && record.createdAt >= filter.startedBefore) return false;
  for (const [name, wanted] of Object.entries(filter.attributes ?? {})) {
    const value = Object.hasOwn(record.attributes, name) ? record.attributes[name] : undefined;
    if (value !== wanted && !(Array.isArray(value) && value.includes(wanted))) return false;
  }
  return true;
}
