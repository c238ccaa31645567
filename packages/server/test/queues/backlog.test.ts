/** A queue with a long backlog in Postgres: what it costs to find the next task, whose it is, and whether the queue is stuck. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { postgresStore } from "../../src/store/postgres.ts";
import { contractStoreOptions } from "../../src/store-contract.ts";
import { createDatabase } from "../store/postgres-database.ts";

const backlog = 100_000;
/** Milliseconds; on an idle machine it takes one or two. */
const bound = 250;

test("H120 a backlog of 100,000 tasks of one tenant, or in one queue, keeps nobody else waiting", { timeout: 120_000 }, async (context) => {
  const database = await createDatabase();
  const store = await postgresStore(database.url).open(contractStoreOptions);
  context.after(async () => {
    await store.close();
    await database.drop();
  });
  const insert = (tenant: string, queue: string, count: number) =>
    database.admin.unsafe(
      `insert into wovyr.tasks (since, shard, priority, attempt, losses, state, tenant, run, effect, queue, name, requires, worker, about, input)
      select 0, 0, 2, 1, 0, 'waiting', '${tenant}', '${queue}-' || n, '0', '${queue}', 'render', '', '', '{}', '1' from generate_series(1, ${count}) n`,
    );
  assert.deepEqual(await store.tasks.sweep([0], 10), { overdue: [], waits: false });
  await insert("a", "full", backlog);
  await insert("b", "full", 10);
  await insert("a", "empty", 10);
  let token = 0;
  const claim = async (queue: string, count: number, afterTenant: string) => {
    const places = Array.from({ length: count }, () => ({ token: `t${token++}`, worker: "w" }));
    const began = performance.now();
    const tasks = await store.tasks.claim({ queue, labels: [], places, lease: 60_000, afterTenant });
    return { tenants: tasks.map(({ tenant }) => tenant).join(""), took: performance.now() - began };
  };
  await claim("full", 1, "");
  const times: number[] = [];
  for (const [afterTenant, expected] of [
    ["a", "b"],
    ["b", "a"],
    ["a", "b"],
  ] as const) {
    const { tenants, took } = await claim("full", 1, afterTenant);
    assert.equal(tenants, expected);
    times.push(took);
  }
  const several = await claim("full", 4, "a");
  assert.equal(several.tenants.slice(0, 2), "ba");
  times.push(several.took);
  const other = await claim("empty", 10, "");
  assert.equal(other.tenants, "a".repeat(10));
  times.push(other.took, (await store.tasks.sweep([0], 10)).overdue.length);
  times.sort((x, y) => x - y);
  assert.ok((times[times.length >> 1] as number) < bound, `milliseconds: ${times.map((time) => time.toFixed(1)).join(" ")}`);
  const looks: number[] = [];
  for (const [taken, late] of [
    [["full"], undefined],
    [[], 0],
    [[], 0],
  ] as const) {
    const began = performance.now();
    const waiting = await store.tasks.waiting({ taken, longest: 60_000, limit: 10 });
    looks.push(performance.now() - began);
    assert.deepEqual(
      waiting.map((each) => [each.queue, each.late?.shard]),
      [["full", late]],
    );
  }
  looks.sort((x, y) => x - y);
  assert.ok((looks[1] as number) < bound, `milliseconds: ${looks.map((time) => time.toFixed(1)).join(" ")}`);
});
