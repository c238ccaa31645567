import assert from "node:assert/strict";
import { test } from "node:test";
import { activity, awaitEvent, child, event, send, sleep, Type, workflow } from "@wovyr/sdk";
import { memoryStore } from "@wovyr/server/internal";
import { createFaultyStore, type FaultPlace, FaultPlan, type TestEnvironment } from "@wovyr/testing";
import { inCase } from "./case.ts";

const ping = event("ping", Type.Number());
const work = activity("work", { retry: { initialDelay: "1s" } }, async (name: string, ctx) => {
  if (ctx.attempt === 1 && name === "flaky") throw new Error("once");
  return name;
});
const small = workflow("small", async function* (n: number) {
  yield* sleep("1s");
  return n;
});
const sink = workflow("sink", async function* () {
  return yield* awaitEvent(ping);
});
/** Start, wait, activity, retry, timer, child, message, the next run, completion: one kind of write after the other. */
const everything = workflow("everything", { input: Type.Array(Type.Unknown()) }, async function* (seen, ctx) {
  if (seen.length > 0) return seen;
  const got = yield* awaitEvent(ping, { timeout: "1h" });
  const done = yield* work("steady");
  const again = yield* work("flaky");
  yield* sleep("1s");
  const grown = yield* child(small, 4);
  yield* send("sink", ping, 7);
  return yield* ctx.continueAsNew([got, done, again, grown]);
});
const expected = [3, "steady", "flaky", 4];
const workflows = [everything, small, sink];

/** The case itself: told how to start, to send and to wait, whatever breaks meanwhile. */
async function play(env: TestEnvironment): Promise<void> {
  const other = await patiently(env, env.start(sink, undefined, { id: "sink", idempotencyKey: "sink" }));
  const run = await patiently(env, env.start(everything, [], { id: "x", idempotencyKey: "x" }));
  await patiently(env, run.send(ping, 3));
  assert.deepEqual(await run.result(), expected);
  assert.equal(await other.result(), 7);
}

/** What a broken connection delays is tried again after a while. */
async function patiently<T>(env: TestEnvironment, call: Promise<T>): Promise<T> {
  await env.advance("10s");
  return call;
}

let commits = 0;
const counting = new FaultPlan().watch("commit", () => {
  commits += 1;
});
await inCase({ workflows, store: createFaultyStore(memoryStore(), counting) }, play);

for (const at of ["before", "after"] satisfies FaultPlace[])
  test(`H028 a connection that breaks ${at} any one commit, or every one, changes nothing`, async () => {
    assert.ok(commits >= 12, `${commits} commits`);
    for (let broken = 0; broken <= commits + 1; broken++) {
      const plan = new FaultPlan();
      let seen = 0;
      plan.fail("commit", {
        at,
        times: broken === 0 ? Number.POSITIVE_INFINITY : 1,
        where: () => (broken === 0 ? seen++ % 2 === 0 : ++seen === broken),
      });
      await inCase({ workflows, store: createFaultyStore(memoryStore(), plan), end: { everyAttemptExecuted: true } }, async (env) => {
        await play(env);
        assert.equal([...env.executions.entries()].length, 3);
        assert.equal(env.executions.total, 4);
        const runs = await env.bareStore.listInstances("default", {}, { limit: 10 });
        assert.deepEqual(runs.map((row) => `${row.workflow} ${row.status}`).sort(), [
          "everything Completed",
          "everything ContinuedAsNew",
          "sink Completed",
          "small Completed",
        ]);
      });
    }
  });

test("H028 reads that fail for a while delay, and lose nothing", async () => {
  const plan = new FaultPlan();
  await inCase({ workflows, store: createFaultyStore(memoryStore(), plan), evictAlways: true }, async (env) => {
    await env.start(sink, undefined, { id: "sink" });
    const run = await env.start(everything, []);
    plan.fail("loadInstances", { times: 3 }).fail("listTimers", { times: 3 });
    await patiently(env, run.send(ping, 3));
    plan.fail("loadInstances", { times: 2 }).fail("listTimers", { times: 2 });
    assert.deepEqual(await run.result(), expected);
  });
});

for (const at of ["before", "after"] satisfies FaultPlace[])
  test(`H028 an event for a run that cannot take it now is kept once, though the connection breaks ${at} it is`, async () => {
    const plan = new FaultPlan();
    await inCase({ workflows: [sink], store: createFaultyStore(memoryStore(), plan), autoSkip: false }, async (env) => {
      const run = await env.start(sink);
      await env.restart({ workflows: [small] });
      plan.fail("post", { at, times: 2 });
      const sending = env.insist(() => run.send(ping, 5, { idempotencyKey: "once" }));
      for (let tries = 0; tries < 3; tries++) await patiently(env, Promise.resolve());
      await sending;
      assert.equal(plan.met, 2);
      assert.equal((await env.bareStore.listInbox(env.engine.ownership.shards, { limit: 10 })).length, 1);
      await env.restart({ workflows: [sink] });
      assert.equal(await run.result(), 5);
    });
  });

for (const at of ["before", "after"] satisfies FaultPlace[])
  test(`H028 a child whose id is taken is refused, though the connection breaks ${at} its parent's turn is kept`, async () => {
    const plan = new FaultPlan();
    const parent = workflow("parent", async function* () {
      try {
        return yield* child(small, 1, { id: "taken" });
      } catch (error) {
        return (error as { code: string }).code;
      }
    });
    await inCase({ workflows: [parent, sink, small], store: createFaultyStore(memoryStore(), plan) }, async (env) => {
      const holder = await env.start(sink, undefined, { id: "taken" });
      await env.settle();
      plan.fail("commit", { at });
      const run = await patiently(env, env.start(parent, undefined, { idempotencyKey: "p" }));
      assert.equal(await run.result(), "INSTANCE_EXISTS");
      await holder.send(ping, 1);
      assert.equal(await holder.result(), 1);
    });
  });
