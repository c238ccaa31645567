import assert from "node:assert/strict";
import { test } from "node:test";
import { activity, child, sleep, workflow } from "@wovyr/sdk";
import { pgliteStore, postgresStore } from "@wovyr/server";
import { type Beat, memoryStore, nothingDone, type Store, type StoreProvider, StoreUnavailableError } from "@wovyr/server/internal";
import { contractStoreOptions } from "@wovyr/server/store-contract";
import { createFaultyStore, createTestEnvironment, FaultPlan, type FaultRates, VirtualClock } from "@wovyr/testing";

const unavailable = (error: unknown) => error instanceof StoreUnavailableError;
const noTurns = { fence: [], turns: [] };

async function opened(plan: FaultPlan | FaultRates, provider: StoreProvider = memoryStore()): Promise<Store> {
  return createFaultyStore(provider, plan).open(contractStoreOptions);
}

const echo = activity("echo", async (n: number) => n);
const small = workflow("small", async function* (n: number) {
  return yield* echo(n);
});
const everything = workflow("everything", async function* (n: number) {
  const first = yield* echo(n);
  yield* sleep("1h");
  return first + (yield* child(small, 1));
});

test("a call fails before or after its work, so many times, where it is wanted", async () => {
  const plan = new FaultPlan().fail("listInstances", { times: 2, where: ({ args }) => args[0] === "a" });
  const store = await opened(plan);
  const list = (tenant: string) => store.listInstances(tenant, {}, { limit: 1 });
  assert.deepEqual(await list("b"), []);
  await assert.rejects(list("a"), unavailable);
  await assert.rejects(list("a"), unavailable);
  assert.deepEqual(await list("a"), []);
  plan.fail("ping", { at: "after", error: new RangeError("mine") });
  await assert.rejects(store.ping(), RangeError);
  assert.equal(plan.met, 3);
  assert.equal(plan.describe(), "2 × listInstances failed before, 1 × ping failed after");
  assert.deepEqual(plan.log[2], { kind: "fail", method: "ping", at: "after", chance: false });
});

test("those who watch see every call, and take no fault from the next", async () => {
  const plan = new FaultPlan();
  const seen: string[] = [];
  plan.watch("ping", ({ method }) => void seen.push(method)).fail("ping");
  const store = await opened(plan);
  await assert.rejects(store.ping(), unavailable);
  await store.ping();
  assert.deepEqual(seen, ["ping", "ping"]);
  assert.equal(plan.met, 1);
  plan.clear();
  await store.ping();
  assert.equal(seen.length, 2);
});

test("a delay takes the time of the clock that is given", async () => {
  const clock = new VirtualClock(0);
  const plan = new FaultPlan({ clock }).delay("ping", 60_000).delay("ping", 1_000, { at: "after" });
  const store = await opened(plan);
  let done = false;
  const ping = store.ping().then(() => {
    done = true;
  });
  const macrotask = () => new Promise((resolve) => setImmediate(resolve));
  await macrotask();
  clock.advance(60_000);
  for (let turn = 0; turn < 5; turn++) await macrotask();
  assert.equal(done, false, "the answer is late as well");
  clock.advance(1_000);
  await ping;
  assert.deepEqual(
    plan.log.map(({ at, delay }) => [at, delay]),
    [
      ["before", 60_000],
      ["after", 1_000],
    ],
  );
});

test("a delay takes real time unless told otherwise", async () => {
  const store = await opened(new FaultPlan().delay("ping", 30));
  const began = performance.now();
  await store.ping();
  assert.ok(performance.now() - began >= 25);
});

test("while it is disconnected every call fails, opening included; calls under way are cut, and may still be done", async () => {
  const plan = new FaultPlan();
  const provider = memoryStore();
  const store = await opened(plan, provider);
  const held = plan.hold("beat");
  const beat = (node: string): Beat => ({
    group: "g",
    shards: 2,
    node,
    release: "",
    workflows: [],
    draining: false,
    lease: 60_000,
    give: [],
    take: "free",
  });
  const claim = store.beat(beat("me"));
  await held.reached;
  plan.disconnect();
  await assert.rejects(claim, unavailable);
  await assert.rejects(store.ping(), unavailable);
  await assert.rejects(opened(plan, provider), unavailable);
  held.release();
  plan.reconnect();
  await store.ping();
  const again = await store.beat(beat("other"));
  assert.ok(
    again.shards.every(({ owner }) => owner === "me"),
    "the call that was cut came through after all",
  );
  plan.disconnect();
  await store.close();
});

test("an engine whose store is away refuses clearly, and goes on when it is back", async () => {
  const plan = new FaultPlan();
  await using env = await createTestEnvironment({ workflows: [everything, small], store: createFaultyStore(memoryStore(), plan) });
  const run = await env.start(everything, 4);
  await env.settle();
  plan.disconnect();
  await env.advance("1h");
  await assert.rejects(run.describe(), { code: "STORE_UNAVAILABLE" });
  plan.reconnect();
  assert.equal(await run.result(), 5);
  assert.match(plan.describe(), /cut off/);
});

test("a refused commit does nothing, and says so", async () => {
  const plan = new FaultPlan().refuse("commit", { times: 2 });
  const store = await opened(plan);
  for (let time = 0; time < 2; time++) assert.deepEqual(await store.commit(noTurns), nothingDone());
  assert.equal(plan.describe(), "2 × commit refused");
});

test("a run ends as it would have when any of its later commits is refused", async () => {
  for (let refused = 2; refused < 7; refused++) {
    const plan = new FaultPlan();
    let seen = 0;
    plan.refuse("commit", { where: () => ++seen === refused });
    await using env = await createTestEnvironment({ workflows: [everything, small], store: createFaultyStore(memoryStore(), plan) });
    assert.equal(await env.execute(everything, 4), 5, `commit ${refused}`);
  }
});

test("the same seed meets the same faults, and the plan tells the seed that it chose", async () => {
  const rates: FaultRates = { failBefore: 0.2, failAfter: 0.2, refuse: 0.2, delay: { rate: 0.1, upTo: 3 } };
  const play = async (seed: number | undefined) => {
    const provider = createFaultyStore(memoryStore(), seed === undefined ? rates : { ...rates, seed });
    const store = await provider.open(contractStoreOptions);
    for (let call = 0; call < 200; call++) await (call % 2 === 0 ? store.ping() : store.commit(noTurns)).catch(() => {});
    await store.close();
    return provider.plan;
  };
  const first = await play(undefined);
  const again = await play(first.seed);
  assert.deepEqual(again.log, first.log);
  assert.notDeepEqual((await play((first.seed ?? 0) + 1)).log, first.log);
  assert.ok(first.describe().includes(`(seed ${first.seed})`));
  const share = (kind: string, method?: string) =>
    first.log.filter((met) => met.kind === kind && (method === undefined || met.method === method)).length / 200;
  assert.ok(share("fail") > 0.25 && share("fail") < 0.55, first.describe());
  assert.ok(share("refuse") > 0.03, first.describe());
  assert.equal(share("refuse", "ping"), 0);
  assert.ok(share("delay") > 0.02, first.describe());
  assert.equal(first.log.length, first.met);
});

test("rates concern the methods that they name", async () => {
  const plan = new FaultPlan().random({ failBefore: 1, methods: ["ping"], seed: 3 });
  const store = await opened(plan);
  await assert.rejects(store.ping(), /seed 3/);
  await store.listStrikes();
  plan.clear();
  await store.ping();
  assert.equal(plan.met, 1);
});

test("a run ends as it would have over a store with faults by chance", async () => {
  for (const seed of [1, 2, 3, 4, 5]) {
    const plan = new FaultPlan();
    await using env = await createTestEnvironment({ workflows: [everything, small], store: createFaultyStore(memoryStore(), plan) });
    const run = await env.start(everything, 4);
    plan.random({ failBefore: 0.1, failAfter: 0.1, refuse: 0.1, methods: ["commit", "loadInstances", "listTimers"], seed });
    assert.equal(await run.result(), 5, plan.describe());
  }
});

test("every provider can be made faulty", async (context) => {
  const providers: StoreProvider[] = [memoryStore(), pgliteStore("memory://")];
  if (process.env.WOVYR_TEST_DATABASE_URL !== undefined) providers.push(postgresStore(process.env.WOVYR_TEST_DATABASE_URL));
  for (const provider of providers)
    await context.test(provider.kind, async () => {
      const plan = new FaultPlan();
      const faulty = createFaultyStore(provider, plan);
      assert.deepEqual([faulty.kind, faulty.shared], [provider.kind, provider.shared]);
      const store = await faulty.open(contractStoreOptions);
      assert.equal(store.strikes.kind, provider.kind === "postgres" ? "postgres" : store.strikes.kind);
      plan.fail("ping").refuse("commit");
      await assert.rejects(store.ping(), unavailable);
      await store.ping();
      assert.equal((await store.commit(noTurns)).done.size, 0);
      plan.disconnect();
      await assert.rejects(store.listStrikes(), unavailable);
      plan.reconnect();
      assert.deepEqual(await store.findInstance("default", "nobody"), undefined);
      await store.close();
    });
});

test("what is wrong with a plan is told", async () => {
  const plan = new FaultPlan();
  const wrong = (make: () => unknown, message: RegExp) => assert.throws(make, { code: "INVALID_OPTION", message });
  wrong(() => plan.fail("ping", { times: 0 }), /times/);
  wrong(() => plan.fail("ping", { at: "during" as never }), /before/);
  wrong(() => plan.fail("ping", { where: true as never }), /where/);
  wrong(() => plan.fail("ping", { count: 1 } as never), /count/);
  wrong(() => plan.delay("ping", -1), /length of delay/);
  wrong(() => plan.delay("ping", Number.POSITIVE_INFINITY), /length of delay/);
  wrong(() => plan.refuse("ping" as never), /commits only/);
  wrong(() => new FaultPlan({ seed: 1 } as never), /seed/);
  wrong(() => plan.random({ failBefore: 2 }), /failBefore/);
  wrong(() => plan.random({ failBefore: Number.NaN }), /failBefore/);
  wrong(() => plan.random({ failBefore: 0.6, failAfter: 0.6 }), /add up/);
  wrong(() => plan.random({ delay: { rate: 0.1 } as never }), /upTo/);
  wrong(() => plan.random({ delay: { upTo: 5 } as never }), /delay.rate/);
  wrong(() => plan.random({ methods: [] }), /methods/);
  wrong(() => plan.random({ seed: 0.5 }), /seed/);
  wrong(() => createFaultyStore(memoryStore(), { fail: 1 } as never), /fail/);
  plan.random({ failBefore: 0.1, failAfter: 0.2, refuse: 0.7 });
  wrong(() => plan.random({ methods: ["pong" as never] }), /no method "pong"/);
  wrong(() => plan.fail("pong" as never), /no method "pong"/);
  wrong(() => plan.fail("ping", { error: "away" as never }), /must be an Error/);
  wrong(() => plan.watch("ping", 5 as never), /function/);
  wrong(() => createFaultyStore(undefined as never, plan), /takes a store/);
  wrong(() => createFaultyStore(memoryStore(), undefined as never), /takes a plan/);
  wrong(() => new FaultPlan({ clock: new Date() as never }), /clock/);
  wrong(() => plan.hold("pong" as never), /no method "pong"/);
});
