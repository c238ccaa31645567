import assert from "node:assert/strict";
import { test } from "node:test";
import { activity, awaitEvent, event, sleep, Type, workflow } from "@wovyr/sdk";
import { ExecutionRecord, Gate, SeededRandom } from "@wovyr/testing";
import { inCase } from "./case.ts";

const go = event("go", Type.Number());

for (const limits of [{ cachedInstances: 25 }, { cachedBytes: 200_000 }])
  test(`H113 the cache of waiting runs stays within its limit (${Object.keys(limits)}), and every run completes`, async () => {
    const waiter = workflow("waiter", async function* (text: string) {
      const state = text.repeat(10);
      return state.length + (yield* awaitEvent(go));
    });
    await inCase({ workflows: [waiter], limits }, async (env) => {
      const runs = await Promise.all(Array.from({ length: 300 }, () => env.start(waiter, "x".repeat(1_000))));
      await env.settle();
      assert.ok(env.engine.table.size <= 25, `${env.engine.table.size} in memory`);
      assert.ok(env.engine.table.evictions >= 275);
      const random = new SeededRandom(113);
      const order = runs.map((run, n) => ({ run, n, at: random.fraction() })).sort((a, b) => a.at - b.at);
      for (const { run, n } of order) await run.send(go, n);
      assert.deepEqual(
        await Promise.all(runs.map((run) => run.result())),
        [...runs.keys()].map((n) => 10_000 + n),
      );
      await env.settle();
      assert.equal(env.engine.table.size, 0);
    });
  });

test("H060 a run that is longer than many leases is entered once, and each of its activities runs once", async () => {
  const record = new ExecutionRecord();
  const work = activity("work", async (n: number) => record.note(`${n}`));
  const long = workflow("long", async function* () {
    for (let n = 0; n < 20; n++) {
      yield* sleep("5s");
      yield* work(n);
    }
    return record.total;
  });
  await inCase({ workflows: [long], lease: "6s", end: { everyAttemptExecuted: true } }, async (env) => {
    assert.equal(await env.execute(long), 20);
    assert.equal(env.crashes, 0);
  });
});

test("H068 an attempt that never settles is ended by its time-out and tried again, evicted or not", async () => {
  const gate = new Gate<undefined, string>(() => "work");
  const work = activity(
    "work",
    { timeout: { startToClose: "10s" }, retry: { maxAttempts: 3, initialDelay: "1s", jitter: "none" } },
    gate.body,
  );
  const worker = workflow("worker", async function* () {
    return yield* work();
  });
  for (const evictAlways of [false, true])
    await inCase({ workflows: [worker], evictAlways, end: { everyAttemptExecuted: true } }, async (env) => {
      const run = await env.start(worker);
      await gate.arrived();
      await env.advance("11s");
      assert.deepEqual(gate.waiting, ["work", "work"]);
      await env.evict(run);
      gate.open("work", "too late");
      await env.settle();
      gate.open("work", "second");
      assert.equal(await run.result(), "second");
    });
});
