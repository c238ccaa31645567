import assert from "node:assert/strict";
import { test } from "node:test";
import { scenario, start } from "../../src/store/contract/scenario.ts";
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
  await store.deleteRuns([{ tenant: "u", run: "r" }]);
  assert.equal((await store.listStrikes()).length, 3, "no run was deleted");
  const at = await scenario(store);
  const closed = await start(at, { status: "Completed" });
  await recordStrike(store.strikes, { ...strike, tenant: at.tenant, run: closed.run });
  assert.equal((await store.listStrikes()).length, 4);
  await store.deleteRuns([closed]);
  assert.equal((await store.listStrikes()).length, 3);
  await store.clearStrikes({ tenant: "t", run: "r" });
  assert.deepEqual(await store.listStrikes(), [{ ...strike, tenant: "u", count: 1 }]);
  await store.close();
  await database.drop();
});
