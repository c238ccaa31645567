import assert from "node:assert/strict";
import { test } from "node:test";
import { severalDatabases } from "../../src/store/databases/databases.ts";
import { memoryStore } from "../../src/store/memory.ts";
import { postgresStore } from "../../src/store/postgres.ts";
import { contractStoreOptions, storeContract } from "../../src/store-contract.ts";
import { createDatabase, type TestDatabase } from "./postgres-database.ts";

storeContract("a store over two databases in memory", () => ({ provider: severalDatabases([memoryStore(), memoryStore()]) }));

storeContract(
  "a store over two Postgres databases",
  async () => {
    const databases = [await createDatabase(), await createDatabase()];
    return {
      provider: postgresStore(databases.map(({ url }) => url)),
      dispose: async () => void (await Promise.all(databases.map((database) => database.drop()))),
    };
  },
  { runs: 5 },
);

test("databases that do not fit together are refused, and nothing is written to them", async () => {
  const databases = await Promise.all(Array.from({ length: 4 }, createDatabase));
  const [a, b, c, alone] = databases as [TestDatabase, TestDatabase, TestDatabase, TestDatabase];
  const open = (...chosen: readonly TestDatabase[]) => postgresStore(chosen.map(({ url }) => url)).open(contractStoreOptions);
  const beat = {
    group: "g",
    shards: 4,
    node: "n",
    release: "1",
    workflows: [],
    draining: false,
    lease: 1_000,
    give: [],
    take: "free",
  } as const;
  const refused = (chosen: readonly TestDatabase[], message: RegExp) =>
    assert.rejects(open(...chosen), (error: { code?: string; message: string }) => {
      assert.equal(error.code, "STORE_INCOMPATIBLE");
      assert.match(error.message, message);
      assert.doesNotMatch(error.message, /postgres:\/\//);
      return true;
    });
  const first = await open(a, b);
  assert.equal((await first.beat(beat)).shards.filter(({ owner }) => owner === "n").length, 4);
  await first.close();
  const single = await postgresStore(alone.url).open(contractStoreOptions);
  await single.beat(beat);
  await single.close();
  await refused([b, a], /number 2 of its set, and was given as number 1/);
  await refused([a, b, c], /one of 2 databases, and 3 were given/);
  await refused([a, c], /is of no set, though the others are in use/);
  await refused([c, alone], /used by itself/);
  await refused([a], /number 1 of 2 that are used as one store/);
  assert.throws(() => postgresStore([a.url, a.url]), { code: "INVALID_OPTION" });
  for (const untouched of [c, alone]) assert.deepEqual([...(await untouched.admin`select id from wovyr.database_sets`)], []);
  const again = await open(a, b);
  assert.equal((await again.beat({ ...beat, node: "m", dead: ["n"] })).shards.filter(({ owner }) => owner === "m").length, 4);
  await again.close();
  await Promise.all(databases.map((database) => database.drop()));
});
