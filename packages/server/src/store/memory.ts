/**
 * The store for tests and simulation, and the reference for the contract.
 *
 * 1. Opening a provider again gives the same data. Whoever opened it before is taken for dead: every shard is given up, epochs stay. One that is shared
 *    may be open many times, by as many engines of one process.
 * 2. Every call is done before it returns its promise: a caller that does not await sees calls applied in the order in which it made them.
 */
import { checkFlag, checkOptions } from "@wovyr/sdk/internal";
import type { AdmissionAsk } from "../engine/ports/admissions.ts";
import type { StorePart } from "../engine/ports/databases.ts";
import type { PermitAsk, TokenAsk } from "../engine/ports/limits.ts";
import {
  type Beat,
  type DeadLetter,
  type DeadLetterFilter,
  type DeadLetterPage,
  type EffectKey,
  type Flush,
  type FlushOutcome,
  type Heartbeat,
  type Hints,
  type InboxMessage,
  type InstanceKey,
  type InstanceRow,
  type ListFilter,
  type Publication,
  type RunAddress,
  type RunImport,
  type StepOutcome,
  type Store,
  type StoreOptions,
  type StoreProvider,
  StoreUnavailableError,
} from "../engine/ports/store.ts";
import type { TaskStore } from "../engine/ports/tasks.ts";
import { isLater } from "./latest-heartbeats.ts";
import { least } from "./memory/heap.ts";
import { MemoryHints } from "./memory/hints.ts";
import { memoryPart } from "./memory/part.ts";
import { type RunRecord, toRow } from "./memory/run-record.ts";
import { startSlot, Tables } from "./memory/tables.ts";
import { memoryTasks } from "./memory/tasks.ts";
import { earliest } from "./memory/timer-queue.ts";
import { checkImport, checkPublication, checkStorable, messageProblem } from "./storable.ts";
import { compareText } from "./text-order.ts";

/** A store that lives as long as the provider: open it again and the data is still there. */
export function memoryStore(options: { readonly shared?: boolean | undefined } = {}): StoreProvider {
  checkOptions(options, ["shared"], "memoryStore");
  const { shared = false } = options;
  checkFlag(shared, "shared of memoryStore");
  const tables = new Tables();
  const hints = shared ? new MemoryHints() : undefined;
  return {
    kind: "memory",
    shared,
    async open(options: StoreOptions): Promise<Store> {
      if (!shared) tables.shards.releaseAll();
      return new MemoryStore(tables, options.now, hints);
    },
  };
}

class MemoryStore implements Store {
  readonly kind = "memory";
  readonly strikes = { kind: "none" } as const;
  readonly #tables: Tables;
  readonly #now: () => number;
  readonly hints: Hints | undefined;
  #closed = false;

  readonly tasks: TaskStore;
  readonly part: StorePart;

  constructor(tables: Tables, now: () => number, hints: Hints | undefined) {
    this.#tables = tables;
    this.#now = now;
    this.hints = hints;
    this.tasks = memoryTasks(() => this.#open(), now);
    this.part = memoryPart("memory", () => this.#open());
  }

  async beat(beat: Beat) {
    const { group, node, url, release } = beat;
    checkStorable({ group, node, url, release });
    return this.#open().shards.beat(beat, this.#now());
  }

  async leave(group: string, node: string) {
    this.#open().shards.leave(group, node);
  }

  async commit(flush: Flush): Promise<FlushOutcome> {
    return this.#open().commit(flush, this.#now());
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

  async publish(publication: Publication) {
    checkPublication(publication);
    return this.#open().publish(publication);
  }

  async expirePublications(before: number) {
    this.#open().publications.expire(before);
  }

  async importRun(run: RunImport) {
    checkImport(run);
    return this.#open().importRun(run);
  }

  async deleteRuns(keys: readonly InstanceKey[]) {
    return this.#open().deleteRuns(keys);
  }

  async listClosedBefore(before: number, page: { after?: InstanceKey; limit: number }) {
    const rows: InstanceRow[] = [];
    if (page.limit <= 0) return rows;
    for (const record of this.#open().closedBefore(before, page.after)) {
      rows.push(toRow(record));
      if (rows.length >= page.limit) break;
    }
    return rows;
  }

  async addDeadLetter(letter: DeadLetter & RunAddress) {
    const { tenant, run, effect, workflow, id, name, failure } = letter;
    checkStorable({ tenant, run, effect, workflow, id, name, failure });
    const { deadLetters } = this.#open();
    if (deadLetters.get(letter) === undefined) deadLetters.set(withoutShard(letter));
  }

  async listDeadLetters(tenant: string, filter: DeadLetterFilter, { after, limit }: DeadLetterPage) {
    const wanted = Object.entries(filter) as [keyof DeadLetterFilter, string | undefined][];
    const letters = [...this.#open().deadLetters.all()].filter(
      (letter) =>
        letter.tenant === tenant &&
        wanted.every(([field, value]) => value === undefined || letter[field] === value) &&
        (after === undefined || compareLetters(letter, after) > 0),
    );
    return least(letters, limit, compareLetters);
  }

  async getDeadLetter(key: EffectKey) {
    return this.#open().deadLetters.get(key);
  }

  async dropDeadLetters(keys: readonly EffectKey[]) {
    const { deadLetters } = this.#open();
    for (const key of keys) deadLetters.remove(key);
  }

  async saveHeartbeats(beats: readonly (Heartbeat & RunAddress)[]) {
    const tables = this.#open();
    for (const { tenant, run, effect, details } of beats) checkStorable({ tenant, run, effect, details });
    for (const beat of beats) {
      const known = tables.heartbeats.get(beat);
      if (tables.isOpen(beat) && (known === undefined || isLater(beat, known))) tables.heartbeats.set(withoutShard(beat));
    }
  }

  async readHeartbeats(key: InstanceKey) {
    return this.#open().heartbeats.ofRun(key);
  }

  async dropHeartbeats(keys: readonly EffectKey[]) {
    const { heartbeats } = this.#open();
    for (const key of keys) heartbeats.remove(key);
  }

  async expireHeartbeats(before: number) {
    const { heartbeats } = this.#open();
    for (const beat of heartbeats.all()) if (beat.at < before) heartbeats.remove(beat);
  }

  async saveStepOutcome(step: StepOutcome & RunAddress) {
    const { stepOutcomes } = this.#open();
    const { tenant, run, effect, outcome } = step;
    checkStorable({ tenant, run, effect, outcome: outcome ?? undefined });
    const known = stepOutcomes.get(step);
    if (known !== undefined) return { won: false, outcome: known.outcome };
    stepOutcomes.set(withoutShard(step));
    return { won: true, outcome };
  }

  async readStepOutcomes(key: InstanceKey) {
    return this.#open().stepOutcomes.ofRun(key);
  }

  async expireStepOutcomes(before: number) {
    const tables = this.#open();
    for (const step of tables.stepOutcomes.all()) if (step.at < before && !tables.isOpen(step)) tables.stepOutcomes.remove(step);
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

  async readInbox(key: InstanceKey, page: { after?: number; limit: number }) {
    return this.#open().inboxOf(key, page.after ?? 0, page.limit);
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

  async exchangePermits(owner: string, lease: number, asks: readonly PermitAsk[]) {
    checkStorable({ owner });
    for (const { tenant, name } of asks) checkStorable({ tenant, name });
    return this.#open().permits.exchange(owner, lease, asks, this.#now());
  }

  async releasePermits(owners: readonly string[]) {
    this.#open().permits.release(owners);
  }

  async listPermitOwners() {
    return this.#open().permits.owners();
  }

  async takeTokens(asks: readonly TokenAsk[]) {
    for (const { tenant, name } of asks) checkStorable({ tenant, name });
    return this.#open().tokens.take(asks, this.#now());
  }

  async admit(asks: readonly AdmissionAsk[]) {
    for (const { tenant, name, run } of asks) checkStorable({ tenant, name, run: run?.run });
    const tables = this.#open();
    return tables.admissions.admit(asks, { isOpen: (key) => tables.isOpen(key), deliver: (message) => tables.deliver(message) });
  }

  async dropStartKey(tenant: string, workflow: string, key: string, run: string) {
    checkStorable({ tenant, workflow, key, run });
    const { startKeys } = this.#open().tenant(tenant);
    const slot = startSlot(workflow, key);
    if (startKeys.get(slot)?.run === run) startKeys.delete(slot);
  }

  async expireLimits() {
    const { permits, tokens } = this.#open();
    permits.expire(this.#now());
    tokens.expire(this.#now());
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

/** Newest first. */
function compareLetters(a: Pick<DeadLetter, "at" | "run" | "effect">, b: Pick<DeadLetter, "at" | "run" | "effect">): number {
  return b.at - a.at || compareText(b.run, a.run) || compareText(b.effect, a.effect);
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

/** Where it is kept is not part of it. */
function withoutShard<T extends RunAddress>({ shard: _, ...row }: T): Omit<T, "shard"> {
  return row;
}
