import assert from "node:assert/strict";
import { test } from "node:test";
import { commit, firstTurn, next, scenario, start } from "../../src/store/contract/scenario.ts";
import { postgresStore } from "../../src/store/postgres.ts";
import { recordStrike } from "../../src/store/strike-sink.ts";
import { contractStoreOptions, storeContract } from "../../src/store-contract.ts";
import { createDatabase } from "./postgres-database.ts";

storeContract("the Postgres store", async () => {
  const database = await createDatabase();
  return { provider: postgresStore(database.url), dispose: () => database.drop() };
});

storeContract(
  "the Postgres store behind a pooler (H089: nothing prepared, no session state)",
  async () => {
    const database = await createDatabase();
    return { provider: postgresStore(database.url, { prepare: false }), dispose: () => database.drop() };
  },
  { runs: 10 },
);

test("strikes from the watchdog's thread are counted per run and tail, and cleared per run", async () => {
  const database = await createDatabase();
  const store = await postgresStore(database.url).open(contractStoreOptions);
  const strike = { tenant: "t", run: "r", tail: 3, workflow: "w" };
  await Promise.all([recordStrike(store.strikes, strike), recordStrike(store.strikes, strike)]);
  await recordStrike(store.strikes, { ...strike, tail: 4 });
  await recordStrike(store.strikes, { ...strike, tenant: "u" });
  assert.deepEqual(await store.listStrikes(), [
    { ...strike, count: 2 },
    { ...strike, tail: 4, count: 1 },
    { ...strike, tenant: "u", count: 1 },
  ]);
  await store.clearStrikes({ tenant: "t", run: "r" });
  assert.deepEqual(await store.listStrikes(), [{ ...strike, tenant: "u", count: 1 }]);
  await store.close();
  await database.drop();
});

test("a flush reads its tables by index even when its plan was made while they were nearly empty", async () => {
  const database = await createDatabase();
  const store = await postgresStore(database.url, { writeConnections: 1, readConnections: 1 }).open(contractStoreOptions);
  const at = await scenario(store);
  const everything = async (count: number) => {
    const turns = Array.from({ length: count }, (_, index) => firstTurn(at, { busy: true, timers: [{ effect: "1", due: index }] }));
    await commit(at, ...turns);
    await commit(at, ...turns.map((turn) => next(at, turn, { status: "Completed", sends: [], consumed: ["x"], timersDone: ["1"] })));
    const run = await start(at);
    await Promise.all([
      store.getInstance(run),
      store.findInstance(at.tenant, run.create?.id ?? ""),
      store.loadInstances([run]),
      store.readLastTurn(run),
    ]);
    await store.listTimers(at.shards, 1_000, 10);
  };
  // Statistics of nearly empty tables, and sessions that keep the plans that they suggest.
  await start(at, { timers: [{ effect: "1", due: 1 }] });
  await database.admin.unsafe("analyze wovyr.instances, wovyr.history, wovyr.timers, wovyr.inbox");
  for (let round = 0; round < 7; round += 1) await everything(1);
  await database.admin.unsafe(`
    insert into wovyr.instances (created_at, shard, tail, busy, tenant, run, id, workflow, version, status, nonce)
      select 1, 1, 1, false, 'bulk', 'run' || n, 'id' || n, 'w', '1', 'open', '' from generate_series(1, 50000) n;
    insert into wovyr.history (at, seq, count, tenant, run, node, events) select 1, 1, 1, 'bulk', 'run' || n, 'n', '[]' from generate_series(1, 50000) n;
    insert into wovyr.timers (due, shard, tenant, run, effect) select n, 1000000, 'bulk', 'run' || n, '1' from generate_series(1, 50000) n;
    insert into wovyr.inbox (shard, tenant, run, message, fact) select 1000000, 'bulk', 'run' || n, 'm', '1' from generate_series(1, 50000) n;`);
  const rowsReadBySeqScan = async (): Promise<number> => {
    // Ending the store's sessions makes them report what they counted.
    await database.admin`select pg_stat_force_next_flush()`;
    const [row] = await database.admin<{ sum: string }[]>`
      select sum(seq_tup_read) from pg_stat_user_tables where schemaname = 'wovyr' and relname in ('instances', 'history', 'timers', 'inbox')`;
    return Number(row?.sum);
  };
  const before = await rowsReadBySeqScan();
  for (let round = 0; round < 8; round += 1) await everything(200);
  await store.close();
  while ((await database.admin`select from pg_stat_activity where application_name = 'wovyr' and datname = current_database()`).length > 0);
  assert.ok((await rowsReadBySeqScan()) - before < 50_000, "no statement read a table whole");
  await database.drop();
});
