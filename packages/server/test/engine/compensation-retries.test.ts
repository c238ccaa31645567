import assert from "node:assert/strict";
import { test } from "node:test";
import { activity, child, NonRetryableError, type RetryPolicy, sleep, TimeoutError, WorkflowError, workflow } from "@wovyr/sdk";
import { ExecutionRecord, type TestEnvironment } from "@wovyr/testing";
import { inEachCache } from "./case.ts";

const flat: RetryPolicy = { maxAttempts: 3, initialDelay: "1m", factor: 1, jitter: "none" };
const record = new ExecutionRecord();
const book = activity("book", async (what: string) => {
  record.note(`book ${what}`);
  return what;
});
const undo = activity("undo", async (what: string) => record.note(`undo ${what}`));

async function failureOf(result: Promise<unknown>): Promise<WorkflowError> {
  const error = await result.then(
    () => undefined,
    (thrown: unknown) => thrown,
  );
  assert.ok(error instanceof WorkflowError);
  return error;
}

async function statuses(env: TestEnvironment, id: string): Promise<string[]> {
  const found: string[] = [];
  for await (const { status } of env.client.handle(id).runs()) found.push(status);
  return found;
}

test("a run that is tried again has undone what it did before its next attempt begins", async () => {
  const trip = workflow("trip", { retry: flat }, async function* (_: undefined, ctx) {
    yield* book(`seat ${ctx.attempt}`).compensate((seat) => undo(seat));
    if (ctx.attempt < 3) throw new Error("no hotel");
    return ctx.attempt;
  });
  await inEachCache({ workflows: [trip] }, async (env) => {
    const begin = record.total;
    const run = await env.start(trip);
    assert.equal(await run.result(), 3);
    assert.deepEqual(record.order.slice(begin), ["book seat 1", "undo seat 1", "book seat 2", "undo seat 2", "book seat 3"]);
    assert.deepEqual(await statuses(env, run.id), ["Completed", "Compensated", "Compensated"]);
  });
});

test("a run that could not undo everything is not tried again", async () => {
  const stubborn = activity("stubborn", async () => {
    throw new NonRetryableError("nobody answers");
  });
  const trip = workflow("trip", { retry: flat, compensation: { onFailure: "fail" } }, async function* () {
    yield* book("seat").compensate(() => stubborn());
    throw new Error("no hotel");
  });
  await inEachCache({ workflows: [trip] }, async (env) => {
    const run = await env.start(trip);
    assert.equal((await failureOf(run.result())).status, "CompensationFailed");
    assert.equal((await statuses(env, run.id)).length, 1);
  });
});

test("a run whose time is over undoes what it did, and says that its time was over", async () => {
  const trip = workflow("trip", { timeout: { run: "1h" } }, async function* () {
    yield* book("seat").compensate(async function* (seat) {
      yield* sleep("2h");
      yield* undo(seat);
    });
    yield* sleep("1 day");
  });
  await inEachCache({ workflows: [trip] }, async (env) => {
    const begin = record.total;
    const began = env.now().getTime();
    const { status, cause } = await failureOf(env.execute(trip));
    assert.equal(status, "Compensated");
    assert.ok(cause instanceof TimeoutError);
    assert.equal(cause.timeout, "run");
    assert.equal(env.now().getTime() - began, 3 * 3_600_000);
    assert.deepEqual(record.order.slice(begin), ["book seat", "undo seat"]);
  });
});

test("a run whose time is over is tried again when it has undone what it did, within the time of its execution", async () => {
  const trip = workflow("trip", { retry: { ...flat, maxAttempts: 10 }, timeout: { run: "1h", execution: "3h" } }, async function* () {
    yield* book("seat").compensate((seat) => undo(seat));
    yield* sleep("1 day");
  });
  await inEachCache({ workflows: [trip] }, async (env) => {
    const begin = record.total;
    const run = await env.start(trip);
    const { status, cause } = await failureOf(run.result());
    assert.equal(status, "Compensated");
    assert.ok(cause instanceof TimeoutError);
    assert.equal(cause.timeout, "execution");
    assert.deepEqual(record.order.slice(begin), Array.from({ length: 3 }, () => ["book seat", "undo seat"]).flat());
  });
});

test("a run that is cancelled while its time is over is cancelled: it undoes what it is told to, and is not tried again", async () => {
  const trip = workflow("trip", { retry: flat, timeout: { run: "1h" }, compensation: { on: "manual" } }, async function* () {
    yield* book("seat").compensate((seat) => undo(seat));
    try {
      yield* sleep("1 day");
    } finally {
      yield* sleep("10s");
    }
  });
  await inEachCache({ workflows: [trip] }, async (env) => {
    const begin = record.total;
    const run = await env.start(trip);
    await env.advance("3601s");
    await run.cancel({ mode: "compensate" });
    assert.equal((await failureOf(run.result())).status, "Compensated");
    assert.deepEqual(record.order.slice(begin), ["book seat", "undo seat"]);
    assert.equal((await statuses(env, run.id)).length, 1);
  });
});

test("the retries of what undoes are not held to the run's budget, and do not count", async () => {
  let tries = 0;
  const slow = activity("slow", { retry: { maxAttempts: 5, initialDelay: "1s" } }, async () => {
    tries += 1;
    if (tries < 4) throw new Error("not yet");
  });
  const trip = workflow("trip", { retryBudget: 0 }, async function* () {
    yield* book("seat").compensate(() => slow());
    throw new Error("no hotel");
  });
  await inEachCache({ workflows: [trip] }, async (env) => {
    tries = 0;
    const run = await env.start(trip);
    assert.equal((await failureOf(run.result())).status, "Compensated");
    assert.equal(tries, 4);
    assert.equal((await env.state(run.id)).retries, 0);
  });
});

for (const mode of ["graceful", "immediate", "compensate"] as const)
  test(`a run that is cancelled (${mode}) while it undoes what it did is undone to its end, and not tried again`, async () => {
    const trip = workflow("trip", { retry: flat }, async function* () {
      yield* book("seat").compensate(async function* (seat) {
        yield* sleep("1h");
        yield* undo(seat);
      });
      throw new Error("no hotel");
    });
    await inEachCache({ workflows: [trip] }, async (env) => {
      const begin = record.total;
      env.autoSkip = false;
      const run = await env.start(trip);
      await env.advance("1m");
      assert.equal((await run.describe()).status, "Compensating");
      await run.cancel({ mode });
      env.autoSkip = true;
      assert.equal((await failureOf(run.result())).status, "Compensated");
      assert.deepEqual(record.order.slice(begin), ["book seat", "undo seat"]);
      assert.equal((await statuses(env, run.id)).length, 1);
    });
  });

test("a run is not tried again for what its child says will stay as it is", async () => {
  const deaf = workflow("deaf", async function* () {
    throw new NonRetryableError("never");
  });
  const parent = workflow("parent", { retry: flat }, async function* () {
    yield* child(deaf);
  });
  await inEachCache({ workflows: [parent, deaf] }, async (env) => {
    const run = await env.start(parent);
    assert.equal((await failureOf(run.result())).status, "Failed");
    assert.equal((await statuses(env, run.id)).length, 1);
  });
});
