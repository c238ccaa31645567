/**
 * Everything a memory store keeps, and how a turn changes it. Outlives the stores that are opened on it.
 *
 * 1. `commit` applies a flush in the order that every provider keeps: later turns of known runs, first turns, children, then inboxes (starts and
 *    rejections, sends, what waits find when they look back, consumed messages, those handed on, those of closed runs), then dead letters, then tasks. So an id that one turn frees
 *    can be taken by another of the same flush.
 * 2. A turn is judged before any of it is written.
 */

import type { Parcel, Received, SetMembership } from "../../engine/ports/databases.ts";
import {
  type DeadLetter,
  type Flush,
  type FlushOutcome,
  type Heartbeat,
  type ImportOutcome,
  type InboxMessage,
  type InstanceKey,
  isOpenStatus,
  lookBackLimit,
  type NewInstance,
  type Publication,
  type PublishOutcome,
  positionedFact,
  publicationMessage,
  type RunImport,
  type StepOutcome,
  type TurnWrite,
} from "../../engine/ports/store.ts";
import { runIdPrefix } from "../../engine/run-id.ts";
import { flushParts, isClosing } from "../flush-parts.ts";
import { lastPerEffect } from "../last-per-effect.ts";
import { turnProblem } from "../storable.ts";
import { compareText } from "../text-order.ts";
import { AdmissionTable } from "./admission-table.ts";
import { EffectRows } from "./effect-rows.ts";
import { InboxLog } from "./inbox-log.ts";
import { OutboxTable } from "./outbox-table.ts";
import { PermitTable } from "./permit-table.ts";
import { PublicationLog } from "./publication-log.ts";
import type { RunRecord } from "./run-record.ts";
import { ShardTable } from "./shard-table.ts";
import { TaskTable } from "./task-table.ts";
import { Tenant } from "./tenant.ts";
import { TimerQueue } from "./timer-queue.ts";
import { TokenTable } from "./token-table.ts";
import { topicOf, WaitTable } from "./wait-table.ts";

type Outcome = {
  readonly done: Set<string>;
  readonly rejectedChildren: Set<string>;
  readonly failed: Map<string, Error>;
  readonly found: Set<string>;
};

export class Tables {
  readonly shards = new ShardTable();
  readonly inbox = new InboxLog();
  readonly publications = new PublicationLog();
  readonly waits = new WaitTable();
  readonly deadLetters = new EffectRows<DeadLetter>();
  readonly heartbeats = new EffectRows<Heartbeat>();
  readonly stepOutcomes = new EffectRows<StepOutcome>();
  readonly tasks = new TaskTable();
  readonly admissions = new AdmissionTable();
  readonly permits = new PermitTable();
  readonly tokens = new TokenTable();
  readonly outbox = new OutboxTable();
  /** Of which set of databases this is one. */
  member: SetMembership | undefined;
  readonly #tenants = new Map<string, Tenant>();
  readonly #timers = new Map<number, TimerQueue>();
  readonly #busy = new Map<number, Set<RunRecord>>();
  readonly #parked = new Map<number, Set<RunRecord>>();

  tenant(name: string): Tenant {
    let tenant = this.#tenants.get(name);
    if (tenant === undefined) {
      tenant = new Tenant();
      this.#tenants.set(name, tenant);
    }
    return tenant;
  }

  tenants(): Iterable<Tenant> {
    return this.#tenants.values();
  }

  run(key: InstanceKey): RunRecord | undefined {
    return this.#tenants.get(key.tenant)?.runs.get(key.run);
  }

  timers(shard: number): TimerQueue {
    let queue = this.#timers.get(shard);
    if (queue === undefined) {
      queue = new TimerQueue();
      this.#timers.set(shard, queue);
    }
    return queue;
  }

  runnable(shard: number, which: "busy" | "parked"): Iterable<RunRecord> {
    return (which === "busy" ? this.#busy : this.#parked).get(shard) ?? [];
  }

  /** `now`: by the clock of the store, which leases and time limits of tasks go by. */
  commit({ fence, turns }: Flush, now: number): FlushOutcome {
    const outcome: Outcome = { done: new Set(), rejectedChildren: new Set(), failed: new Map(), found: new Set() };
    for (const part of flushParts(turns)) this.#commitPart({ fence, turns: part }, outcome, now);
    return outcome;
  }

  #commitPart(flush: Flush, { done: doneRuns, rejectedChildren, failed, found }: Outcome, now: number): void {
    const owned = this.shards.fence(flush.fence);
    const sound = flush.turns.filter((turn) => {
      const problem = turnProblem(turn);
      if (problem !== undefined) failed.set(turn.run, problem);
      return problem === undefined && owned.has(turn.shard);
    });
    const done = new Map<TurnWrite, RunRecord>();
    for (const turn of sound) {
      if (turn.create !== undefined) continue;
      const problem = this.#successorProblem(turn);
      if (problem !== undefined) failed.set(turn.run, problem);
      const record = problem === undefined ? this.#accept(turn) : undefined;
      if (record !== undefined) done.set(turn, record);
    }
    for (const turn of sound) {
      if (turn.create === undefined) continue;
      const record = turn.tail === 0 ? this.#create(turn.tenant, turn.run, turn.shard, turn.create, turn.at) : undefined;
      if (record === undefined) continue;
      this.#advance(record, turn);
      done.set(turn, record);
    }
    const applied = flush.turns.filter((turn) => done.has(turn));
    for (const turn of applied) this.#record(done.get(turn) as RunRecord, turn);
    for (const turn of applied) this.#createChildren(turn, rejectedChildren);
    for (const turn of applied) for (const send of turn.sends) if (this.isOpen(send)) this.deliver(send);
    for (const turn of applied) if (this.#lookBack(turn)) found.add(turn.run);
    for (const turn of applied) for (const message of turn.consumed) this.remove({ tenant: turn.tenant, run: turn.run, message });
    for (const turn of applied) if (this.#handOn(turn, done.get(turn) as RunRecord)) found.add(turn.run);
    for (const turn of applied) if ((done.get(turn) as RunRecord).closedAt !== undefined) this.#clear(turn);
    for (const turn of applied) this.#recordDeadLetters(done.get(turn) as RunRecord, turn);
    for (const turn of applied) this.#recordTasks(turn, now);
    for (const turn of applied) for (const { name, target, parcel } of turn.outbox ?? []) this.outbox.add(turn, { name, target, parcel });
    for (const { successor } of applied) if (successor !== undefined) this.importRun(successor);
    for (const turn of applied) doneRuns.add(turn.run);
  }

  publish(publication: Publication): PublishOutcome {
    const { tenant, id, name, key } = publication;
    const known = this.publications.find(tenant, id);
    if (known !== undefined) {
      const { digest, position, at, reached } = known;
      return { known: true, digest, position, at, reached, delivered: [] };
    }
    const published = this.publications.add(publication);
    const { digest, fact, position, at } = published;
    const message = publicationMessage(id);
    const receivers = this.waits.runsFor(tenant, topicOf(name, key));
    const delivered = receivers.filter(({ run, shard }) =>
      this.deliver({ tenant, run, shard, message, fact: positionedFact(fact, position) }),
    );
    published.reached = delivered.length;
    return { known: false, digest, position, at, reached: delivered.length, delivered };
  }

  /** Takes in what came from another database. */
  receive(parcel: Exclude<Parcel, { kind: "publication" }>): Received {
    if (parcel.kind === "send") {
      if (this.isOpen(parcel.message)) this.deliver(parcel.message);
      return "done";
    }
    const { tenant, at, child } = parcel;
    if (this.run({ tenant, run: child.run }) !== undefined) return "done";
    if (this.#create(tenant, child.run, child.shard, child.instance, at) === undefined) return "taken";
    this.deliver(child.start);
    return "done";
  }

  importRun({ row, attributes, turns, inbox, startKey }: RunImport): ImportOutcome {
    const { id, workflow, version, parent, correlationId } = row;
    const tenant = this.tenant(row.tenant);
    const slot = startKey && startSlot(workflow, startKey.key);
    if (slot !== undefined && tenant.startKeys.has(slot)) return "key-taken";
    if (tenant.runs.has(row.run)) return "run-exists";
    if (row.closedAt === undefined && tenant.isOpen(id)) return "id-taken";
    if (slot !== undefined && startKey !== undefined)
      tenant.startKeys.set(slot, { run: row.run, digest: startKey.digest, at: row.createdAt });
    const record: RunRecord = {
      tenant: row.tenant,
      run: row.run,
      shard: row.shard,
      instance: {
        id,
        workflow,
        version,
        ...(parent !== undefined && { parent }),
        ...(correlationId !== undefined && { correlationId }),
        ...(startKey !== undefined && { startKey }),
      },
      createdAt: row.createdAt,
      origin: structuredClone(row.origin),
      status: row.status,
      busy: row.busy,
      tail: row.tail,
      nonce: "",
      closedAt: row.closedAt,
      attributes: structuredClone(attributes),
      turns: [...turns],
      timers: new Map(),
    };
    tenant.add(record);
    this.#index(record);
    if (record.closedAt !== undefined) return "done";
    for (const { message, fact } of inbox) this.deliver({ tenant: row.tenant, run: row.run, shard: row.shard, message, fact });
    return "done";
  }

  /** Removes closed runs with all that belongs to them. */
  deleteRuns(keys: readonly InstanceKey[]): number {
    const gone = new Map<Tenant, Set<RunRecord>>();
    for (const key of keys) {
      const tenant = this.tenant(key.tenant);
      const record = tenant.runs.get(key.run);
      if (record?.closedAt !== undefined) gone.set(tenant, (gone.get(tenant) ?? new Set()).add(record));
    }
    let count = 0;
    for (const [tenant, records] of gone) {
      tenant.remove(records);
      for (const record of records) this.#forget(tenant, record);
      count += records.size;
    }
    return count;
  }

  /** Runs that closed before a time, by tenant and run; `after` is the run after which to go on. */
  *closedBefore(before: number, after: InstanceKey | undefined): Generator<RunRecord> {
    const youngest = runIdPrefix(before);
    for (const name of [...this.#tenants.keys()].sort(compareText)) {
      if (after !== undefined && compareText(name, after.tenant) < 0) continue;
      const from = name === after?.tenant ? after.run : "";
      for (const record of this.tenant(name).oldestFirst(from, youngest)) {
        if (record.closedAt !== undefined && record.closedAt < before) yield record;
      }
    }
  }

  /** Adds a message unless its run has it already; says whether it did. */
  deliver(message: InboxMessage): boolean {
    const { inboxes } = this.tenant(message.tenant);
    let inbox = inboxes.get(message.run);
    if (inbox === undefined) {
      inbox = new Map();
      inboxes.set(message.run, inbox);
    }
    if (inbox.has(message.message)) return false;
    inbox.set(message.message, this.inbox.add(message));
    return true;
  }

  /** Messages of one run in the order of their posting. */
  inboxOf(key: InstanceKey, after: number, limit: number): (InboxMessage & { position: number })[] {
    const letters = [...(this.#tenants.get(key.tenant)?.inboxes.get(key.run)?.values() ?? [])];
    const further = letters.filter(({ position }) => position > after);
    return further.slice(0, limit).map(({ gone: _, ...row }) => row);
  }

  remove(key: InstanceKey & { readonly message: string }): void {
    const inboxes = this.#tenants.get(key.tenant)?.inboxes;
    const inbox = inboxes?.get(key.run);
    const letter = inbox?.get(key.message);
    if (inboxes === undefined || inbox === undefined || letter === undefined) return;
    inbox.delete(key.message);
    if (inbox.size === 0) inboxes.delete(key.run);
    this.inbox.remove(letter);
  }

  isOpen(key: InstanceKey): boolean {
    const record = this.run(key);
    return record !== undefined && record.closedAt === undefined;
  }

  /** The run that a turn belongs to, if it admits it. */
  #admits(turn: TurnWrite): RunRecord | undefined {
    const record = this.run(turn);
    return record?.closedAt === undefined && record?.tail === turn.tail && record.shard === turn.shard ? record : undefined;
  }

  #accept(turn: TurnWrite): RunRecord | undefined {
    const record = this.#admits(turn);
    if (record !== undefined) this.#advance(record, turn);
    return record;
  }

  /** Why the run that is to take another one's place cannot be written. */
  #successorProblem(turn: TurnWrite): Error | undefined {
    const { successor } = turn;
    const record = successor && this.#admits(turn);
    if (successor === undefined || record === undefined) return undefined;
    const { row, startKey } = successor;
    const tenant = this.tenant(row.tenant);
    const outcome = tenant.runs.has(row.run)
      ? "run-exists"
      : row.id !== record.instance.id && tenant.isOpen(row.id)
        ? "id-taken"
        : startKey !== undefined && tenant.startKeys.has(startSlot(row.workflow, startKey.key))
          ? "key-taken"
          : undefined;
    return outcome === undefined ? undefined : new Error(`the run that was to go on was not written: ${outcome}`);
  }

  #create(tenantName: string, run: string, shard: number, instance: NewInstance, at: number): RunRecord | undefined {
    const tenant = this.tenant(tenantName);
    const { startKey } = instance;
    const slot = startKey && startSlot(instance.workflow, startKey.key);
    if (tenant.runs.has(run) || tenant.isOpen(instance.id) || (slot !== undefined && tenant.startKeys.has(slot))) return undefined;
    if (slot !== undefined && startKey !== undefined) tenant.startKeys.set(slot, { run, digest: startKey.digest, at });
    const record: RunRecord = {
      tenant: tenantName,
      run,
      shard,
      instance,
      createdAt: at,
      origin: undefined,
      status: "open",
      busy: false,
      tail: 0,
      nonce: "",
      closedAt: undefined,
      attributes: {},
      turns: [],
      timers: new Map(),
    };
    tenant.add(record);
    return record;
  }

  /** What guards the next turn changes at once, so that the rest of the flush sees it. */
  #advance(record: RunRecord, turn: TurnWrite): void {
    const open = !isClosing(turn);
    record.tail = turn.tail + turn.count;
    record.nonce = turn.nonce;
    record.status = turn.status;
    record.busy = turn.busy && open;
    this.#index(record);
    if (open) return;
    record.closedAt = turn.at;
    this.tenant(record.tenant).close(record);
  }

  #index(record: RunRecord): void {
    mark(this.#busy, record, record.busy);
    mark(this.#parked, record, record.status === "parked");
  }

  #record(record: RunRecord, turn: TurnWrite): void {
    record.turns.push({
      seq: turn.tail + 1,
      count: turn.count,
      at: turn.at,
      node: turn.node,
      events: turn.events,
    });
    if (turn.attributes !== undefined) record.attributes = structuredClone(turn.attributes);
    const queue = this.timers(record.shard);
    const drop = (effect: string): void => {
      const timer = record.timers.get(effect);
      if (timer === undefined) return;
      queue.remove(timer);
      record.timers.delete(effect);
    };
    if (record.closedAt !== undefined) {
      for (const effect of [...record.timers.keys()]) drop(effect);
      this.waits.removeRun(record);
      return;
    }
    for (const effect of turn.timersDone) drop(effect);
    for (const { effect, due } of turn.timers) {
      drop(effect);
      record.timers.set(
        effect,
        queue.add({
          tenant: record.tenant,
          run: record.run,
          shard: record.shard,
          effect,
          due,
        }),
      );
    }
    this.#recordWaits(record, turn);
  }

  #recordWaits({ tenant, run, shard }: RunRecord, turn: TurnWrite): void {
    for (const effect of turn.waitsDone) this.waits.remove({ tenant, run, effect });
    for (const { effect, name, key } of turn.waits) this.waits.set({ tenant, run, effect, shard, topic: topicOf(name, key) });
  }

  /** Puts into the run's inbox what was published before its new waits; says whether there was anything. */
  #lookBack({ tenant, run, shard, status, waits }: TurnWrite): boolean {
    if (waits.length === 0 || !isOpenStatus(status)) return false;
    let found = false;
    for (const { effect, name, key, after } of lastPerEffect(waits)) {
      if (key === undefined) continue;
      const kept = this.publications.after(tenant, topicOf(name, key), after, lookBackLimit);
      for (const { id, fact, position } of kept)
        this.deliver({ tenant, run, shard, message: publicationMessage(id), fact: positionedFact(fact, position) });
      found ||= kept.length > 0;
      // There may be more: none may come before those.
      if (kept.length === lookBackLimit) this.waits.remove({ tenant, run, effect });
    }
    return found;
  }

  /** Gives the publications that a run has not applied to the one that goes on from it; says whether there were any. */
  #handOn({ tenant, run, status, children }: TurnWrite, { instance }: RunRecord): boolean {
    const next = status === "ContinuedAsNew" ? children.find((child) => child.instance.id === instance.id) : undefined;
    if (next === undefined || this.run({ tenant, run: next.run }) === undefined) return false;
    const messages = [...(this.#tenants.get(tenant)?.inboxes.get(run)?.values() ?? [])];
    const publications = messages.filter(({ message }) => message.startsWith(publicationMessage("")));
    for (const { message, fact } of publications) {
      this.remove({ tenant, run, message });
      this.deliver({ tenant, run: next.run, shard: next.shard, message, fact });
    }
    return publications.length > 0;
  }

  #recordDeadLetters({ tenant, run, closedAt, instance }: RunRecord, turn: TurnWrite): void {
    for (const effect of turn.deadLettersDone) this.deadLetters.remove({ tenant, run, effect });
    if (closedAt !== undefined) {
      for (const letter of this.deadLetters.ofRun(turn))
        if (letter.kind === "activity" || letter.kind === "compensation") this.deadLetters.remove(letter);
    }
    const { workflow, id } = instance;
    for (const letter of turn.deadLetters) {
      const { effect, kind, name, attempts, failure } = letter;
      this.deadLetters.set({ tenant, run, effect, at: turn.at, kind, workflow, id, name, attempts, failure });
    }
  }

  #recordTasks({ tenant, run, shard, tasks = [], tasksDone = [] }: TurnWrite, now: number): void {
    for (const effect of tasksDone) this.tasks.remove({ tenant, run, effect });
    for (const task of lastPerEffect(tasks)) this.tasks.write({ tenant, run }, shard, task, now);
  }

  #createChildren(turn: TurnWrite, rejected: Set<string>): void {
    for (const child of turn.children) {
      if (this.#create(turn.tenant, child.run, child.shard, child.instance, turn.at) !== undefined) this.deliver(child.start);
      else {
        rejected.add(child.run);
        if (this.isOpen(child.rejection)) this.deliver(child.rejection);
      }
    }
  }

  #forget(tenant: Tenant, record: RunRecord): void {
    this.#clear(record);
    for (const rows of [this.waits, this.deadLetters, this.heartbeats, this.stepOutcomes]) rows.removeRun(record);
    const { startKey, workflow } = record.instance;
    const slot = startKey && startSlot(workflow, startKey.key);
    if (slot !== undefined && tenant.startKeys.get(slot)?.run === record.run) tenant.startKeys.delete(slot);
  }

  #clear(key: InstanceKey): void {
    const inbox = this.#tenants.get(key.tenant)?.inboxes.get(key.run);
    for (const message of [...(inbox?.keys() ?? [])]) this.remove({ tenant: key.tenant, run: key.run, message });
  }
}

export function startSlot(workflow: string, key: string): string {
  return `${workflow}\u001f${key}`;
}

function mark(index: Map<number, Set<RunRecord>>, record: RunRecord, present: boolean): void {
  const runs = index.get(record.shard);
  if (!present) runs?.delete(record);
  else if (runs !== undefined) runs.add(record);
  else index.set(record.shard, new Set([record]));
}
