import assert from "node:assert/strict";
import { test } from "node:test";
import {
  type ActivityError,
  activity,
  awaitEvent,
  CancelledError,
  child,
  event,
  NonRetryableError,
  type RetryPolicy,
  sleep,
  TimeoutError,
  Type,
  WorkflowError,
  workflow,
} from "@wovyr/sdk";
import { ExecutionRecord, replayHistory, type TestEnvironment } from "@wovyr/testing";
import { inCase, inEachCache } from "./case.ts";

const flat: RetryPolicy = { maxAttempts: 3, initialDelay: "1m", factor: 10, maxDelay: "1h", jitter: "none" };
const Item = event("item", Type.Number());

/** The runs of an instance, from one of them on, in order. */
async function runsFrom(env: TestEnvironment, id: string, runId: string) {
  const runs = [];
  for (let run: string | undefined = runId; run !== undefined; ) {
    const { status, start, outcome, successor } = await env.state(id, run);
    const failure = outcome !== undefined && "failure" in outcome ? outcome.failure : undefined;
    runs.push({ run, status, attempt: start?.retry?.attempt ?? 1, retryOf: start?.retry?.of, failure });
    run = successor;
  }
  return runs;
}

test("a run that failed is tried again as a new run of its id, with its input, after the delay; whoever waits gets the last result", async () => {
  const seen: unknown[] = [];
  const flaky = workflow("flaky", { input: Type.Object({ n: Type.Number() }), retry: flat }, async function* (input, ctx) {
    yield* sleep("1s");
    seen.push([ctx.attempt, ctx.id, input.n, ctx.now().getTime()]);
    if (ctx.attempt < 3) throw new Error(`attempt ${ctx.attempt}`);
    return ctx.runId;
  });
  await inEachCache({ workflows: [flaky] }, async (env) => {
    seen.length = 0;
    const began = env.now().getTime();
    const run = await env.start(flaky, { n: 7 }, { id: "f", memo: { by: "me" }, attributes: { colour: "red" } });
    const last = await run.result();
    const times = new Map(seen.map((each) => [(each as unknown[])[0], each]));
    assert.deepEqual(
      [...times.values()],
      [
        [1, "f", 7, began + 1_000],
        [2, "f", 7, began + 62_000],
        [3, "f", 7, began + 663_000],
      ],
    );
    const runs = await runsFrom(env, "f", run.runId);
    assert.deepEqual(
      runs.map(({ status, attempt, failure }) => [status, attempt, failure?.message, failure?.kind]),
      [
        ["Failed", 1, "attempt 1", "transient"],
        ["Failed", 2, "attempt 2", "transient"],
        ["Completed", 3, undefined, undefined],
      ],
    );
    assert.deepEqual(
      runs.map(({ retryOf }) => retryOf),
      [undefined, runs[0]?.run, runs[1]?.run],
    );
    assert.equal(runs[2]?.run, last);
    const about = await env.client.handle("f").describe();
    assert.deepEqual([about.runId, about.memo, about.attributes], [last, { by: "me" }, { colour: "red" }]);
  });
});

test("the last failure is the result when no attempt is left, and each run's own failure stays with it", async () => {
  const failing = workflow("failing", { retry: flat }, async function* (_: undefined, ctx) {
    yield* sleep(1);
    throw new Error(`attempt ${ctx.attempt}`);
  });
  await inEachCache({ workflows: [failing] }, async (env) => {
    const run = await env.start(failing, undefined, { id: "f" });
    await assert.rejects(run.result(), (error: WorkflowError) => error.status === "Failed" && String(error.cause) === "Error: attempt 3");
    const runs = await runsFrom(env, "f", run.runId);
    assert.deepEqual(
      runs.map(({ failure }) => failure?.message),
      ["attempt 1", "attempt 2", "attempt 3"],
    );
  });
});

test("what another attempt cannot mend, what a rule says, a cancel and a termination end it at once", async () => {
  class Rejected extends Error {}
  const failing = (name: string, error: () => unknown, retry: RetryPolicy = flat) =>
    workflow(name, { retry }, async function* () {
      yield* sleep(1);
      throw error();
    });
  const workflows = [
    failing("in-vain", () => new NonRetryableError("no")),
    failing("ruled", () => new Rejected("no"), { ...flat, rules: [{ when: Rejected, retry: false }] }),
    failing("too-late", () => new Error("no"), { ...flat, maxDuration: "30s" }),
  ];
  const waiting = workflow("waiting", { retry: flat }, async function* () {
    yield* awaitEvent(Item);
  });
  await inCase({ workflows: [...workflows, waiting] }, async (env) => {
    for (const each of workflows) {
      const run = await env.start(each);
      await assert.rejects(run.result(), WorkflowError);
      assert.equal((await runsFrom(env, run.id, run.runId)).length, 1, each.name);
    }
    for (const end of ["cancel", "terminate"] as const) {
      const run = await env.start(waiting);
      await env.settle();
      await run[end]();
      await assert.rejects(run.result(), WorkflowError);
      assert.equal((await runsFrom(env, run.id, run.runId)).length, 1, end);
    }
  });
});

test("a crash at any time loses no attempt of a run and makes none twice", async () => {
  const record = new ExecutionRecord();
  const work = activity("work", { retry: { maxAttempts: 1 } }, async (n: number) => {
    record.note(`run ${n}`);
    if (n < 3) throw new Error("down");
    return n;
  });
  const flaky = workflow("flaky", { retry: flat }, async function* (_: undefined, ctx) {
    return yield* work(ctx.attempt);
  });
  await inCase({ workflows: [flaky] }, async (env) => {
    env.autoSkip = false;
    const run = await env.start(flaky, undefined, { id: "f" });
    await env.advance("30s");
    env.crash();
    await env.restart();
    await env.advance("29s");
    assert.equal(record.total, 1, "the delay is not counted anew");
    await env.advance("1s");
    assert.equal(record.total, 2);
    env.crash();
    env.clock.advance(3_600_000);
    await env.restart();
    assert.equal(await run.result(), 3);
    assert.deepEqual(record.order, ["run 1", "run 2", "run 3"]);
  });
});

test("a policy that has changed applies to what is decided from then on, also while a run waits for its next attempt", async () => {
  const version = (retry: RetryPolicy | undefined) =>
    workflow("flaky", retry === undefined ? {} : { retry }, async function* (_: undefined, ctx) {
      yield* sleep(1);
      throw new Error(`attempt ${ctx.attempt}`);
    });
  // The runs that ended before the change would be tried again otherwise now.
  for (const [changed, attempts] of [
    [{ ...flat, maxAttempts: 5, backoff: "fixed", initialDelay: "1s" }, 5],
    [{ ...flat, maxAttempts: 2 }, 2],
    [undefined, 2],
  ] as const)
    await inCase({ workflows: [version(flat)], end: { skipReplay: (row) => row.status === "Failed" } }, async (env) => {
      env.autoSkip = false;
      const run = await env.start(version(flat), undefined, { id: "f" });
      await env.advance("30s");
      env.crash();
      await env.restart({ workflows: [version(changed)] });
      await env.advance("29s");
      assert.equal((await runsFrom(env, "f", run.runId)).length, 2, "the time that was decided stays");
      await env.advance("2h");
      await assert.rejects(run.result(), WorkflowError);
      assert.equal((await runsFrom(env, "f", run.runId)).length, attempts);
      const { failure } = await replayHistory(version(changed), await env.turns("f", run.runId));
      assert.equal(failure, undefined, "what was decided is not decided again");
    });
});

test("events that nobody took go on to the next attempt, those that come meanwhile as well; those that were taken do not come again", async () => {
  const reading = workflow("reading", { retry: { ...flat, maxAttempts: 2 } }, async function* (_: undefined, ctx) {
    const first = yield* awaitEvent(Item);
    if (ctx.attempt === 1) throw new Error("down");
    return [first, yield* awaitEvent(Item)];
  });
  await inEachCache({ workflows: [reading] }, async (env) => {
    const run = await env.start(reading, undefined, { id: "r", startAt: new Date(env.now().getTime() + 1_000) });
    await run.send(Item, 1, { idempotencyKey: "one" });
    await run.send(Item, 2, { idempotencyKey: "two" });
    await env.advance("2s");
    const next = env.client.handle("r");
    await next.send(Item, 1, { idempotencyKey: "one" });
    await next.send(Item, 3, { idempotencyKey: "three" });
    assert.deepEqual(await run.result(), [2, 3]);
  });
});

test("a parent hears of a child once, when its last attempt has ended", async () => {
  const inner = workflow("inner", { retry: flat }, async function* (upTo: number, ctx) {
    yield* sleep(1);
    if (ctx.attempt < upTo) throw new Error(`attempt ${ctx.attempt}`);
    return ctx.attempt;
  });
  const outer = workflow("outer", async function* () {
    const good = yield* child(inner, 2);
    try {
      yield* child(inner, 9);
    } catch (error) {
      return [good, String((error as WorkflowError).cause)];
    }
    return [];
  });
  await inEachCache({ workflows: [inner, outer] }, async (env) => assert.deepEqual(await env.execute(outer), [2, "Error: attempt 3"]));
});

test("a run that went on as a new one is tried again from there, and its attempts count for itself", async () => {
  const chained = workflow("chained", { retry: { ...flat, maxAttempts: 2 } }, async function* (n: number, ctx) {
    yield* sleep(1);
    if (ctx.attempt === 1) throw new Error("down");
    if (n < 3) return yield* ctx.continueAsNew(n + 1);
    return n;
  });
  await inEachCache({ workflows: [chained] }, async (env) => assert.equal(await env.execute(chained, 0), 3));
});

test("a failure that is not the workflow's own decides like any other: of an activity, of a child, of time", async () => {
  const down = activity("down", { retry: { maxAttempts: 1 } }, async () => {
    throw Object.assign(new Error("reset"), { code: "ECONNRESET" });
  });
  const denied = activity("denied", async () => {
    throw new NonRetryableError("no");
  });
  const tried = (name: string, call: () => ReturnType<typeof down>) =>
    workflow(name, { retry: { ...flat, maxAttempts: 2 } }, async function* () {
      yield* call();
    });
  const byActivity = tried("by-activity", () => down());
  const inVain = tried("in-vain", () => denied());
  const late = workflow("late", { retry: { ...flat, maxAttempts: 2 }, timeout: { run: "10s" } }, async function* () {
    yield* sleep("1h");
  });
  await inCase({ workflows: [byActivity, inVain, late] }, async (env) => {
    const kinds = async (each: typeof late) => {
      const run = await env.start(each);
      await assert.rejects(run.result(), WorkflowError);
      return (await runsFrom(env, run.id, run.runId)).map(({ status, failure }) => [status, failure?.kind]);
    };
    assert.deepEqual(await kinds(byActivity), [
      ["Failed", "infrastructure"],
      ["Failed", "infrastructure"],
    ]);
    assert.deepEqual(await kinds(inVain), [["Failed", "permanent"]]);
    assert.deepEqual(await kinds(late), [
      ["TimedOut", "timeout"],
      ["TimedOut", "timeout"],
    ]);
  });
});

test("while the next attempt waits for its time the id is taken, and a cancel ends it", async () => {
  const failing = workflow("failing", { retry: flat }, async function* () {
    yield* sleep(1);
    throw new Error("down");
  });
  await inCase({ workflows: [failing] }, async (env) => {
    env.autoSkip = false;
    const run = await env.start(failing, undefined, { id: "f" });
    await env.advance("10s");
    assert.equal((await env.client.handle("f").describe()).status, "Scheduled");
    await assert.rejects(env.start(failing, undefined, { id: "f" }), { code: "INSTANCE_EXISTS" });
    await env.client.handle("f").cancel({ reason: "enough" });
    await assert.rejects(run.result(), (error: WorkflowError) => error.status === "Cancelled" && error.cause instanceof CancelledError);
  });
});

test("an activity's failure keeps its class and fields through a run's attempts", async () => {
  class Declined extends Error {
    readonly reason: string;
    constructor(reason: string) {
      super("declined");
      this.reason = reason;
    }
  }
  const charge = activity("charge", { errors: [Declined], retry: { maxAttempts: 1 } }, async () => {
    throw new Declined("stolen");
  });
  const buy = workflow("buy", { errors: [Declined], retry: { ...flat, maxAttempts: 2 } }, async function* () {
    yield* charge();
  });
  await inCase({ workflows: [buy] }, async (env) => {
    await assert.rejects(env.execute(buy), (error: WorkflowError) => {
      const cause = (error.cause as ActivityError).cause;
      return cause instanceof Declined && cause.reason === "stolen";
    });
  });
});

test("the time of an execution spans its attempts: none begins after it", async () => {
  const failing = workflow("failing", { retry: { ...flat, maxAttempts: 99, backoff: "fixed" }, timeout: "150s" }, async function* () {
    yield* sleep(1);
    throw new Error("down");
  });
  const hanging = workflow("hanging", { retry: { ...flat, backoff: "fixed" }, timeout: "100s" }, async function* (_: undefined, ctx) {
    yield* sleep(1);
    if (ctx.attempt === 1) throw new Error("down");
    yield* sleep("1 day");
  });
  await inEachCache({ workflows: [failing, hanging] }, async (env) => {
    const run = await env.start(failing);
    await assert.rejects(run.result(), (error: WorkflowError) => error.status === "Failed" && String(error.cause) === "Error: down");
    assert.equal((await runsFrom(env, run.id, run.runId)).length, 3, "the fourth would begin at 180 s");
    const began = env.now().getTime();
    const late = await env.start(hanging);
    await assert.rejects(late.result(), (error: WorkflowError) => {
      assert.equal(error.status, "TimedOut");
      return error.cause instanceof TimeoutError && error.cause.timeout === "execution" && error.cause.limit === 100_000;
    });
    assert.equal(env.now().getTime() - began, 100_000);
  });
});
