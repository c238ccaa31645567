import assert from "node:assert/strict";
import { test } from "node:test";
import { activity, awaitEvent, child, event, sleep, Type, workflow } from "@wovyr/sdk";
import { memoryStore } from "@wovyr/server/internal";
import { createFaultyStore, type FaultPlace, FaultPlan } from "@wovyr/testing";
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
/** Start, wait, activity, retry, timer, child, completion: one kind of write after the other. */
const everything = workflow("everything", async function* () {
  const got = yield* awaitEvent(ping, { timeout: "1h" });
  const done = yield* work("steady");
  const again = yield* work("flaky");
  yield* sleep("1s");
  return [got, done, again, yield* child(small, 4)];
});
const expected = [3, "steady", "flaky", 4];

const commits = await inCase({ workflows: [everything, small] }, async (env) => {
  const run = await env.start(everything);
  await run.send(ping, 3);
  assert.deepEqual(await run.result(), expected);
  return (await env.turns(run.id)).length + 2;
});

for (const at of ["before", "after"] satisfies FaultPlace[])
  test(`H028 a connection that breaks ${at} any one commit, or every one, changes nothing`, async () => {
    for (let broken = 0; broken <= commits + 1; broken++) {
      const plan = new FaultPlan();
      let seen = 0;
      plan.fail("commit", {
        at,
        times: broken === 0 ? Number.POSITIVE_INFINITY : 1,
        where: () => (broken === 0 ? seen++ % 2 === 0 : ++seen === broken),
      });
      await inCase(
        { workflows: [everything, small], store: createFaultyStore(memoryStore(), plan), end: { everyAttemptExecuted: true } },
        async (env) => {
          const starting = env.start(everything, undefined, { id: "x" });
          await env.advance("10s");
          const run = await starting;
          const sending = run.send(ping, 3);
          await env.advance("10s");
          await sending;
          assert.deepEqual(await run.result(), expected);
          assert.equal(env.executions.total, 3);
          const runs = await env.bareStore.listInstances("default", { workflow: "everything" }, { limit: 10 });
          assert.deepEqual(
            runs.map((row) => row.status),
            ["Completed"],
          );
        },
      );
    }
  });

test("H028 reads that fail for a while delay, and lose nothing", async () => {
  const plan = new FaultPlan();
  await inCase({ workflows: [everything, small], store: createFaultyStore(memoryStore(), plan), evictAlways: true }, async (env) => {
    const run = await env.start(everything);
    plan.fail("loadInstances", { times: 3 }).fail("listTimers", { times: 3 });
    const sending = run.send(ping, 3);
    await env.advance("10s");
    await sending;
    plan.fail("loadInstances", { times: 2 }).fail("listTimers", { times: 2 });
    assert.deepEqual(await run.result(), expected);
  });
});
