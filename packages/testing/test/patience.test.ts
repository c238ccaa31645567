import assert from "node:assert/strict";
import { test } from "node:test";
import { activity, awaitEvent, event, sleep, workflow } from "@wovyr/sdk";
import { memoryStore } from "@wovyr/server";
import { createFaultyStore, createTestEnvironment, explore, FaultPlan, Gate } from "@wovyr/testing";

/** Milliseconds: an engine on a busy machine starts within it. */
const patience = 1_000;

const Go = event("go");
const nap = workflow("nap", async function* () {
  yield* sleep("1 day");
  return "up";
});
const patient = workflow("patient", async function* () {
  yield* awaitEvent(Go);
});

/** Keeps the process alive, as a server or a connection of the test does. */
function alive(): Disposable {
  const timer = setInterval(() => {}, 1_000);
  return { [Symbol.dispose]: () => clearInterval(timer) };
}

test("an activity that hangs while the process lives is told when patience is over", async () => {
  using _alive = alive();
  const hang = activity("hang", () => new Promise<void>(() => {}));
  const stuck = workflow("stuck", async function* () {
    yield* hang();
  });
  await using env = await createTestEnvironment({ workflows: [stuck], patience });
  await assert.rejects(env.execute(stuck, undefined, { id: "s" }), {
    code: "TIMED_OUT",
    message: /waits for the result of s: activity "hang" \(attempt 1, instance s\) has been under way for more than 1000 ms .*env\.sleep/,
  });
  await assert.rejects(
    env.until(() => false),
    /activity "hang"/,
  );
});

test("a store call that is held for ever, and a codec that never answers, are told", async () => {
  using _alive = alive();
  const plan = new FaultPlan();
  await using env = await createTestEnvironment({ workflows: [nap], store: createFaultyStore(memoryStore(), plan), patience });
  plan.hold("commit");
  await assert.rejects(env.execute(nap), /the store's "commit" has been under way/);
  await assert.rejects(env.advance("1h"), /waits for env\.advance\(\): the store's "commit"/);
  await assert.rejects(env.settle(), /waits for env\.settle\(\)/);
  const codec = { name: "slow", encode: () => new Promise<never>(() => {}), decode: async (payload: string) => payload };
  await using other = await createTestEnvironment({ workflows: [nap], codec: codec as never, patience });
  await assert.rejects(other.execute(nap), /encode\(\) of codec "slow" has been under way/);
});

test("a store that does nothing but fail ends the wait, and says since when", async () => {
  const plan = new FaultPlan();
  await using env = await createTestEnvironment({ workflows: [nap], store: createFaultyStore(memoryStore(), plan) });
  plan.fail("commit", { times: Number.POSITIVE_INFINITY });
  await assert.rejects(env.execute(nap), {
    code: "TIMED_OUT",
    message:
      /the store is away since 2026-01-01T00:00:00\.000Z: its "commit" has failed [\d,]+ times in a row \(planned fault before commit\)/,
  });
  plan.clear();
  assert.equal(await env.insist(() => env.execute(nap)), "up");
  plan.fail("beat", { times: Number.POSITIVE_INFINITY });
  await assert.rejects(env.restart(), /the engine has not come up: beat fails: planned fault/);
});

test("time jumps over a delay under the environment's clock", async () => {
  const plan = new FaultPlan();
  await using env = await createTestEnvironment({ workflows: [nap], store: createFaultyStore(memoryStore(), plan) });
  plan.clock = env.clock;
  plan.delay("commit", 60_000, { times: 2 }).delay("findInstance", 30_000, { at: "after" });
  assert.equal(await env.execute(nap), "up");
  assert.equal(env.now().toISOString(), "2026-01-02T00:01:00.000Z");
  await env
    .handle(nap, "nobody")
    .describe()
    .catch(() => {});
  assert.equal(env.now().toISOString(), "2026-01-02T00:01:30.000Z");
});

test("while the store is disconnected time stands, and whoever waits goes on when it is back", async () => {
  using _alive = alive();
  const plan = new FaultPlan();
  await using env = await createTestEnvironment({ workflows: [nap, patient], store: createFaultyStore(memoryStore(), plan) });
  const run = await env.start(nap);
  const result = run.result();
  plan.disconnect();
  await new Promise((resolve) => setTimeout(resolve, 30));
  assert.equal(env.now().toISOString(), "2026-01-01T00:00:00.000Z");
  plan.reconnect();
  assert.equal(await result, "up");
  plan.disconnect();
  const sent = env.insist(() => env.start(patient, undefined, { id: "p" }));
  await new Promise((resolve) => setTimeout(resolve, 30));
  plan.reconnect();
  assert.equal((await sent).id, "p");
  await using brief = await createTestEnvironment({ workflows: [nap], store: createFaultyStore(memoryStore(), plan), patience });
  const lost = brief.execute(nap);
  plan.disconnect();
  await assert.rejects(lost, /the store is disconnected, and time stands until plan\.reconnect\(\)/);
});

test("manual time that nobody moves is told when patience is over", async () => {
  using _alive = alive();
  await using env = await createTestEnvironment({ workflows: [nap], autoSkip: false, patience });
  await assert.rejects(env.execute(nap), /time is moved by hand here, and nobody has moved it on/);
});

test("an engine that is stopped by its own activity, or with one running, holds nobody up", async () => {
  let stopping = () => Promise.resolve();
  const stops = activity("stops", async () => {
    await stopping();
    return "stopped";
  });
  const one = workflow("one", async function* () {
    return yield* stops();
  });
  {
    await using env = await createTestEnvironment({ workflows: [one] });
    stopping = () => env.stop();
    await assert.rejects(env.execute(one), /the engine is down, and env\.restart\(\) starts another/);
  }
  const gate = new Gate<undefined, string>(() => "gate");
  stopping = () => gate.body(undefined, {} as never).then(() => {});
  await using env = await createTestEnvironment({ workflows: [one] });
  const run = await env.start(one);
  await env.until(() => gate.waiting.includes("gate"));
  await env.stop();
  const result = run.result();
  await env.restart();
  gate.open("gate", "first");
  gate.open("gate", "second");
  assert.equal(await result, "stopped");
});

test("an exploration tells the case in which an attempt hangs, and in which a workflow has no end", async () => {
  using _alive = alive();
  let calls = 0;
  const sometimes = activity("sometimes", () => (++calls > 3 ? new Promise<void>(() => {}) : Promise.resolve()));
  const hangs = workflow("hangs", async function* () {
    yield* sometimes();
  });
  await assert.rejects(explore(hangs, undefined, { patience }), {
    name: "ExplorationError",
    message: /case: 1[^\n]*\n {2}activity sometimes \[0\] has been running for more than 1000 ms/,
  });
  const endless = workflow("endless", async function* () {
    for (;;) yield* sleep("1 day");
  });
  await assert.rejects(explore(endless, undefined, { maxSteps: 40 }), /has not ended after 40 steps: a workflow without an end/);
});

test("thousands of results with different times take no longer than their turns", async () => {
  const short = workflow("short", async function* (seconds: number) {
    yield* sleep(seconds * 1_000);
    return seconds;
  });
  await using env = await createTestEnvironment({ workflows: [short] });
  const runs = await Promise.all(Array.from({ length: 3_000 }, (_, index) => env.start(short, index + 1)));
  const began = performance.now();
  const results = await Promise.all(runs.map((run) => run.result()));
  assert.equal(results.length, 3_000);
  assert.ok(performance.now() - began < 10_000, `took ${performance.now() - began} ms`);
});

test("an activity that waits for another run does not hold time up, and one that waits for its own is told", async () => {
  let waiting: () => Promise<unknown> = async () => {};
  const asks = activity("asks", { timeout: { startToClose: "3 days" } }, async () => {
    await waiting();
    return "asked";
  });
  const asking = workflow("asking", async function* () {
    return yield* asks();
  });
  await using env = await createTestEnvironment({ workflows: [asking, nap, patient] });
  waiting = () => env.execute(nap);
  assert.equal(await env.execute(asking), "asked");
  assert.equal(env.now().toISOString(), "2026-01-02T00:00:00.000Z");
  waiting = () => env.until(() => env.now().getTime() > Date.UTC(2026, 0, 3));
  const other = await env.start(nap);
  await Promise.all([other.result(), env.start(nap).then((run) => run.result())]);
  waiting = () => env.handle(patient, "p").result();
  await env.start(patient, undefined, { id: "p" });
  await assert.rejects(env.execute(asking), /startToClose|will never end/);
});
