import assert from "node:assert/strict";
import { test } from "node:test";
import { activity, awaitEvent, event, sleep, TimeoutError, workflow } from "@wovyr/sdk";
import { memoryStore } from "@wovyr/server";
import { checkEndOfCase, createFaultyStore, createTestEnvironment, FaultPlan, fake, type TestEnvironment } from "@wovyr/testing";

const day = 86_400_000;
const Go = event("go");
const week = workflow("week", async function* (_: undefined, ctx) {
  const began = ctx.now().getTime();
  yield* sleep("7 days");
  return ctx.now().getTime() - began;
});
const nap = workflow("nap", async function* () {
  yield* sleep("1 day");
});

async function within<T>(milliseconds: number, work: () => Promise<T>): Promise<T> {
  const began = performance.now();
  const value = await work();
  const took = performance.now() - began;
  assert.ok(took < milliseconds, `took ${took} ms`);
  return value;
}

test("H110 with only a timer open, sleeping, awaiting the result and looking in between take no real time", async () => {
  await using env = await createTestEnvironment({ workflows: [week] });
  await within(1_000, async () => {
    const run = await env.start(week);
    await env.sleep("8 days");
    assert.equal((await run.describe()).status, "Completed");
    assert.equal(env.now().getTime(), Date.UTC(2026, 0, 9));
  });
  await within(1_000, async () => assert.equal(await env.execute(week), 7 * day));
  await within(1_000, async () => {
    const run = await env.start(week);
    await env.advance("3 days");
    assert.equal((await run.describe()).status, "Waiting");
    assert.deepEqual((await env.state(run.id)).timers.size, 1);
    await env.advance("4 days");
    assert.equal((await run.describe()).status, "Completed");
  });
  await checkEndOfCase(env);
});

test("H111 an activity that moves test time past its own timeout leaves time skipping as it was", async () => {
  let env!: TestEnvironment;
  const moves: Record<string, () => Promise<void>> = {
    sleeps: () => env.sleep("2m"),
    advances: () => env.advance("2m"),
    throws: async () => {
      await env.advance("2m");
      throw new Error("after moving time");
    },
  };
  const slow = activity("slow", { timeout: { startToClose: "1m" }, retry: { maxAttempts: 3, initialDelay: "1s" } }, (how: string) =>
    moves[how]?.(),
  );
  const one = workflow("one", async function* (how: string) {
    try {
      yield* slow(how);
      return "done";
    } catch (error) {
      return error instanceof TimeoutError ? error.timeout : (error as Error).message;
    }
  });
  env = await createTestEnvironment({ workflows: [one, nap] });
  await using _disposed = env;
  for (const how of Object.keys(moves)) {
    const together = await within(2_000, () => Promise.all([env.execute(one, how), env.execute(one, how)]));
    for (const outcome of together) assert.match(String(outcome), /startToClose/);
    await within(1_000, () => env.execute(nap));
  }
  const attempts = [...env.executions.entries()].map(([, count]) => count);
  assert.deepEqual(attempts, [3, 3, 3, 3, 3, 3]);
  const doomed = await env.start(one, "sleeps");
  await env.until(() => env.executions.total === 19);
  await doomed.terminate();
  await within(1_000, () => env.execute(nap));
  await checkEndOfCase(env);
});

test("H112 time stands while an activity starts other workflows, and jumps when all is idle", async () => {
  let env!: TestEnvironment;
  const seen: number[] = [];
  const touched = activity("touched", async () => "real");
  const long = workflow("long", async function* () {
    yield* awaitEvent(Go);
    yield* sleep("7 days");
    yield* touched();
  });
  const startAll = activity("startAll", async () => {
    for (let n = 0; n < 5; n++) {
      const run = await env.client.start(long, undefined, { id: `long-${n}` });
      await run.send(Go);
      await new Promise((resolve) => setTimeout(resolve, 5)); // real I/O takes real time
      seen.push(env.now().getTime());
    }
  });
  const first = workflow("first", async function* () {
    yield* startAll();
  });
  const touches = fake(touched, async () => "fake");
  env = await createTestEnvironment({ workflows: [first, long], fakes: [touches] });
  await using _disposed = env;
  await within(2_000, async () => {
    await env.start(first);
    await env.until(() => touches.calls.length === 5);
  });
  assert.deepEqual(new Set(seen), new Set([Date.UTC(2026, 0, 1)]), "time stood while the activity ran");
  assert.equal(env.now().getTime(), Date.UTC(2026, 0, 8));
  await checkEndOfCase(env);
});

test("forty days of sleep and four hundred of waiting take well under a second", async () => {
  const long = workflow("long", async function* () {
    yield* sleep("40 days");
    try {
      yield* awaitEvent(Go, { timeout: "400 days" });
      return "event";
    } catch {
      return "timeout";
    }
  });
  await using env = await createTestEnvironment({ workflows: [long] });
  await within(500, async () => assert.equal(await env.execute(long), "timeout"));
  assert.equal((env.now().getTime() - Date.UTC(2026, 0, 1)) / day, 440);
});

test("several environments keep their own time, side by side", async () => {
  await using one = await createTestEnvironment({ workflows: [week] });
  await using other = await createTestEnvironment({ workflows: [week], clock: new Date("2030-06-01") });
  await Promise.all([one.execute(week), other.execute(week).then(() => other.execute(week))]);
  assert.equal(one.now().toISOString(), "2026-01-08T00:00:00.000Z");
  assert.equal(other.now().toISOString(), "2030-06-15T00:00:00.000Z");
});

test("a store that is away for a while delays a call in virtual time only", async () => {
  const plan = new FaultPlan();
  await using env = await createTestEnvironment({ workflows: [nap], store: createFaultyStore(memoryStore(), plan) });
  plan.fail("commit", { times: 20 });
  await within(1_000, () => env.execute(nap));
  assert.equal(plan.met, 20);
});

test("a condition that nothing can fulfil is rejected at once, with what the runs wait for", async () => {
  const patient = workflow("patient", async function* () {
    yield* awaitEvent(Go);
  });
  await using env = await createTestEnvironment({ workflows: [patient] });
  await env.start(patient, undefined, { id: "p" });
  await assert.rejects(
    env.until(() => false),
    /the condition does not hold, and nothing can happen any more: p waits for event "go"/,
  );
  await assert.rejects(
    env.until(() => {
      throw new RangeError("wrong condition");
    }),
    RangeError,
  );
});

test("an activity with real I/O ends while time stands", async () => {
  const real = activity("real", () => new Promise<string>((resolve) => setTimeout(resolve, 20, "real")));
  const both = workflow("both", async function* (_: undefined, ctx) {
    const before = ctx.now().getTime();
    yield* real();
    return ctx.now().getTime() - before;
  });
  await using env = await createTestEnvironment({ workflows: [both, week] });
  const [stood] = await Promise.all([env.execute(both), env.start(week).then((run) => run.result())]);
  assert.equal(stood, 0);
});
