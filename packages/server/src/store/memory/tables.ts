/**
 * Everything a memory store keeps, and how a turn changes it. Outlives the stores that are opened on it.
 *
 * 1. `commit` applies a flush in the order that every provider keeps: later turns of known runs, first turns, children, then inboxes (starts and
 *    rejections, sends, consumed messages, messages of closed runs). So an id that one turn frees can be taken by another of the same flush.
 * 2. A turn is judged before any of it is written.
 */
import type { Flush, FlushOutcome, InboxMessage, InstanceKey, NewInstance, TurnWrite } from "../../engine/ports/store.ts";
import { flushParts, isClosing } from "../flush-parts.ts";
import { turnProblem } from "../storable.ts";
import { InboxLog } from "./inbox-log.ts";
import type { RunRecord } from "./run-record.ts";
import { ShardTable } from "./shard-table.ts";
import { Tenant } from "./tenant.ts";
import { TimerQueue } from "./timer-queue.ts";

type Outcome = { readonly done: Set<string>; readonly rejectedChildren: Set<string>; readonly failed: Map<string, Error> };

export class Tables {
  readonly shards = new ShardTable();
  readonly inbox = new InboxLog();
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

  commit({ fence, turns }: Flush): FlushOutcome {
    const outcome = { done: new Set<string>(), rejectedChildren: new Set<string>(), failed: new Map<string, Error>() };
    for (const part of flushParts(turns)) this.#commitPart({ fence, turns: part }, outcome);
    return outcome;
  }

  #commitPart(flush: Flush, { done: doneRuns, rejectedChildren, failed }: Outcome): void {
    const owned = this.shards.fence(flush.fence);
    const sound = flush.turns.filter((turn) => {
      const problem = turnProblem(turn);
      if (problem !== undefined) failed.set(turn.run, problem);
      return problem === undefined && owned.has(turn.shard);
    });
    const done = new Map<TurnWrite, RunRecord>();
    for (const turn of sound) {
      if (turn.create !== undefined) continue;
      const record = this.#accept(turn);
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
    for (const turn of applied) for (const send of turn.sends) if (this.#isOpen(send)) this.deliver(send);
    for (const turn of applied) for (const message of turn.consumed) this.remove({ tenant: turn.tenant, run: turn.run, message });
    for (const turn of applied) if ((done.get(turn) as RunRecord).closedAt !== undefined) this.#clear(turn);
    for (const turn of applied) doneRuns.add(turn.run);
  }

  /** Adds a message unless its run has it already. */
  deliver(message: InboxMessage): void {
    const { inboxes } = this.tenant(message.tenant);
    let inbox = inboxes.get(message.run);
    if (inbox === undefined) {
      inbox = new Map();
      inboxes.set(message.run, inbox);
    }
    if (!inbox.has(message.message)) inbox.set(message.message, this.inbox.add(message));
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

  #isOpen(key: InstanceKey): boolean {
    const record = this.run(key);
    return record !== undefined && record.closedAt === undefined;
  }

  #accept(turn: TurnWrite): RunRecord | undefined {
    const record = this.run(turn);
    if (record === undefined || record.closedAt !== undefined || record.tail !== turn.tail || record.shard !== turn.shard) return undefined;
    this.#advance(record, turn);
    return record;
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
    mark(this.#busy, record, record.busy);
    mark(this.#parked, record, turn.status === "parked");
    if (open) return;
    record.closedAt = turn.at;
    this.tenant(record.tenant).close(record);
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
  }

  #createChildren(turn: TurnWrite, rejected: Set<string>): void {
    for (const child of turn.children) {
      if (this.#create(turn.tenant, child.run, child.shard, child.instance, turn.at) !== undefined) this.deliver(child.start);
      else {
        rejected.add(child.run);
        if (this.#isOpen(child.rejection)) this.deliver(child.rejection);
      }
    }
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
