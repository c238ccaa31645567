import assert from "node:assert/strict";
import { test } from "node:test";
import { type InboxMessage, type Store, type StoreProvider, StoreUnavailableError } from "../../src/engine/ports/store.ts";
import { child, commit, instance, message, next, publication, start, wholeGroup } from "../../src/store/contract/scenario.ts";
import { severalDatabases } from "../../src/store/databases/databases.ts";
import { memoryStore } from "../../src/store/memory.ts";
import { postgresStore } from "../../src/store/postgres.ts";
import { contractStoreOptions, storeContract } from "../../src/store-contract.ts";
import { storeAround } from "../cluster/store-around.ts";
import { until } from "../recovery/until.ts";
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
  // What takes long, and is asked of each database by itself, is tried on one.
  { parts: ["lifecycle", "ownership", "turns", "children", "inbox", "timers", "deadLetters", "wholeRuns", "tasks", "reads", "texts"] },
);

for (const kind of ["memory", "Postgres"] as const)
  test(`what a turn says to another database is there soon after it, once, and publications are in all (${kind})`, async () => {
    const databases = kind === "memory" ? [] : await Promise.all([createDatabase(), createDatabase()]);
    const provider = kind === "memory" ? severalDatabases([memoryStore(), memoryStore()]) : postgresStore(databases.map(({ url }) => url));
    const store = await provider.open(contractStoreOptions);
    const at = await wholeGroup(store, 2);
    const [here, there] = at.shards as [number, number];
    assert.notEqual(store.databases?.placeOf(here), store.databases?.placeOf(there));
    const arrivals: string[] = [];
    store.databases?.listen((all) => arrivals.push(...all.map(({ run, message }) => `${run} ${message ?? ""}`)));
    const waits = (effect: string) => [{ effect, name: "paid", key: "k", after: 0 }];
    const [near, far] = [await start(at, { shard: here, waits: waits("1") }), await start(at, { shard: there, waits: waits("2") })];
    const holder = await start(at, { shard: there, create: instance({ id: "taken" }) });
    const born = { ...child(at, near, { id: "born", startKey: { key: "k", digest: "d" } }), shard: there };
    const refused = { ...child(at, near, { id: "taken" }), shard: there };
    const sent = [message(at, far.run, { shard: there }), message(at, far.run, { shard: there }), message(at, "unknown", { shard: there })];
    const turn = next(at, near, { children: [born, refused], sends: sent });
    assert.deepEqual(await commit(at, turn), [near.run]);
    await until("it was brought over", () => arrivals.length === 5);
    const fetched = async (run: string, shard: number) =>
      (await store.readInbox({ tenant: at.tenant, run, shard }, { limit: 10 })).map((each) => each.message);
    assert.deepEqual(await fetched(far.run, there), [sent[0]?.message, sent[1]?.message]);
    assert.deepEqual(await fetched(born.run, there), [born.start.message]);
    assert.deepEqual(await fetched(near.run, here), [refused.rejection.message]);
    assert.deepEqual(await fetched("unknown", there), []);
    assert.equal((await store.findInstance(at.tenant, "taken", there))?.run, holder.run);
    assert.deepEqual(await store.findStartKey(at.tenant, "order", "k", here), { run: born.run, digest: "d" });
    const published = publication(at, { key: "k" });
    for (const known of [false, true]) {
      const outcome = await store.publish(published);
      assert.deepEqual([outcome.known, outcome.reached], [known, 2]);
    }
    for (const [run, shard] of [
      [near.run, here],
      [far.run, there],
    ] as const)
      assert.ok((await fetched(run, shard)).includes(`publication:${published.id}`));
    // A run that begins to wait looks back in its own database.
    const late = await start(at, { shard: there, waits: waits("3") });
    assert.deepEqual(await fetched(late.run, there), [`publication:${published.id}`]);
    for (const { admin } of databases) await until("outboxes are empty", async () => (await admin`select from wovyr.outbox`).length === 0);
    await store.close();
    await Promise.all(databases.map((database) => database.drop()));
  });

test("what a turn says is found when it became durable after its writer had given the first try up", async () => {
  let lost = false;
  const inner: Store[] = [];
  const losing: StoreProvider = {
    ...memoryStore(),
    async open(options) {
      const store = await memoryStore().open(options);
      inner.push(store);
      return storeAround(store, (name, _args, call) => {
        if (name !== "commit" || !lost) return call();
        lost = false;
        throw new StoreUnavailableError("the connection was lost");
      });
    },
  };
  const store = await severalDatabases([losing, losing]).open(contractStoreOptions);
  const at = await wholeGroup(store, 2);
  const [here, there] = at.shards as [number, number];
  const arrivals: string[] = [];
  store.databases?.listen((all) => arrivals.push(...all.map(({ message }) => message ?? "")));
  const sender = await start(at, { shard: here });
  const receiver = await start(at, { shard: there });
  const sent = [1, 2].map(() => message(at, receiver.run, { shard: there })) as [InboxMessage, InboxMessage];
  const turn = next(at, sender, { sends: [sent[0]] });
  lost = true;
  await assert.rejects(store.commit({ fence: at.fence, turns: [turn] }), { code: "STORE_UNAVAILABLE" });
  // It arrives there after all.
  const parcel = { kind: "send", message: sent[0] } as const;
  const [first] = inner as [Store];
  await first.commit({ fence: at.fence, turns: [{ ...turn, sends: [], outbox: [{ name: `${turn.tail + 1}.0`, target: 1, parcel }] }] });
  assert.deepEqual(await commit(at, turn), []);
  assert.deepEqual(await commit(at, next(at, turn, { sends: [sent[1]] })), [sender.run]);
  await until("both were brought", () => arrivals.length === 2);
  assert.deepEqual(
    arrivals,
    sent.map((each) => each.message),
  );
  await store.close();
});

test("a queue is that of all databases: what is in it is summed up, and the oldest of all is told", async () => {
  let now = 0;
  const store = await severalDatabases([memoryStore(), memoryStore()]).open({ ...contractStoreOptions, now: () => now });
  const at = await wholeGroup(store, 2);
  const [here, there] = at.shards as [number, number];
  const task = { queue: "b", name: "work", attempt: 1, losses: 0, priority: 2, requires: [], input: "1", about: "{}" };
  const asks = async (time: number, shard: number, queue: string) => {
    now = time;
    await start(at, { shard, tasks: [{ ...task, effect: "0", queue }] });
  };
  await asks(1_000, there, "b");
  // Whichever is asked first.
  for (let turn = 0; turn < 2; turn += 1) assert.deepEqual(await store.tasks.sweep([here, there], 10), { overdue: [], waits: true });
  await asks(2_000, here, "b");
  await asks(3_000, there, "a");
  await asks(4_000, here, "c");
  await asks(5_000, there, "c");
  const depth = (queue: string, waiting: number, oldestAt: number) => ({ queue, waiting, leased: 0, oldestAt });
  assert.deepEqual(new Set(await store.tasks.depths()), new Set([depth("a", 1, 3_000), depth("b", 2, 1_000), depth("c", 2, 4_000)]));
  const waiting = (limit: number) => store.tasks.waiting({ taken: ["c"], longest: 60_000, limit });
  now = 61_500;
  const oldest = { queue: "b", late: { shard: there, waited: 60_500 } };
  assert.deepEqual(await waiting(10), [{ queue: "a" }, oldest, { queue: "c" }]);
  assert.deepEqual(await waiting(2), [{ queue: "a" }, oldest]);
  now = 70_000;
  assert.deepEqual((await waiting(2))[1], { queue: "b", late: { shard: there, waited: 69_000 } });
  await store.tasks.saveWorkers([{ id: "w", about: "{}", takes: ["a"], within: 1_000 }]);
  assert.deepEqual(await store.tasks.takers(), new Map([["a", 1]]));
  await store.close();
});

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
