import assert from "node:assert/strict";
import { test } from "node:test";
import postgres from "postgres";
import {
  child,
  commit,
  deadLetter,
  firstTurn,
  instance,
  message,
  next,
  publication,
  type Scenario,
  scenario,
  shard,
  start,
  unique,
} from "../../src/store/contract/scenario.ts";
import { postgresStore } from "../../src/store/postgres.ts";
import { contractStoreOptions } from "../../src/store-contract.ts";
import { createDatabase, type TestDatabase } from "./postgres-database.ts";

const bulk = 20_000;
const tables = [
  "instances",
  "history",
  "timers",
  "inbox",
  "start_keys",
  "instance_attributes",
  "waits",
  "publications",
  "dead_letters",
  "heartbeats",
  "step_outcomes",
  "requests",
];

/** Turns that come alone: a start, one whose id is taken, a later turn, and the last. */
async function useAlone(at: Scenario): Promise<void> {
  const startKey = () => ({ key: unique("key-"), digest: "d" });
  const first = firstTurn(at, { create: instance({ startKey: startKey() }) });
  const taken = firstTurn(at, { create: instance({ id: first.create?.id ?? "", startKey: startKey() }), status: "Completed" });
  const later = next(at, first);
  const done: string[] = [];
  for (const turn of [first, taken, later, next(at, later, { status: "Completed" })]) done.push(...(await commit(at, turn)));
  assert.deepEqual(done, [first.run, first.run, first.run]);
}

/** Uses every statement that a running orchestrator repeats, on `count` instances. */
async function useEverything(at: Scenario, count: number): Promise<void> {
  const { store } = at;
  const first = Array.from({ length: count }, (_, index) =>
    firstTurn(at, {
      busy: true,
      timers: [{ effect: "1", due: index }],
      attributes: { a: index },
      create: instance({ startKey: { key: unique("key-"), digest: "d" } }),
      waits: [
        { effect: "1", name: "paid", key: `key-${index}`, after: 0 },
        { effect: "2", name: "paid", after: 0 },
      ],
      deadLetters: [deadLetter({ effect: "1" }), deadLetter({ effect: "2" })],
    }),
  );
  await commit(at, ...first);
  const published = [publication(at, { key: "key-0" }), publication(at, { key: unique("key-") })];
  for (const event of [...published, ...published]) await store.publish(event);
  await store.saveHeartbeats(first.map((turn, index) => ({ ...turn, effect: "1", attempt: 1, at: index, details: "1" })));
  for (const turn of first) await store.saveStepOutcome({ ...turn, effect: "1", at: 1_000, outcome: "1" });
  const letters = first.map(({ run }) => message(at, run));
  await store.post(letters);
  await store.drop(letters.slice(0, 1));
  await store.requests?.list(at.shards, { limit: 10 });
  await store.requests?.drop(first.slice(0, 3).map((turn) => ({ ...turn, message: "m", position: 1 })));
  const second = first.map((turn, index) =>
    next(at, turn, {
      timers: [{ effect: "2", due: index }],
      timersDone: ["1"],
      attributes: { a: index + 1 },
      consumed: [letters[index]?.message ?? ""],
      children: [child(at, turn)],
      sends: [message(at, turn.run), message(at, unique("nobody-"))],
      waits: [{ effect: "3", name: "paid", key: published[1]?.key ?? "", after: 0 }],
      waitsDone: ["1"],
      deadLetters: [deadLetter({ effect: "3" })],
      deadLettersDone: ["1"],
    }),
  );
  await commit(at, ...second, firstTurn(at, { create: instance({ id: first[0]?.create?.id ?? "" }) }));
  const [some] = first;
  assert.ok(some);
  const read = async () => {
    assert.equal((await store.findInstance(at.tenant, some.create?.id ?? ""))?.run, some.run);
    await Promise.all([store.getInstance(some), store.readLastTurn(some), store.readHistory(some, 2, 5)]);
    assert.equal((await store.loadInstances(first.slice(0, 5))).length, Math.min(5, count));
    await store.findStartKey(at.tenant, "order", some.create?.startKey?.key ?? "");
    await store.listTimers(at.shards, 1_000, 10);
    await store.listInbox(at.shards, { limit: 10 });
    await store.listRunnable(at.shards, "busy", { limit: 10 });
    await Promise.all([store.readInbox(some, { limit: 10 }), store.readHeartbeats(some), store.readStepOutcomes(some)]);
    await store.listDeadLetters(at.tenant, {}, { limit: 10 });
    await store.getDeadLetter({ tenant: at.tenant, run: some.run, effect: "2" });
  };
  await read();
  const handed = publication(at, { key: published[1]?.key ?? "" });
  await store.publish(handed);
  const third = second.map((turn, index) => {
    const id = first[index]?.create?.id ?? "";
    return index % 2 === 0
      ? next(at, turn, { status: "Completed" })
      : next(at, turn, { status: "ContinuedAsNew", children: [child(at, turn, { id })] });
  });
  await commit(at, ...third, firstTurn(at, { status: "Completed" }));
  await read();
  await useAlone(at);
  await store.listClosedBefore(Date.UTC(2026, 0, 1), { after: { tenant: at.tenant, run: "" }, limit: 10 });
  await store.expirePublications(1);
  await store.expireStepOutcomes(1);
  await store.dropHeartbeats(first.slice(0, 2).map((turn) => ({ ...turn, effect: "1" })));
  await store.dropDeadLetters(first.slice(0, 2).map((turn) => ({ ...turn, effect: "3" })));
  await store.deleteRuns(first);
  await store.importRun({
    row: { ...some, id: unique("id-"), workflow: "w", version: "1", status: "open", busy: false, tail: 1, createdAt: 1 },
    attributes: { a: 1 },
    turns: [{ seq: 1, count: 1, at: 1, node: "n", events: "[]" }],
    inbox: [{ message: "m", fact: "1" }],
  });
}

/** What applications ask for in transactions of their own, `count` times. */
async function askForEverything(app: postgres.Sql, at: Scenario, count: number): Promise<void> {
  const [group] = await app<{ name: string }[]>`select name from wovyr.groups limit 1`;
  for (let n = 0; n < count; n += 1) {
    const [run, key] = [unique("run-"), unique("key-")];
    const start = [group?.name ?? "", "1", at.tenant, run, run, "w", "1", run, key, "d", "1", "start", "1", null, null];
    for (const outcome of ["started", "key-taken"]) assert.match(await answer("start_in_1", start), new RegExp(outcome));
    assert.match(
      await answer("start_in_1", [...start.slice(0, 3), unique("run-"), run, ...start.slice(5, 8), null, null, ...start.slice(10)]),
      /id-taken/,
    );
    for (const outcome of ["asked", "known"])
      assert.match(await answer("send_in_1", [group?.name ?? "", "1", at.tenant, run, "m", "d", "1"]), new RegExp(outcome));
    for (const outcome of ["asked", "known"])
      assert.match(await answer("publish_in_1", [group?.name ?? "", "1", at.tenant, key, key, "d", "1"]), new RegExp(outcome));
  }

  async function answer(name: string, parameters: (string | null)[]): Promise<string> {
    const [row] = await app.unsafe(
      `select wovyr.${name}(${parameters.map((_, at) => `$${at + 1}::text`).join(", ")}) as answer`,
      parameters,
    );
    return String(row?.answer);
  }
}

/** Fills every table with closed and open instances of the same tenant, behind the statistics' back. */
async function fill(database: TestDatabase, at: Scenario): Promise<void> {
  const elsewhere = shard(at) + 1_000_000;
  await database.admin.unsafe(`
    insert into wovyr.instances (created_at, closed_at, shard, tail, busy, tenant, run, id, workflow, version, status, nonce)
      select 1, case when n % 2 = 0 then 1 end, ${elsewhere}, 1, n % 4 = 1, '${at.tenant}', 'bulk' || n, 'bulk' || n, 'w', '1', 'open', ''
      from generate_series(1, ${bulk}) n;
    insert into wovyr.history (at, seq, count, tenant, run, node, events)
      select 1, 1, 1, '${at.tenant}', 'bulk' || n, 'n', '[]' from generate_series(1, ${bulk}) n;
    insert into wovyr.timers (due, shard, tenant, run, effect) select n, ${elsewhere}, '${at.tenant}', 'bulk' || n, '1' from generate_series(1, ${bulk}) n;
    insert into wovyr.inbox (shard, tenant, run, message, fact)
      select ${elsewhere}, '${at.tenant}', 'bulk' || n, 'm', '1' from generate_series(1, ${bulk}) n;
    insert into wovyr.start_keys (at, tenant, slot, run, digest) select 1, '${at.tenant}', 'bulk' || n, 'r', 'd' from generate_series(1, ${bulk}) n;
    insert into wovyr.instance_attributes (tenant, run, attributes)
      select '${at.tenant}', 'bulk' || n, '{"a":1}' from generate_series(1, ${bulk}) n;
    insert into wovyr.waits (shard, tenant, run, effect, name, key, topic)
      select ${elsewhere}, '${at.tenant}', 'bulk' || n, '1', 'n', 'k', 'bulk' || n from generate_series(1, ${bulk}) n;
    insert into wovyr.publications (at, tenant, id, name, key, topic, digest, fact)
      select 1000, '${at.tenant}', 'bulk' || n, 'n', 'k', 'bulk' || n, 'd', '{"x":1}' from generate_series(1, ${bulk}) n;
    insert into wovyr.dead_letters (at, attempts, tenant, run, effect, kind, workflow, id, name, failure)
      select n, 1, '${at.tenant}', 'bulk' || n, '1', 'activity', 'w', 'i', 'n', '{}' from generate_series(1, ${bulk}) n;
    insert into wovyr.heartbeats (at, attempt, tenant, run, effect, details)
      select 1, 1, '${at.tenant}', 'bulk' || n, '1', '1' from generate_series(1, ${bulk}) n;
    insert into wovyr.requests (shard, tenant, run, message, kind, digest, fact)
      select ${elsewhere}, '${at.tenant}', 'bulk' || n, 'm', 'send', 'd', '1' from generate_series(1, ${bulk}) n;
    insert into wovyr.step_outcomes (at, tenant, run, effect, outcome)
      select 1000, '${at.tenant}', 'bulk' || n, '1', '1' from generate_series(1, ${bulk}) n;`);
}

async function rowsRead({ admin }: TestDatabase): Promise<number> {
  // A session reports what it counted when it ends.
  while ((await admin`select from pg_stat_activity where application_name = 'wovyr' and datname = current_database()`).length > 0);
  const [row] = await admin<{ sum: string }[]>`
    select (select sum(seq_tup_read) from pg_stat_user_tables where schemaname = 'wovyr' and relname in ${admin(tables)})
      + (select sum(idx_tup_read) from pg_stat_user_indexes where schemaname = 'wovyr' and relname in ${admin(tables)}) as sum`;
  return Number(row?.sum);
}

for (const rows of [0, 1, 3]) {
  test(`every repeated statement goes by index, though its plan was made when the tables held ${rows} rows`, async (context) => {
    const database = await createDatabase();
    context.after(() => database.drop());
    const settings = { writeConnections: 1, readConnections: 1 };
    const store = await postgresStore(database.url, settings).open(contractStoreOptions);
    context.after(() => store.close());
    const at = await scenario(store);
    for (let row = 0; row < rows; row += 1) {
      const turn = await start(at, {
        timers: [{ effect: "1", due: 1 }],
        attributes: { a: 1 },
        create: instance({ startKey: { key: `early-${row}`, digest: "d" } }),
      });
      await store.post([message(at, turn.run)]);
    }
    await database.admin.unsafe(`analyze ${tables.map((table) => `wovyr.${table}`).join(", ")}`);
    // Sessions keep the plans that they make now.
    for (let round = 0; round < 7; round += 1) await useEverything(at, 1);
    const app = postgres(database.url, { max: 1, onnotice: () => {}, connection: { application_name: "wovyr" } });
    context.after(() => app.end());
    await askForEverything(app, at, 1);
    await fill(database, at);
    // So few rows that reading one table once would outweigh all that is needed.
    await useEverything(at, 20);
    await askForEverything(app, at, 5);
    await app.end();
    await store.close();
    const read = await rowsRead(database);
    assert.ok(read < bulk / 2, `${read} rows were read`);
  });
}
