/** Task queues over any driver of the Postgres dialect. */
import {
  type ClaimedTask,
  type KnownWorker,
  type OverdueTask,
  sweptFor,
  type TaskEnd,
  type TaskSettled,
  type TaskStore,
  type TaskSweep,
} from "../../engine/ports/tasks.ts";
import { isStorable } from "../storable.ts";
import { checkTask, checkWorker } from "../storable-task.ts";
import type { SqlQuery, SqlValue } from "./driver.ts";
import { arrayLiteral } from "./text-list.ts";

type Row = readonly SqlValue[];

const textArray = (index: number) => `array(select json_array_elements_text($${index}::text::json))`;

export function sqlTasks(query: SqlQuery): TaskStore {
  return {
    async claim({ queue, activities, labels, places, lease, afterTenant }): Promise<readonly ClaimedTask[]> {
      if (places.length === 0 || !isStorable(queue)) return [];
      const rows = await query(
        "write",
        `select * from wovyr.claim_tasks_1($1, case when $2::text is null then null else ${textArray(2)} end, ${textArray(3)}, ${textArray(4)}, ${textArray(5)}, $6, $7)`,
        [
          queue,
          activities === undefined ? null : JSON.stringify(activities),
          JSON.stringify(labels),
          JSON.stringify(places.map(({ worker }) => worker)),
          JSON.stringify(places.map(({ token }) => token)),
          lease,
          afterTenant,
        ],
      );
      return rows.map(([token, worker, tenant, run, effect, name, attempt, input, about, details]) => ({
        token: String(token),
        worker: String(worker),
        tenant: String(tenant),
        run: String(run),
        effect: String(effect),
        queue,
        name: String(name),
        attempt: Number(attempt),
        input: String(input),
        about: String(about),
        ...(details !== null && { details: String(details) }),
      }));
    },

    async renew(renewals) {
      for (const { details } of renewals) checkTask({ details });
      const known = renewals.filter(({ token }) => isStorable(token));
      if (known.length === 0) return new Set();
      // An update meets a row once: of several renewals of one lease the last counts.
      const items = [...new Map(known.map((renewal) => [renewal.token, renewal])).values()];
      const rows = await query("write", "select * from wovyr.renew_tasks_1($1)", [JSON.stringify(items)]);
      return new Set(rows.map(([token]) => String(token)));
    },

    async release(tokens) {
      const known = [...new Set(tokens.filter(isStorable))];
      if (known.length === 0) return [];
      const rows = await query("write", `select * from wovyr.release_tasks_1(${textArray(1)})`, [JSON.stringify(known)]);
      return rows.map(([token, queue]) => ({ token: String(token), queue: String(queue) }));
    },

    async settle(settlements) {
      for (const { digest, fact } of settlements) checkTask({ digest, fact });
      const settled = settlements.map((): TaskSettled => ({ kind: "refused" }));
      const items = settlements.map((settlement, place) => ({ ...settlement, place })).filter(({ token }) => isStorable(token));
      if (items.length === 0) return settled;
      for (const row of await query("write", "select * from wovyr.settle_tasks_1($1)", [JSON.stringify(items)]))
        settled[Number(row[0])] = readSettled(row);
      return settled;
    },

    async sweep(shards, limit): Promise<TaskSweep> {
      const rows = await query("write", "select * from wovyr.sweep_tasks_1($1, $2, $3)", [
        arrayLiteral([...new Set(shards)]),
        limit,
        sweptFor,
      ]);
      const last = rows.at(-1);
      const nextIn = last?.[10];
      const overdue = rows.filter(([tenant]) => tenant !== null).map(readOverdue);
      return { overdue, ...(typeof nextIn === "number" && { nextIn }), waits: last?.[12] === true };
    },

    async depths() {
      const rows = await query(
        "read",
        `select queue, (count(*) filter (where state = 'waiting'))::double precision, (count(*) filter (where state = 'leased'))::double precision,
          (min(since) filter (where state = 'waiting'))::double precision
        from wovyr.tasks group by queue order by queue`,
        [],
      );
      return rows.map(([queue, waiting, leased, oldestAt]) => ({
        queue: String(queue),
        waiting: Number(waiting),
        leased: Number(leased),
        ...(oldestAt !== null && { oldestAt: Number(oldestAt) }),
      }));
    },

    async waiting({ taken, longest, limit }) {
      const rows = await query("read", `select * from wovyr.waiting_queues_1(${textArray(1)}, $2, $3)`, [
        JSON.stringify(taken),
        longest,
        limit,
      ]);
      return rows.map(([queue, shard, waited]) => ({
        queue: String(queue),
        ...(shard !== null && { late: { shard: Number(shard), waited: Number(waited) } }),
      }));
    },

    async ofRun({ tenant, run }) {
      if (!isStorable(tenant) || !isStorable(run)) return [];
      const rows = await query(
        "read",
        `select effect, queue, requires, case when state = 'leased' then worker end from wovyr.tasks
        where tenant = $1 and run = $2 and state in ('waiting', 'leased') order by effect collate "C"`,
        [tenant, run],
      );
      return rows.map(([effect, queue, requires, worker]) => ({
        effect: String(effect),
        queue: String(queue),
        requires: String(requires)
          .split(" ")
          .filter((label) => label !== ""),
        ...(worker !== null && { worker: String(worker) }),
      }));
    },

    async expire(age) {
      await query("write", "delete from wovyr.settled_tasks where at < wovyr.now_1() - $1::bigint", [age]);
      await query("write", "delete from wovyr.workers where seen_at < wovyr.now_1() - $1::bigint", [age]);
    },

    async saveWorkers(workers) {
      for (const worker of workers) checkWorker(worker);
      const latest = [...new Map(workers.map((worker) => [worker.id, worker])).values()];
      const items = latest.map(({ takes, ...worker }) => ({ ...worker, takes: takes.join(" ") }));
      if (items.length > 0) await query("write", "select wovyr.save_workers_1($1)::text", [JSON.stringify(items)]);
    },

    async takers() {
      const rows = await query(
        "read",
        `select t.queue, count(*)::double precision from wovyr.workers w cross join lateral string_to_table(w.takes, ' ') t(queue)
        where w.until >= wovyr.now_1() group by t.queue`,
        [],
      );
      return new Map(rows.map(([queue, workers]) => [String(queue), Number(workers)]));
    },

    async listWorkers({ after = "", limit }): Promise<readonly KnownWorker[]> {
      const rows = await query(
        "read",
        "select id, about, seen_at::double precision, until < wovyr.now_1() from wovyr.workers where id > $1 order by id limit $2",
        [after, limit],
      );
      return rows.map(([id, about, seenAt, isOverdue]) => ({
        id: String(id),
        about: String(about),
        seenAt: Number(seenAt),
        isOverdue: isOverdue === true,
      }));
    },
  };
}

function readSettled([, kind, tenant, run, shard, message, fact]: Row): TaskSettled {
  if (kind !== "settled") return { kind: kind as "known" | "refused" };
  return {
    kind,
    message: { tenant: String(tenant), run: String(run), shard: Number(shard), message: String(message), fact: String(fact) },
  };
}

function readOverdue([tenant, run, effect, name, attempt, losses, about, end, worker, details, , shard]: Row): OverdueTask {
  return {
    tenant: String(tenant),
    run: String(run),
    shard: Number(shard),
    effect: String(effect),
    name: String(name),
    attempt: Number(attempt),
    losses: Number(losses),
    about: String(about),
    end: end as TaskEnd,
    worker: String(worker),
    ...(details !== null && details !== undefined && { details: String(details) }),
  };
}
