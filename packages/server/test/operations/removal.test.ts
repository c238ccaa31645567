/** Closed runs are removed on request, and when their time is over; open ones never. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { awaitEvent, event, sleep, WovyrError, workflow } from "@wovyr/sdk";
import { memoryStore, retentionTimes } from "@wovyr/server/internal";
import { createFaultyStore, FaultPlan, type TestEnvironment } from "@wovyr/testing";
import { inCase } from "../engine/case.ts";

const Go = event("go");
const instant = workflow("instant", async function* () {
  return "done";
});
const waiting = workflow("waiting", async function* () {
  yield* awaitEvent(Go);
});
const failing = workflow("failing", async function* () {
  throw new RangeError("as it should");
});
const chain = workflow("chain", async function* (left: number, ctx) {
  yield* sleep("1m");
  return left === 0 ? "end" : yield* ctx.continueAsNew(left - 1);
});
const workflows = [instant, waiting, failing, chain];

const code =
  (wanted: string, text = /./) =>
  (error: unknown) =>
    error instanceof WovyrError && error.code === wanted && text.test(error.message);
const idsOf = async (env: TestEnvironment) =>
  (await env.bareStore.listInstances("default", {}, { limit: 1_000 })).map(({ id }) => id).sort();

test("a closed run is removed with all that belongs to it; its id is free and unknown", async () => {
  await inCase({ workflows }, async (env) => {
    const run = await env.start(instant, undefined, { id: "i", idempotencyKey: "k", attributes: { colour: "red" } });
    await run.result();
    assert.equal(await run.delete(), 1);
    for (const call of [() => run.describe(), () => run.delete(), () => run.history()[Symbol.asyncIterator]().next()])
      await assert.rejects(call(), code("INSTANCE_NOT_FOUND"));
    assert.deepEqual(await env.bareStore.readHistory({ tenant: "default", run: run.runId }, 1, 10), []);
    for await (const found of env.client.list({ attributes: { colour: "red" } })) assert.fail(found.id);
    const again = await env.start(instant, undefined, { id: "i", idempotencyKey: "k" });
    assert.notEqual(again.runId, run.runId, "its key is forgotten with it");
  });
});

test("all runs of an id are removed, or one; an open one among them refuses it, and nothing is removed", async () => {
  await inCase({ workflows }, async (env) => {
    await (await env.start(chain, 2, { id: "c" })).result();
    const runs: string[] = [];
    for await (const { runId } of env.client.handle("c").runs()) runs.push(runId);
    assert.equal(runs.length, 3);
    assert.equal(await env.client.handle("c").delete({ runId: runs[1] }), 1);
    const open = await env.start(waiting, undefined, { id: "c" });
    await assert.rejects(env.client.handle("c").delete(), code("INSTANCE_OPEN", /cancel or terminate/));
    assert.equal((await idsOf(env)).length, 3);
    assert.equal(await env.client.handle("c").delete({ runId: runs[2] }), 1);
    await open.terminate();
    assert.equal(await env.client.handle("c").delete(), 2);
    assert.deepEqual(await idsOf(env), []);
  });
});

test("retention removes closed runs so long after their end, by status, and leaves open ones", async () => {
  const retention = { Completed: "1 day", default: "3 days", Terminated: undefined } as const;
  await inCase({ workflows, retention }, async (env) => {
    await env.execute(instant, undefined, { id: "completed" });
    await env.execute(failing, undefined, { id: "failed" }).catch(() => {});
    for (const id of ["open", "paused"]) await env.start(waiting, undefined, { id });
    await env.handle(waiting, "paused").pause();
    await env.advance("23h");
    assert.deepEqual(await idsOf(env), ["completed", "failed", "open", "paused"]);
    await env.advance("1h 10m");
    assert.deepEqual(await idsOf(env), ["failed", "open", "paused"]);
    await env.advance("2 days");
    assert.deepEqual(await idsOf(env), ["open", "paused"]);
    await env.advance("30 days");
    assert.deepEqual(await idsOf(env), ["open", "paused"]);
    for (const id of ["open", "paused"]) await env.client.handle(id).terminate();
  });
});

test("retention takes bounded batches, also where most are to stay, and a store that fails costs a round and no more", async () => {
  const plan = new FaultPlan();
  const most: number[] = [];
  await inCase({ workflows, retention: { Completed: "1h" }, store: createFaultyStore(memoryStore(), plan) }, async (env) => {
    for (let n = 0; n < 450; n += 1) await env.execute(failing, undefined, { id: `f${n}` }).catch(() => {});
    for (let n = 0; n < 450; n += 1) await env.execute(instant, undefined, { id: `i${n}` });
    plan.watch("deleteRuns", ({ args }) => void most.push((args[0] as unknown[]).length));
    plan.fail("deleteRuns", { times: 1 });
    plan.fail("listClosedBefore", { times: 1 });
    for (let rounds = 0; rounds < 8; rounds += 1) await env.advance("10m");
    assert.equal(plan.met, 2);
    assert.equal((await idsOf(env)).length, 450);
    assert.ok(most.length > 2 && Math.max(...most) <= 200, String(most));
  });
});

test("without retention nothing is ever removed", async () => {
  await inCase({ workflows }, async (env) => {
    await env.execute(instant);
    await env.advance("400 days");
    assert.equal((await idsOf(env)).length, 1);
  });
});

test("what was over before an engine started is removed when it has the shards", async () => {
  const store = memoryStore();
  const plan = new FaultPlan();
  await inCase({ workflows, retention: "1h", store: createFaultyStore(store, plan), lease: "10s" }, async (env) => {
    await env.execute(instant);
    await env.stop();
    let removed = 0;
    plan.watch("deleteRuns", () => {
      removed += 1;
    });
    env.clock.advance(24 * 3_600_000);
    assert.equal(removed, 0);
    await env.restart();
    await env.settle();
    assert.equal(removed, 1, "at its first round");
  });
});

test("times that are none are refused", () => {
  for (const [options, wanted] of [
    ["soon", "INVALID_DURATION"],
    [0, "INVALID_OPTION"],
    [{ Done: "1 day" }, "INVALID_OPTION"],
    [{ Completed: "0s" }, "INVALID_OPTION"],
  ] as const)
    assert.throws(() => retentionTimes(options as never), code(wanted), JSON.stringify(options));
});

test("a handle stays with its chain when the runs before are removed: it has the result of the last one, and of no other chain", async () => {
  await inCase({ workflows, retention: { ContinuedAsNew: "90s" } }, async (env) => {
    const run = await env.start(chain, 40, { id: "c" });
    const waiting = run.result().catch((error) => error);
    for (let time = 0; time < 3; time++) {
      await env.advance("10m");
      await assert.rejects(env.client.handle("c").history({ runId: run.runId })[Symbol.asyncIterator]().next(), code("INSTANCE_NOT_FOUND"));
      assert.equal((await env.client.handle("c").describe()).status, "Waiting");
      await assert.rejects(run.result({ timeout: 0 }), { code: "TIMED_OUT" });
      await env.restart();
    }
    assert.equal(await run.result(), "end");
    assert.equal(await waiting, "end");
    assert.equal(await run.result(), "end");
    const { runId: last } = await run.describe();
    // The id is used again, by a chain of its own.
    const other = await env.start(chain, 12, { id: "c" });
    await env.advance("11m");
    assert.equal(await run.result(), "end");
    assert.equal(await env.client.handle("c").delete({ runId: last }), 1);
    await assert.rejects(
      run.result(),
      code("INSTANCE_NOT_FOUND", /has no run ".*": it was removed, or never was there\. The newest run of this id is ".*" \(Waiting\)/),
    );
    assert.equal(await other.result(), "end");
  });
});

test("a run in the middle of a chain that is removed breaks no chain, whatever the next one goes on from", async () => {
  const retried = workflow(
    "retried",
    { retry: { maxAttempts: 6, initialDelay: "1m", backoff: "fixed", jitter: "none" } },
    async function* (_: undefined, ctx) {
      yield* awaitEvent(Go);
      if (ctx.attempt < 3) throw new RangeError("not yet");
      return "end";
    },
  );
  const known = [...workflows, retried];
  for (const gone of [[0], [1], [0, 1], [0, 1, 2], [1, 2]])
    await inCase({ workflows: known }, async (env) => {
      const chained = await env.start(chain, 3, { id: "c" });
      await chained.result();
      const tried = await env.start(retried, undefined, { id: "t" });
      await env.settle();
      const reset = await tried.reset({ to: "first" });
      for (let time = 0; time < 2; time++) {
        await reset.send(Go);
        await env.advance("2m");
      }
      for (const id of ["c", "t"]) {
        const runs: string[] = [];
        for await (const { runId } of env.client.handle(id).runs()) runs.unshift(runId);
        assert.equal(runs.length, 4, id);
        for (const at of gone) assert.equal(await env.client.handle(id).delete({ runId: runs[at] }), 1);
      }
      assert.equal(await chained.result(), "end");
      await env.restart();
      await env.client.handle("t").send(Go);
      assert.equal(await tried.result(), "end", `without ${gone}`);
      assert.equal(await reset.result(), "end", `without ${gone}`);
    });
});

test("the result of a fork is never that of its origin's chain, nor the other way round", async () => {
  await inCase({ workflows, retention: { ContinuedAsNew: "30s" } }, async (env) => {
    const run = await env.start(chain, 3, { id: "c" });
    await env.advance("90s");
    const fork = await env.client.handle(chain, "c").fork({ at: "first", id: "f" });
    const refork = await fork.fork({ at: "first", id: "r" });
    const reset = await refork.reset({ to: "first" });
    for (const each of [run, fork, refork, reset]) assert.equal(await each.result(), "end");
    await env.advance("20m");
    for (const [each, id] of [
      [run, "c"],
      [fork, "f"],
      [refork, "r"],
      [reset, "r"],
    ] as const) {
      assert.equal(await each.result(), "end");
      const [last] = await env.bareStore.listInstances("default", { id }, { limit: 1 });
      const found = await env.engine.options.store.findInstance("default", id);
      assert.equal(found?.run, last?.run);
    }
    // What the fork has of its past names a run of "c", which is none of its own.
    const gone = (await env.state("f")).start?.firstRun;
    assert.equal(gone, fork.runId);
  });
});
