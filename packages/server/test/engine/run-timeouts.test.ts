import assert from "node:assert/strict";
import { test } from "node:test";
import {
  activity,
  awaitEvent,
  CancelledError,
  child,
  event,
  shield,
  sleep,
  TimeoutError,
  Type,
  WorkflowError,
  type WorkflowTimeout,
  workflow,
} from "@wovyr/sdk";
import { ExecutionRecord, Gate } from "@wovyr/testing";
import { inCase, inEachCache } from "./case.ts";

const never = event("never");

/** What a run that is out of time ends with. */
function timedOut(purpose: "run" | "execution", limit: number) {
  return (error: unknown) => {
    assert.ok(error instanceof WorkflowError);
    assert.equal(error.status, "TimedOut");
    assert.ok(error.cause instanceof TimeoutError);
    assert.deepEqual([error.cause.timeout, error.cause.limit], [purpose, limit]);
    assert.match(error.cause.message, new RegExp(`took longer than its ${purpose} timeout, ${limit} ms`));
    return true;
  };
}

const waiting = (timeout: WorkflowTimeout | undefined) =>
  workflow("waiting", timeout === undefined ? {} : { timeout }, async function* () {
    yield* awaitEvent(never);
  });

for (const [timeout, purpose, limit] of [
  ["1m", "execution", 60_000],
  [{ run: "1m" }, "run", 60_000],
  [{ run: "1m", execution: "30s" }, "execution", 30_000],
  [{ run: "30s", execution: "1m" }, "run", 30_000],
] as const)
  test(`a run out of time closes as TimedOut and says which limit passed: ${JSON.stringify(timeout)}`, async () => {
    await inEachCache({ workflows: [waiting(timeout)] }, async (env) => {
      const began = env.now().getTime();
      const run = await env.start(waiting(timeout));
      await assert.rejects(run.result(), timedOut(purpose, limit));
      assert.equal(env.now().getTime() - began, limit);
      const { status, failure } = await run.describe();
      assert.deepEqual([status, failure?.code, failure?.kind], ["TimedOut", "TIMED_OUT", "timeout"]);
      assert.equal((await env.turns(run.id)).at(-1)?.events.at(-1)?.type, "InstanceTimedOut");
    });
  });

test("what a start says goes over what the workflow says, limit by limit", async () => {
  await inCase({ workflows: [waiting({ run: "1m", execution: "1h" })] }, async (env) => {
    const start = (timeout: WorkflowTimeout) => env.start(waiting(undefined), undefined, { timeout });
    await assert.rejects((await start({ run: "2h" })).result(), timedOut("execution", 3_600_000));
    await assert.rejects((await start("10s")).result(), timedOut("execution", 10_000));
    await assert.rejects((await start("2h")).result(), timedOut("run", 60_000));
    await assert.rejects(start("soon" as never), { code: "INVALID_DURATION" });
    await assert.rejects(start({ runs: 1 } as never), { code: "INVALID_OPTION" });
  });
  assert.throws(() => waiting({ run: -1 }), { code: "INVALID_DURATION" });
  assert.throws(() => waiting({ per: "1m" } as never), { code: "INVALID_OPTION" });
});

test("it unwinds as if it were cancelled: branches hear why, clean-up runs, attempts are stopped", async () => {
  const gate = new Gate<undefined, string>(() => "work");
  const record = new ExecutionRecord();
  const work = activity("work", gate.body);
  const note = activity("note", async (text: string) => void record.note(text));
  const worker = workflow("worker", { timeout: "1m" }, async function* () {
    try {
      yield* work(undefined);
    } catch (error) {
      assert.ok(error instanceof CancelledError && error.cause instanceof TimeoutError);
      yield* shield(note(error.cause.timeout));
      throw error;
    } finally {
      yield* note("finally");
    }
  });
  await inEachCache({ workflows: [worker] }, async (env) => {
    const before = record.total;
    const run = await env.start(worker);
    const { ctx } = await gate.arrived();
    const signal = ctx.signal;
    await env.advance("1m");
    await assert.rejects(run.result(), timedOut("execution", 60_000));
    assert.deepEqual(record.order.slice(before), ["execution", "finally"]);
    assert.ok(signal.aborted);
    gate.open("work", "late");
  });
});

test("clean-up that waits for ever is dropped at its limit", async () => {
  const worker = workflow("worker", { timeout: "1m" }, async function* () {
    try {
      yield* awaitEvent(never);
    } finally {
      yield* sleep("1 day");
    }
  });
  await inEachCache({ workflows: [worker] }, async (env) => {
    const began = env.now().getTime();
    const run = await env.start(worker);
    await assert.rejects(run.result(), timedOut("execution", 60_000));
    assert.equal(env.now().getTime() - began, 60_000 + env.limits.execution.cleanup);
  });
});

test("a workflow that catches what ends it cannot make its time longer", async () => {
  const stubborn = workflow("stubborn", { timeout: "1m" }, async function* () {
    try {
      yield* awaitEvent(never);
    } catch {}
    return "done";
  });
  await inEachCache({ workflows: [stubborn] }, async (env) => assert.rejects(env.execute(stubborn), timedOut("execution", 60_000)));
});

test("a run that ends in time leaves no timer behind", async () => {
  const quick = workflow("quick", { timeout: { run: "1m", execution: "1h" } }, async function* () {
    yield* sleep("59s");
    return "done";
  });
  await inEachCache({ workflows: [quick] }, async (env) => {
    const run = await env.start(quick);
    assert.equal(await run.result(), "done");
    await env.advance("2h");
    assert.equal((await run.describe()).status, "Completed");
  });
});

test("H003 H004 time counts from the recorded begin, also while nobody runs it", async () => {
  await inCase({ workflows: [waiting("1h")] }, async (env) => {
    env.autoSkip = false;
    const began = env.now().getTime();
    const run = await env.start(waiting("1h"));
    for (let life = 0; life < 3; life += 1) {
      await env.advance("15m");
      env.crash();
      await env.restart();
    }
    await env.advance("14m");
    assert.equal((await run.describe()).status, "Waiting");
    await env.advance("1m");
    await assert.rejects(run.result(), timedOut("execution", 3_600_000));
    assert.equal((await env.turns(run.id)).at(-1)?.at, began + 3_600_000);
    const down = await env.start(waiting("1h"));
    env.crash();
    env.clock.advance(86_400_000);
    await env.restart();
    await assert.rejects(down.result(), timedOut("execution", 3_600_000));
  });
});

test("a delayed start does not use up the time of the run", async () => {
  const quick = workflow("quick", { timeout: "1m" }, async function* () {
    yield* sleep("59s");
    return "done";
  });
  await inEachCache({ workflows: [quick] }, async (env) => {
    const run = await env.start(quick, undefined, { delay: "1h" });
    assert.equal(await run.result(), "done");
  });
});

test("the time of an execution spans the runs that continue as new, that of a run does not", async () => {
  const chain = (timeout: WorkflowTimeout) =>
    workflow("chain", { timeout }, async function* (n: number, ctx) {
      yield* sleep("40s");
      if (n === 4) return "done";
      return yield* ctx.continueAsNew(n + 1);
    });
  await inEachCache({ workflows: [chain({ run: "1m" })] }, async (env) => assert.equal(await env.execute(chain({ run: "1m" }), 0), "done"));
  await inEachCache({ workflows: [chain({ run: "1m", execution: "100s" })] }, async (env) => {
    const began = env.now().getTime();
    const run = await env.start(chain("1m"), 0);
    await assert.rejects(run.result(), timedOut("execution", 100_000));
    assert.equal(env.now().getTime() - began, 100_000);
  });
  await inCase({ workflows: [chain({ run: "1m" })] }, async (env) => {
    const run = await env.start(chain({}), 0, { timeout: { execution: "50s" } });
    await assert.rejects(run.result(), timedOut("execution", 50_000));
  });
});

test("a parent sees that its child ran out of time, and a child without a limit ends with its parent", async () => {
  const inner = workflow("inner", { timeout: "1m" }, async function* () {
    yield* awaitEvent(never);
  });
  const outer = workflow("outer", async function* () {
    try {
      yield* child(inner);
    } catch (error) {
      return timedOut("execution", 60_000)(error);
    }
    return false;
  });
  const endless = workflow("endless", async function* () {
    yield* awaitEvent(never);
  });
  const late = workflow("late", { timeout: "1m" }, async function* () {
    yield* child(endless, undefined, { id: "endless", onParentClose: "cancel" });
  });
  await inEachCache({ workflows: [inner, outer, endless, late] }, async (env) => {
    assert.equal(await env.execute(outer), true);
    await assert.rejects(env.execute(late), timedOut("execution", 60_000));
    await env.settle();
    assert.equal((await env.client.handle("endless").describe()).status, "Cancelled");
  });
});

test("a cancel that came first stays one, and a limit in the past is one that has passed", async () => {
  const slow = workflow("slow", { timeout: "1m" }, async function* () {
    try {
      yield* awaitEvent(never);
    } finally {
      yield* sleep("30s");
    }
  });
  const instant = workflow("instant", { input: Type.Undefined(), timeout: 0 }, async function* () {
    yield* awaitEvent(never);
  });
  await inCase({ workflows: [slow, instant] }, async (env) => {
    env.autoSkip = false;
    const run = await env.start(slow);
    await env.advance("50s");
    await run.cancel();
    await env.advance("1h");
    await assert.rejects(run.result(), (error: WorkflowError) => error.status === "Cancelled");
    const none = await env.start(instant);
    await env.advance(0);
    await assert.rejects(none.result(), timedOut("execution", 0));
  });
});
