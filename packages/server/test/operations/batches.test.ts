/** Batches: an operation on all runs that a filter finds, done once to each, whatever happens to the process. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { awaitEvent, event, sleep, Type, WovyrError, workflow } from "@wovyr/sdk";
import type { BatchOptions } from "@wovyr/sdk/client";
import { createTestEnvironment, type TestEnvironment } from "@wovyr/testing";
import { inCase } from "../engine/case.ts";
import { crashedAtEachWrite } from "./crashing.ts";

const Go = event("go", Type.Number());
const waiting = workflow("waiting", { events: [Go] }, async function* () {
  return yield* awaitEvent(Go);
});
const adding = workflow("adding", { variables: () => ({ sum: 0 }), events: [Go] }, async function* (_: undefined, ctx) {
  for (;;) ctx.variables.sum += yield* awaitEvent(Go);
});
const asleep = workflow("asleep", async function* () {
  yield* sleep("300 days");
  return "woken";
});
const other = workflow("other", async function* () {
  yield* awaitEvent(Go);
});
const workflows = [waiting, adding, asleep, other];

const code =
  (wanted: string, text = /./) =>
  (error: unknown) =>
    error instanceof WovyrError && error.code === wanted && text.test(error.message);

async function finished(env: TestEnvironment, options: BatchOptions) {
  const { batches } = env.client;
  const id = await batches.start(options);
  await env.until(async () => (await batches.get(id)).closedAt !== undefined);
  const { status, done, failed, total, failures } = await batches.get(id);
  return { status, done, failed, total, failures };
}

const completed = (done: number) => ({ status: "Completed", done, failed: 0, total: done, failures: [] });

test("every operation does what the call of its name does", async () => {
  await inCase({ workflows }, async (env) => {
    const started = async (flow: typeof waiting | typeof asleep) => {
      const runs = [];
      for (let n = 0; n < 3; n += 1) runs.push(await env.start(flow as typeof waiting, undefined, { attributes: { of: flow.name } }));
      await env.settle();
      return runs;
    };
    const filter = { workflow: waiting, status: ["Waiting", "Paused"] } as const;
    const first = await started(waiting);
    assert.deepEqual(await finished(env, { operation: { type: "pause", reason: "look" }, filter }), completed(3));
    assert.equal((await first[0]?.describe())?.paused?.reason, "look");
    assert.deepEqual(await finished(env, { operation: { type: "resume" }, filter }), completed(3));
    assert.deepEqual(await finished(env, { operation: { type: "send", event: Go, payload: 7 }, filter }), completed(3));
    for (const run of first) assert.equal(await run.result(), 7);
    const ended = { cancel: "Cancelled", terminate: "Terminated" } as const;
    for (const type of ["cancel", "terminate"] as const) {
      const runs = await started(waiting);
      assert.deepEqual(await finished(env, { operation: { type, reason: "enough" }, filter }), completed(3));
      for (const run of runs) await assert.rejects(run.result(), { status: ended[type] });
    }
    const sleepers = await started(asleep);
    assert.deepEqual(await finished(env, { operation: { type: "wake" }, filter: { attributes: { of: "asleep" } } }), completed(3));
    for (const run of sleepers) assert.equal(await run.result(), "woken");
    const reset = { operation: { type: "reset", to: "first", reason: "again" }, filter: { workflow: "asleep" } } as const;
    assert.deepEqual(await finished(env, reset), completed(3));
    for (const run of sleepers) assert.equal((await env.client.handle(run.id).describe()).resetFrom?.runId, run.runId);
    await finished(env, { operation: { type: "terminate" }, filter: { workflow: "asleep", status: "Waiting" } });
  });
});

test("a batch of deletions removes what is closed", async () => {
  await using env = await createTestEnvironment({ workflows });
  for (let n = 0; n < 3; n += 1) await (await env.start(waiting)).terminate();
  const open = await env.start(waiting);
  const outcome = await finished(env, { operation: { type: "delete" }, filter: { workflow: waiting } });
  assert.deepEqual(
    { ...outcome, failures: outcome.failures.map(({ id, code: why }) => [id, why]) },
    {
      status: "Completed",
      done: 3,
      failed: 1,
      total: 4,
      failures: [[open.id, "INSTANCE_OPEN"]],
    },
  );
  const left: string[] = [];
  for await (const { id } of env.client.list()) left.push(id);
  assert.deepEqual(left, [open.id]);
});

test("only runs that the filter finds, and that were there when it began, are touched", async () => {
  await inCase({ workflows }, async (env) => {
    const [early, elsewhere] = [await env.start(waiting), await env.start(other)];
    const { batches } = env.client;
    const id = await batches.start({ operation: { type: "cancel" }, filter: { workflow: waiting } });
    const late = await env.start(waiting);
    await env.until(async () => (await batches.get(id)).closedAt !== undefined);
    assert.equal((await batches.get(id)).total, 1);
    await assert.rejects(early.result(), { status: "Cancelled" });
    for (const run of [elsewhere, late]) {
      assert.equal((await run.describe()).status, "Waiting");
      await run.terminate();
    }
  });
});

test("what fails is counted and told, and does not stop the others", async () => {
  await inCase({ workflows }, async (env) => {
    const closed = await env.start(waiting, undefined, { id: "closed" });
    await closed.terminate();
    for (let n = 0; n < 30; n += 1) await (await env.start(waiting, undefined, { id: `c${n}` })).terminate();
    const open = await env.start(waiting, undefined, { id: "open" });
    const { status, done, failed, total, failures } = await finished(env, { operation: { type: "cancel" }, filter: { workflow: waiting } });
    assert.deepEqual({ status, done, failed, total }, { status: "Completed", done: 1, failed: 31, total: 32 });
    assert.equal(failures.length, 20);
    assert.deepEqual([failures[0]?.id, failures[0]?.code], ["c29", "INSTANCE_CLOSED"]);
    await assert.rejects(open.result(), { status: "Cancelled" });
  });
});

test("pages are worked on one after another, and progress is seen meanwhile; a cancelled batch stops after its page", async () => {
  await inCase({ workflows }, async (env) => {
    const runs = [];
    for (let n = 0; n < 450; n += 1) runs.push(await env.start(adding));
    const { batches } = env.client;
    const options = { operation: { type: "send", event: Go, payload: 1 }, filter: { workflow: adding } } as const;
    const id = await batches.start(options);
    const seen = new Set<number>();
    await env.until(async () => {
      const { done, closedAt } = await batches.get(id);
      seen.add(done);
      return closedAt !== undefined;
    });
    assert.equal((await batches.get(id)).total, 450);
    const half = await batches.start(options);
    await batches.cancel(half);
    await env.until(async () => (await batches.get(half)).closedAt !== undefined);
    const { status, done } = await batches.get(half);
    assert.equal(status, "Cancelled");
    assert.ok(done % 200 === 0 && done < 450, String(done));
    let sum = 0;
    for (const run of runs) sum += ((await env.variables(run.id)) as { sum: number } | undefined)?.sum ?? 0;
    assert.equal(sum, 450 + done);
    assert.deepEqual(await finished(env, { operation: { type: "terminate" }, filter: { workflow: adding } }), completed(450));
  });
});

test("lists hide batches unless they are asked for; a batch leaves batches alone, itself included", async () => {
  await inCase({ workflows }, async (env) => {
    const { batches } = env.client;
    const id = await batches.start({ operation: { type: "terminate" }, filter: {}, id: "mine" });
    assert.equal(id, "mine");
    await env.until(async () => (await batches.get(id)).closedAt !== undefined);
    assert.equal((await batches.get(id)).status, "Completed");
    for await (const each of env.client.list()) assert.fail(each.id);
    const shown: string[] = [];
    for await (const each of env.client.list({ workflow: "wovyr:batch" })) shown.push(each.id);
    assert.deepEqual(shown, ["mine"]);
    assert.equal(await env.client.handle("mine").delete(), 1);
    await assert.rejects(batches.get("mine"), code("BATCH_NOT_FOUND"));
  });
});

test("a request that cannot be is refused before anything begins, and the same key begins one batch", async () => {
  await inCase({ workflows }, async (env) => {
    const { batches } = env.client;
    for (const [options, wanted, text] of [
      [{ operation: { type: "explode" }, filter: {} }, "INVALID_OPTION", /it can cancel, terminate/],
      [{ operation: { type: "cancel", to: 3 }, filter: {} }, "INVALID_OPTION", /to/],
      [{ operation: { type: "reset" }, filter: {} }, "INVALID_OPTION", /`to`/],
      [{ operation: { type: "send", event: "no name" }, filter: {} }, "INVALID_NAME", /event/],
      [{ operation: { type: "wake" }, filter: { colour: "red" } }, "INVALID_OPTION", /colour/],
      [{ operation: { type: "wake" }, filter: { status: "Odd" } }, "INVALID_OPTION", /Odd/],
      [{ operation: { type: "wake" }, filter: {}, id: "no name" }, "INVALID_NAME", /batch/],
    ] as const)
      await assert.rejects(batches.start(options as never), code(wanted, text), JSON.stringify(options));
    const options = { operation: { type: "wake" }, filter: { workflow: waiting }, idempotencyKey: "k" } as const;
    assert.equal(await batches.start(options), await batches.start(options));
    await assert.rejects(batches.start({ ...options, filter: {} }), code("IDEMPOTENCY_CONFLICT"));
    const run = await env.start(waiting, undefined, { id: "taken" });
    await assert.rejects(batches.start({ operation: { type: "wake" }, filter: {}, id: "taken" }), code("INSTANCE_EXISTS"));
    await assert.rejects(batches.get("taken"), code("BATCH_NOT_FOUND"));
    await run.terminate();
    await env.settle();
  });
});

test("a crash at any write of a batch: it goes on, and every run has had it once", async () => {
  const crashes = await crashedAtEachWrite({ workflows }, async ({ env, begin, insist }) => {
    const runs = [await env.start(adding), await env.start(adding)];
    await env.settle();
    begin();
    const { batches } = env.client;
    const id = await insist(() =>
      batches.start({ operation: { type: "send", event: Go, payload: 1 }, filter: { workflow: adding }, idempotencyKey: "once" }),
    );
    await insist(() => env.client.handle(id).result());
    const { done, failed } = await insist(() => batches.get(id));
    assert.deepEqual({ done, failed }, { done: 2, failed: 0 });
    await env.settle();
    if (!env.running) await env.restart();
    for (const run of runs) assert.deepEqual(await env.variables(run.id), { sum: 1 });
  });
  assert.ok(crashes >= 8, String(crashes));
});
