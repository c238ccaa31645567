import assert from "node:assert/strict";
import { test } from "node:test";
import {
  activity,
  awaitEvent,
  child,
  event,
  NonRetryableError,
  race,
  sleep,
  step,
  TimeoutError,
  Type,
  WorkflowError,
  workflow,
} from "@wovyr/sdk";
import { checkEndOfCase, createTestEnvironment, fake } from "@wovyr/testing";

const Order = Type.Object({ id: Type.String() });
const reserve = activity(
  "reserve",
  { input: Order, output: Type.Object({ place: Type.String() }), retry: { initialDelay: "1s" } },
  async () => {
    throw new Error("the real one must not run");
  },
);
const ship = workflow("ship", { input: Type.String() }, async function* (id) {
  yield* sleep("1 day");
  throw new Error(`the real one must not run: ${id}`);
});
const Paid = event("paid", Type.Object({ amount: Type.Number() }));
const order = workflow("order", { input: Order }, async function* (input) {
  const { place } = yield* reserve(input);
  const { amount } = yield* awaitEvent(Paid, { timeout: "3 days" });
  const sent = yield* child(ship, input.id);
  return { place, amount, sent: sent as unknown };
});

test("activities, events and children are answered by fakes, which note typed calls", async () => {
  const reserved = fake(reserve, async (input, ctx) => ({ place: `${input.id}-${ctx.attempt}` }));
  const paid = fake(Paid, [{ amount: 5 }]);
  const shipped = fake(ship as typeof ship, (id) => `sent ${id}` as never);
  await using env = await createTestEnvironment({ workflows: [order], fakes: [reserved, paid, shipped] });
  assert.deepEqual(await env.execute(order, { id: "1" }, { id: "first" }), { place: "1-1", amount: 5, sent: "sent 1" });
  const [call] = reserved.calls;
  assert.equal(call?.input.id, "1");
  assert.deepEqual([call?.attempt, call?.instanceId], [1, "first"]);
  assert.deepEqual(
    paid.calls.map(({ input }) => input),
    [{ instanceId: "first" }],
  );
  assert.deepEqual(
    shipped.calls.map(({ input }) => input),
    ["1"],
  );
  await checkEndOfCase(env, { everyAttemptExecuted: true });
});

test("a sequence answers attempt by attempt; errors in it are retried, and its end is told", async () => {
  const work = activity("work", { retry: { initialDelay: 10 } }, async (n: number) => n);
  const twice = workflow("twice", async function* () {
    return [yield* work(1), yield* work(2)];
  });
  const worked = fake(work, [new Error("once"), 10, 20]);
  await using env = await createTestEnvironment({ workflows: [twice], fakes: [worked] });
  assert.deepEqual(await env.execute(twice), [10, 20]);
  assert.deepEqual(
    worked.calls.map(({ input, attempt }) => [input, attempt]),
    [
      [1, 1],
      [1, 2],
      [2, 1],
    ],
  );
  await assert.rejects(env.execute(twice), /the fake of activity "work" has 3 answers and was asked for one more/);
  worked.reset();
  assert.equal(worked.calls.length, 0);
  assert.deepEqual(await env.execute(twice), [10, 20]);
});

test("an attempt that is made again after a crash gets the same entry of a sequence", async () => {
  const work = activity("work", async () => 0);
  const one = workflow("one", async function* () {
    return yield* work();
  });
  let reached = () => {};
  const entered = new Promise<void>((resolve) => {
    reached = resolve;
  });
  let lives = 1;
  const worked = fake(work, (_input, { attempt }) => {
    reached();
    return lives === 1 ? new Promise<never>(() => {}) : attempt;
  });
  const listed = fake("listed", ["first", "second"]);
  const list = workflow("list", async function* () {
    yield* work();
    return [yield* step("listed", () => "real"), yield* step("listed", () => "real")];
  });
  await using env = await createTestEnvironment({ workflows: [one, list], fakes: [worked, listed] });
  const run = await env.start(one);
  await entered;
  lives = 2;
  await env.restart();
  assert.equal(await run.result(), 1);
  assert.equal(worked.calls.length, 2);
  const steps = await env.start(list);
  assert.deepEqual(await steps.result(), ["first", "second"]);
});

test("an error fake fails every attempt, and a final one the first", async () => {
  const failing = fake(reserve, new Error("full"));
  await using env = await createTestEnvironment({ workflows: [order], fakes: [failing] });
  await assert.rejects(env.execute(order, { id: "1" }), (error) => error instanceof WorkflowError && /full/.test(String(error.message)));
  assert.ok(failing.calls.length > 1);
  const final = fake(reserve, new NonRetryableError("never"));
  await using other = await createTestEnvironment({ workflows: [order], fakes: [final] });
  await assert.rejects(other.execute(order, { id: "1" }), /never/);
  assert.equal(final.calls.length, 1);
});

test("a faked child that throws fails like a child, with that error", async () => {
  class Lost extends Error {
    override readonly name = "Lost";
  }
  const parent = workflow("parent", async function* () {
    try {
      yield* child(ship, "x");
      return "sent";
    } catch (error) {
      return error instanceof WorkflowError ? [error.workflow, (error.cause as Error).name, (error.cause as Error).message] : "other";
    }
  });
  await using env = await createTestEnvironment({
    workflows: [parent],
    fakes: [
      fake(ship, () => {
        throw new Lost("at sea");
      }),
    ],
  });
  assert.deepEqual(await env.execute(parent), ["ship", "Lost", "at sea"]);
});

test("a faked event comes after its time, also across a crash, and once the list is used up none comes", async () => {
  const patient = workflow("patient", async function* (_: undefined, ctx) {
    const began = ctx.now().getTime();
    const first = yield* awaitEvent(Paid);
    const days = (ctx.now().getTime() - began) / 86_400_000;
    try {
      yield* awaitEvent(Paid, { timeout: "10 days" });
      return "paid twice";
    } catch (error) {
      return [first.amount, days, error instanceof TimeoutError];
    }
  });
  for (const crash of [false, true]) {
    await using env = await createTestEnvironment({ workflows: [patient], fakes: [fake(Paid, [{ amount: 7 }], { after: "2 days" })] });
    const run = await env.start(patient);
    if (crash) await env.restart();
    assert.deepEqual(await run.result(), [7, 2, true]);
    await checkEndOfCase(env);
  }
});

test("a race between a faked event and a timer goes by virtual time", async () => {
  const racing = workflow("racing", async function* () {
    return (yield* race({ paid: awaitEvent(Paid), late: sleep("14 days") })).winner;
  });
  for (const [after, winner] of [
    ["13 days", "paid"],
    ["15 days", "late"],
  ] as const) {
    await using env = await createTestEnvironment({ workflows: [racing], fakes: [fake(Paid, () => ({ amount: 1 }), { after })] });
    assert.equal(await env.execute(racing), winner);
    await checkEndOfCase(env);
  }
});

test("what a fake answers is held to the schema of the real thing", async () => {
  await using env = await createTestEnvironment({ workflows: [order], fakes: [fake(reserve, () => ({ place: 5 }) as never)] });
  await assert.rejects(env.execute(order, { id: "1" }), /output of activity "reserve".*place/s);
});

test("an activity without a fake runs, or is refused where that is asked for", async () => {
  const real = activity("real", async () => "real");
  const one = workflow("one", async function* () {
    return yield* real();
  });
  await using open = await createTestEnvironment({ workflows: [one] });
  assert.equal(await open.execute(one), "real");
  await using strict = await createTestEnvironment({ workflows: [one], unfaked: "refuse" });
  await assert.rejects(strict.execute(one), /activity "real" has no fake/);
});

test("fakes that cannot be are refused at once, with what to do", async () => {
  assert.throws(() => fake(reserve, 5 as never), { code: "INVALID_OPTION", message: /fake of activity "reserve" needs a function/ });
  assert.throws(() => fake({} as never, []), { code: "INVALID_OPTION", message: /must be an activity, a workflow, an event/ });
  assert.throws(() => fake(Paid, [], { after: "soon" as never }), { code: "INVALID_DURATION" });
  const making = createTestEnvironment({ workflows: [order], fakes: [fake(reserve, []), fake(reserve, [])] });
  await assert.rejects(making, { code: "INVALID_OPTION", message: /two fakes stand for activity "reserve"/ });
  await assert.rejects(createTestEnvironment({ workflows: [order], fakes: [{} as never] }), { code: "INVALID_OPTION" });
});
