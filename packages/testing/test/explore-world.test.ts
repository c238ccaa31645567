import assert from "node:assert/strict";
import { test } from "node:test";
import { activity, awaitEvent, child, event, sleep, Type, workflow } from "@wovyr/sdk";
import { memoryStore } from "@wovyr/server";
import {
  checkEndOfCase,
  createFaultyStore,
  createTestEnvironment,
  delivery,
  type ExplorationError,
  explore,
  FaultPlan,
  fake,
} from "@wovyr/testing";

const Paid = event("paid", Type.Object({ amount: Type.Number() }));
const waits = workflow("waits", async function* () {
  const first = yield* awaitEvent(Paid);
  yield* sleep("1h");
  const second = yield* awaitEvent(Paid);
  return [first.amount, second.amount];
});

test("a faked event comes whatever becomes of the commit that opened its wait", async () => {
  for (const after of [0, 3_600_000])
    for (const evict of [false, true])
      await explore(waits, undefined, {
        fakes: () => [fake(Paid, [{ amount: 4 }, { amount: 5 }], { after })],
        interleavings: evict ? 20 : 5,
        seed: evict ? 2 : 1,
        invariant: ({ output }) => assert.deepEqual(output, [4, 5]),
      });
});

test("a faked event comes also when the store loses the answer of the commit", async () => {
  for (const at of ["before", "after"] as const) {
    const plan = new FaultPlan().fail("commit", { at, times: 3 });
    const paid = fake(Paid, [{ amount: 4 }, { amount: 5 }]);
    await using env = await createTestEnvironment({ workflows: [waits], fakes: [paid], store: createFaultyStore(memoryStore(), plan) });
    assert.deepEqual(await env.execute(waits), [4, 5]);
    assert.equal(paid.calls.length, 2);
    await checkEndOfCase(env);
  }
});

test("what a workflow draws, its ids and its times are no false alarms", async () => {
  const label = activity("label", async (text: string) => `label ${text}`);
  const part = workflow("part", async function* () {
    return yield* label("part");
  });
  const drawn = workflow("drawn", async function* (_: undefined, ctx) {
    const began = ctx.now();
    yield* label("a");
    yield* sleep("1h");
    const done = yield* child(part);
    return { random: ctx.random(), uuid: ctx.uuid(), run: ctx.runId, began, at: ctx.now().toISOString(), time: ctx.now().getTime(), done };
  });
  const explored = await explore(drawn, undefined, { workflows: [part], interleavings: 10 });
  assert.equal(explored.sampled, false);
});

test("a real difference is told with its place", async () => {
  let lives = 0;
  const count = activity("count", async () => ++lives);
  const counting = workflow("counting", async function* () {
    return { steps: [{ lives: yield* count() }] };
  });
  await assert.rejects(
    explore(counting, undefined, { fakes: () => [fake(count, () => ++lives % 7)] }),
    /they differ at \.steps\[0\]\.lives/,
  );
});

test("steps name the effect, its input and when an attempt begins; the line to play it again names the workflow", async () => {
  const charge = activity("charge", async (_order: { id: string }) => 1);
  const order = workflow("order", async function* () {
    return yield* charge({ id: "7" });
  });
  const failed = (await explore(order, undefined, { crashes: "none", interleavings: 0, invariant: () => false }).catch(
    (error) => error,
  )) as ExplorationError;
  assert.match(failed.message, /activity charge \[0\] \{ id: "7" \} begins\n {2}activity charge \[0\] \{ id: "7" \} ends/);
  assert.match(failed.message, /explore\.replay\("1", order, …\)/);
  assert.match(failed.message, /the invariant does not hold: it answered with false/);
});

test("an asynchronous invariant is awaited", async () => {
  const small = workflow("small", async function* () {
    yield* sleep(1);
  });
  const invariant = async () => {
    await new Promise((resolve) => setImmediate(resolve));
    throw new Error("no");
  };
  await assert.rejects(explore(small, undefined, { invariant, maxCases: 2 }), /the invariant does not hold: no/);
});

test("a case whose fault never strikes is no case of this run", async () => {
  const small = workflow("small", async function* () {
    yield* sleep(1);
  });
  await explore.replay("1:crash-after-commit-2", small, undefined);
  await assert.rejects(explore.replay("1:crash-after-commit-9", small, undefined), {
    code: "INVALID_OPTION",
    message: /never struck: this run has only 2 commits/,
  });
  await assert.rejects(explore.replay("1:crash-before-activity-1", small, undefined), /this run has only 0 attempts/);
});

test("an exploration may refuse activities that have no fake", async () => {
  let real = 0;
  const mail = activity("mail", async () => {
    real += 1;
    return real;
  });
  const sends = workflow("sends", async function* () {
    yield* mail();
  });
  await assert.rejects(explore(sends, undefined, { unfaked: "refuse" }), /activity "mail" has no fake/);
  assert.equal(real, 0);
  await explore(sends, undefined, { unfaked: "refuse", fakes: () => [fake(mail, async () => 0)], interleavings: 2 });
});

test("over a store that fails by chance every documented call is survived with insist", async () => {
  const work = activity("work", async (n: number) => n * 2);
  const two = workflow("two", { events: [Paid] }, async function* () {
    const first = yield* work(1);
    yield* sleep("1h");
    const { amount } = yield* awaitEvent(Paid);
    return first + amount;
  });
  for (let seed = 1; seed <= 20; seed++) {
    const store = createFaultyStore(memoryStore(), { failBefore: 0.1, failAfter: 0.1, refuse: 0.05, seed });
    await using env = await createTestEnvironment({ workflows: [two], store });
    const run = await env.insist(() => env.start(two, undefined, { id: "t", idempotencyKey: "t" }));
    await env.insist(() => run.describe());
    if (seed % 2 === 0) await env.restart();
    await env.insist(() => env.send("t", Paid, { amount: 5 }, { idempotencyKey: "paid" }));
    assert.equal(await run.result(), 7, store.plan.describe());
    store.plan.clear();
    await checkEndOfCase(env);
  }
});

test("options that cannot be are refused before anything is played", async () => {
  const small = workflow("small", async function* () {});
  const wrong = (options: object, message: RegExp) => assert.rejects(explore(small, undefined, options as never), { message });
  await wrong({ interleaving: 2 }, /no option "interleaving"/);
  await wrong({ crashes: "some" }, /"everywhere" or "none", not "some"/);
  await wrong({ maxSteps: 0 }, /maxSteps/);
  await wrong({ seed: "x" }, /seed/);
  await wrong({ invariant: 5 }, /invariant/);
  await wrong({ events: [Paid] }, /made by delivery/);
  await wrong({ fakes: () => undefined }, /must make a list of fakes/);
  await wrong({ clock: new Date(Number.NaN) }, /an invalid Date/);
  await wrong({ limits: { activities: -1 } }, /limits` of explore\.activities|activities/);
  await wrong({ patience: "soon" }, /patience/);
  await assert.rejects(explore(undefined as never, undefined), { code: "INVALID_OPTION" });
  await assert.rejects(explore.replay(undefined as never, small, undefined), { code: "INVALID_OPTION" });
  await explore(small, undefined, { events: [delivery(Paid, { amount: 1 })], interleavings: 1 });
});
