/**
 * Tasks of task queues, and the workers that take them.
 *
 * 1. Waiting tasks of a queue stand by priority, then by tenant, then by position; a task that waits again keeps its position.
 */

import type { EffectKey, InboxMessage, InstanceKey } from "../../engine/ports/store.ts";
import {
  type ClaimedTask,
  type KnownTask,
  type KnownWorker,
  type OverdueTask,
  type QueueDepth,
  sweptFor,
  type TaskClaim,
  type TaskEnd,
  type TaskRenewal,
  type TaskSettled,
  type TaskSettlement,
  type TaskStore,
  type TaskSweep,
  type TaskWrite,
  type WaitingQueue,
  type WorkerRow,
} from "../../engine/ports/tasks.ts";
import { settledFact, settledMessage } from "../settled-task.ts";
import { compareText } from "../text-order.ts";
import { EffectRows } from "./effect-rows.ts";
import { WaitingTasks } from "./waiting-tasks.ts";

type Task = EffectKey &
  Omit<TaskWrite, "details"> & {
    readonly shard: number;
    readonly position: number;
    readonly startBy: number;
    readonly closeBy: number;
    details: string | undefined;
    /** Since when it waits, or waited. */
    since: number;
    state: "waiting" | "leased" | "ended";
    token: string;
    worker: string;
    leaseUntil: number;
    runUntil: number;
    beatUntil: number;
    end: TaskEnd | undefined;
    /** When a task that has ended is told again. */
    tellAt: number;
  };

const never = Number.POSITIVE_INFINITY;

export class TaskTable {
  readonly #tasks = new EffectRows<Task>();
  readonly #queues = new Map<string, WaitingTasks<Task>>();
  readonly #leases = new Map<string, Task>();
  readonly #settled = new Map<string, { readonly at: number; readonly digest: string }>();
  readonly #workers = new Map<string, Omit<WorkerRow, "id" | "within"> & { readonly seenAt: number; readonly until: number }>();
  #position = 0;

  write(key: InstanceKey, shard: number, write: TaskWrite, now: number): void {
    const known = this.#tasks.get({ ...key, effect: write.effect });
    if (known === undefined) this.#position += 1;
    else this.remove(known);
    const task: Task = {
      ...key,
      ...write,
      shard,
      position: known?.position ?? this.#position,
      details: write.details,
      since: now,
      startBy: after(now, write.startWithin),
      closeBy: after(now, write.closeWithin),
      state: "waiting",
      token: "",
      worker: "",
      leaseUntil: never,
      runUntil: never,
      beatUntil: never,
      end: undefined,
      tellAt: never,
    };
    this.#tasks.set(task);
    this.#wait(task, now);
  }

  remove(key: EffectKey): void {
    const task = this.#tasks.get(key);
    if (task === undefined) return;
    this.#queues.get(task.queue)?.delete(task);
    this.#leases.delete(task.token);
    this.#tasks.remove(task);
  }

  claim({ queue, activities, labels, places, lease, afterTenant }: TaskClaim, now: number): ClaimedTask[] {
    const fits = (task: Task) =>
      (activities === undefined || activities.includes(task.name)) && task.requires.every((label) => labels.includes(label));
    const chosen = this.#queues.get(queue)?.first(places.length, afterTenant, fits) ?? [];
    return chosen.map((task, index) => {
      const { token, worker } = places[index] as TaskClaim["places"][number];
      this.#queues.get(queue)?.delete(task);
      const { runWithin, beatWithin } = task;
      const runUntil = after(now, runWithin);
      Object.assign(task, { state: "leased", token, worker, leaseUntil: now + lease, runUntil, beatUntil: after(now, beatWithin) });
      this.#leases.set(token, task);
      const { tenant, run, effect, name, attempt, input, about, details } = task;
      return { token, worker, tenant, run, effect, queue, name, attempt, input, about, ...(details !== undefined && { details }) };
    });
  }

  renew(renewals: readonly TaskRenewal[], now: number): Set<string> {
    const held = new Set<string>();
    for (const { token, lease, beat, details } of renewals) {
      const task = this.#leases.get(token);
      if (task === undefined) continue;
      held.add(token);
      task.leaseUntil = now + lease;
      if (beat) task.beatUntil = after(now, task.beatWithin);
      if (details !== undefined) task.details = details;
    }
    return held;
  }

  release(tokens: readonly string[], now: number): { token: string; queue: string }[] {
    return tokens.flatMap((token) => {
      const task = this.#leases.get(token);
      if (task === undefined) return [];
      this.#leases.delete(token);
      this.#wait(task, now);
      return [{ token, queue: task.queue }];
    });
  }

  settle(settlements: readonly TaskSettlement[], now: number): { readonly settled: TaskSettled; readonly message?: InboxMessage }[] {
    return settlements.map(({ token, digest, fact }) => {
      const before = this.#settled.get(token);
      if (before !== undefined) return { settled: { kind: before.digest === digest ? "known" : "refused" } };
      const task = this.#leases.get(token);
      if (task === undefined) return { settled: { kind: "refused" } };
      const { tenant, run, shard } = task;
      const message = { tenant, run, shard, message: settledMessage(task), fact: settledFact(fact, task) };
      this.#settled.set(token, { at: now, digest });
      this.remove(task);
      return { settled: { kind: "settled", message }, message };
    });
  }

  sweep(shards: readonly number[], limit: number, now: number): TaskSweep {
    const known = new Set(shards);
    const due: { readonly task: Task; readonly at: number }[] = [];
    let next = never;
    for (const task of this.#tasks.all()) {
      if (!known.has(task.shard)) continue;
      const at = dueOf(task);
      if (at <= now) due.push({ task, at });
      else if (at < next) next = at;
    }
    due.sort((a, b) => a.at - b.at || a.task.position - b.task.position);
    const overdue = due.slice(0, limit).map(({ task }) => this.#end(task, now));
    const nextIn = due.length > limit ? 0 : next - now;
    const waits = [...this.#queues.values()].some((queue) => !queue.isEmpty);
    return { overdue, ...(nextIn !== never && { nextIn }), waits };
  }

  depths(): QueueDepth[] {
    const depths = new Map<string, { -readonly [K in keyof QueueDepth]: QueueDepth[K] }>();
    for (const { queue, state, since } of this.#tasks.all()) {
      const depth = depths.get(queue) ?? { queue, waiting: 0, leased: 0 };
      depths.set(queue, depth);
      if (state === "leased") depth.leased += 1;
      if (state !== "waiting") continue;
      depth.waiting += 1;
      depth.oldestAt = Math.min(depth.oldestAt ?? since, since);
    }
    return [...depths.values()].sort((a, b) => compareText(a.queue, b.queue));
  }

  waiting({ taken, longest, limit }: Parameters<TaskStore["waiting"]>[0], now: number): WaitingQueue[] {
    return [...this.#queues]
      .filter(([, tasks]) => !tasks.isEmpty)
      .sort(([a], [b]) => compareText(a, b))
      .slice(0, limit)
      .map(([queue, tasks]) => {
        const [late] = taken.includes(queue) ? [] : tasks.first(1, "", ({ since }) => since <= now - longest);
        return { queue, ...(late !== undefined && { late: { shard: late.shard, waited: now - late.since } }) };
      });
  }

  ofRun(key: InstanceKey): KnownTask[] {
    return this.#tasks
      .ofRun(key)
      .filter(({ state }) => state !== "ended")
      .map(({ effect, queue, requires, state, worker }) => ({ effect, queue, requires, ...(state === "leased" && { worker }) }));
  }

  expire(before: number): void {
    for (const [token, { at }] of this.#settled) if (at < before) this.#settled.delete(token);
    for (const [id, { seenAt }] of this.#workers) if (seenAt < before) this.#workers.delete(id);
  }

  saveWorkers(workers: readonly WorkerRow[], now: number): void {
    for (const { id, about, takes, within } of workers) this.#workers.set(id, { about, takes, seenAt: now, until: now + within });
  }

  takers(now: number): Map<string, number> {
    const takers = new Map<string, number>();
    for (const { takes, until } of this.#workers.values())
      if (until >= now) for (const queue of takes) takers.set(queue, (takers.get(queue) ?? 0) + 1);
    return takers;
  }

  listWorkers({ after: last, limit }: { readonly after?: string; readonly limit: number }, now: number): KnownWorker[] {
    return [...this.#workers]
      .filter(([id]) => last === undefined || compareText(id, last) > 0)
      .sort(([a], [b]) => compareText(a, b))
      .slice(0, limit)
      .map(([id, { about, seenAt, until }]) => ({ id, about, seenAt, isOverdue: until < now }));
  }

  #wait(task: Task, now: number): void {
    Object.assign(task, { state: "waiting", since: now, token: "", worker: "", leaseUntil: never, runUntil: never, beatUntil: never });
    const queue = this.#queues.get(task.queue) ?? new WaitingTasks<Task>();
    this.#queues.set(task.queue, queue);
    queue.add(task);
  }

  #end(task: Task, now: number): OverdueTask {
    task.end ??= endOf(task);
    this.#queues.get(task.queue)?.delete(task);
    this.#leases.delete(task.token);
    Object.assign(task, { state: "ended", token: "", tellAt: now + sweptFor });
    const { tenant, run, shard, effect, name, attempt, losses, about, worker, details } = task;
    return { tenant, run, shard, effect, name, attempt, losses, about, worker, end: task.end, ...(details !== undefined && { details }) };
  }
}

const after = (now: number, length: number | undefined): number => (length === undefined ? never : now + length);

/** When somebody has to look at it. */
function dueOf({ state, startBy, closeBy, leaseUntil, runUntil, beatUntil, tellAt }: Task): number {
  if (state === "ended") return tellAt;
  return state === "waiting" ? Math.min(startBy, closeBy) : Math.min(closeBy, leaseUntil, runUntil, beatUntil);
}

/** Which of its limits is the first that has passed; of those that pass together the one that allows least. */
function endOf(task: Task): TaskEnd {
  const { state, startBy, closeBy, leaseUntil, runUntil, beatUntil } = task;
  if (state === "waiting") return startBy < closeBy ? "scheduleToStart" : "scheduleToClose";
  const due = dueOf(task);
  if (closeBy === due) return "scheduleToClose";
  if (runUntil === due) return "startToClose";
  if (beatUntil === due) return "heartbeat";
  return leaseUntil === due ? "lost" : "scheduleToClose";
}
