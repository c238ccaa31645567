import assert from "node:assert/strict";
import { test } from "node:test";
import { type ActivityContext, type ActivityError, activity, NonRetryableError, type TimeoutError, Type, workflow } from "@wovyr/sdk";
import type { HistoryFact, Turn } from "@wovyr/sdk/internal";
import type { TestEnvironment } from "@wovyr/testing";
import { Gate } from "@wovyr/testing";
import { inCase } from "./case.ts";

const facts = (turns: readonly Turn[]): HistoryFact[] => turns.flatMap(({ events }) => [...events]);
const saved = (env: TestEnvironment, run: string) => env.bareStore.readHeartbeats({ tenant: "default", run });

function beating(heartbeat: number | undefined, body: (ctx: ActivityContext) => Promise<unknown>) {
  const work = activity(
    "work",
    { ...(heartbeat !== undefined && { timeout: { heartbeat } }), retry: { maxAttempts: 4, initialDelay: "1s", jitter: "none" } },
    (_: undefined, ctx) => body(ctx),
  );
  return workflow("worker", async function* () {
    return yield* work(undefined);
  });
}

test("signs of life keep an attempt going beyond its heartbeat timeout, and the first silence that long ends it", async () => {
  const gate = new Gate<undefined, string>(() => "work");
  const work = activity("work", { timeout: { heartbeat: "10s" }, retry: { maxAttempts: 1 } }, gate.body);
  const worker = workflow("worker", async function* () {
    try {
      yield* work(undefined);
    } catch (error) {
      return ((error as ActivityError).cause as TimeoutError).timeout;
    }
    return "";
  });
  await inCase({ workflows: [worker] }, async (env) => {
    const run = await env.start(worker);
    const { ctx } = await gate.arrived();
    const { heartbeat } = ctx;
    for (let beat = 0; beat < 20; beat += 1) {
      await env.advance("9s");
      heartbeat({ beat });
    }
    const last = env.now().getTime();
    await env.advance("1h");
    assert.equal(await run.result(), "heartbeat");
    assert.equal((await env.turns(run.id)).at(-1)?.at, last + 10_000);
    gate.open("work", "");
  });
});

test("what an attempt told last reaches the next one with its failure, and stays until another word comes", async () => {
  const seen: unknown[] = [];
  const worker = beating(undefined, async (ctx) => {
    seen.push(ctx.lastHeartbeat);
    if (ctx.attempt === 1) {
      ctx.heartbeat({ row: 1 });
      ctx.heartbeat({ row: 7, at: new Date(5), seen: new Set([1]) });
    }
    if (ctx.attempt === 3) ctx.heartbeat("third");
    if (ctx.attempt < 4) throw new Error("down");
    return "done";
  });
  await inCase({ workflows: [worker], autoSkip: false }, async (env) => {
    const run = await env.start(worker);
    await env.advance(0);
    assert.deepEqual((await run.describe()).activities[0]?.lastHeartbeat, { row: 7, at: new Date(5), seen: new Set([1]) });
    await env.advance("1m");
    assert.equal(await run.result(), "done");
    const row = { row: 7, at: new Date(5), seen: new Set([1]) };
    assert.deepEqual(seen, [undefined, row, row, "third"]);
    assert.deepEqual(await saved(env, run.runId), [], "without a heartbeat timeout nothing is saved");
  });
});

test("H117 what an attempt tells is saved at most once within an interval, removed with its outcome, and never sent after its end", async () => {
  const gate = new Gate<undefined, string>(() => "work");
  const work = activity("work", { timeout: { heartbeat: "60s" } }, gate.body);
  const worker = workflow("worker", async function* () {
    return yield* work(undefined);
  });
  await inCase({ workflows: [worker] }, async (env) => {
    const run = await env.start(worker);
    const { ctx } = await gate.arrived();
    const counts: number[] = [];
    for (let beat = 0; beat < 400; beat += 1) {
      ctx.heartbeat(beat);
      await env.advance("100ms");
      const [row] = await saved(env, run.runId);
      if (row !== undefined && counts.at(-1) !== JSON.parse(row.details)) counts.push(JSON.parse(row.details) as number);
    }
    assert.deepEqual(counts, [0, 199, 399].slice(0, counts.length), "at once, then every third of the timeout, the latest word");
    assert.ok(counts.length >= 2);
    ctx.heartbeat("last");
    gate.open("work", "done");
    assert.equal(await run.result(), "done");
    await env.settle();
    assert.deepEqual(await saved(env, run.runId), []);
    ctx.heartbeat("after the end");
    await env.advance("10m");
    assert.deepEqual(await saved(env, run.runId), []);
  });
});

test("H117 a throttled word holds up no shutdown, and reaches the next attempt", async () => {
  const gate = new Gate<undefined, unknown>(() => "work");
  const work = activity("work", { timeout: { heartbeat: "60s" } }, gate.body);
  const worker = workflow("worker", async function* () {
    return yield* work(undefined);
  });
  await inCase({ workflows: [worker] }, async (env) => {
    const run = await env.start(worker);
    const { ctx } = await gate.arrived();
    ctx.heartbeat("first");
    ctx.heartbeat("second");
    const began = performance.now();
    await env.stop();
    assert.ok(performance.now() - began < 1_000);
    await env.restart();
    await env.until(() => gate.calls === 2);
    const again = [...gate.waiting];
    assert.equal(again.length, 2);
    gate.open("work", "of the attempt that was given up");
    const { ctx: next } = await gate.arrived();
    assert.equal(next.lastHeartbeat, "second");
    gate.open("work", "done");
    assert.equal(await run.result(), "done");
    assert.ok(
      facts(await env.turns(run.id)).some(
        (fact) => fact.type === "AttemptLost" && fact.cause === "shutdown" && fact.heartbeat === '"second"',
      ),
    );
  });
});

test("what a lost attempt told last comes from the store: it reaches the attempt that is made in its place, and history", async () => {
  for (const heartbeat of [3_000, undefined]) {
    const seen: unknown[] = [];
    const gate = new Gate<undefined, string>(() => "work");
    const work = activity("work", heartbeat === undefined ? {} : { timeout: { heartbeat } }, (input: undefined, ctx) => {
      seen.push(ctx.lastHeartbeat);
      return gate.body(input, ctx);
    });
    const worker = workflow("worker", async function* () {
      return yield* work(undefined);
    });
    await inCase({ workflows: [worker] }, async (env) => {
      const run = await env.start(worker);
      for (let life = 0; life < 2; life += 1) {
        await env.until(() => gate.calls === life + 1);
        const calls = gate.waiting.length;
        assert.ok(calls > 0);
        const ctx = (await gate.arrived()).ctx;
        if (life === 0) ctx.heartbeat({ page: 1 });
        await env.advance("1s");
        if (life === 0) ctx.heartbeat({ page: 2 });
        await env.advance("1s");
        env.crash();
        gate.open("work", "of a dead process");
        await env.restart();
      }
      await env.until(() => gate.calls === 3);
      gate.open("work", "done");
      assert.equal(await run.result(), "done");
      const expected = heartbeat === undefined ? undefined : { page: 2 };
      assert.deepEqual(seen, [undefined, expected, expected]);
      const lost = facts(await env.turns(run.id)).flatMap((fact) => (fact.type === "AttemptLost" ? [fact.heartbeat] : []));
      assert.deepEqual(lost, [heartbeat === undefined ? undefined : '{"page":2}', undefined]);
      await env.settle();
      assert.deepEqual(await saved(env, run.runId), []);
    });
  }
});

test("details that cannot be stored are refused at the call, with their path, and leave the ones before", async () => {
  const worker = beating(undefined, async (ctx) => {
    if (ctx.attempt === 2) return ctx.lastHeartbeat;
    ctx.heartbeat("good");
    assert.throws(() => ctx.heartbeat({ a: [() => 1] }), { code: "PAYLOAD_UNSERIALIZABLE", path: "$.a[0]" });
    assert.throws(() => ctx.heartbeat("x".repeat(3 * 1024 * 1024)), { code: "PAYLOAD_TOO_LARGE" });
    throw new Error("down");
  });
  await inCase({ workflows: [worker] }, async (env) => assert.equal(await env.execute(worker), "good"));
});

test("a store that cannot save words holds nothing up", async () => {
  const worker = beating(1_000, async (ctx) => {
    ctx.heartbeat(1);
    if (ctx.attempt === 1) throw new NonRetryableError("enough");
    return 1;
  });
  await inCase({ workflows: [worker] }, async (env) => {
    const store = env.bareStore as { saveHeartbeats: unknown };
    const save = store.saveHeartbeats;
    store.saveHeartbeats = () => Promise.reject(new Error("disk full"));
    await assert.rejects(env.execute(worker), /enough/);
    store.saveHeartbeats = save;
  });
});

test("words pass through the codec like any other value, on every way", async () => {
  const upsideDown = (text: string) => [...text].reverse().join("");
  const codec = { name: "upside-down", encode: upsideDown, decode: upsideDown };
  const gate = new Gate<undefined, unknown>(() => "work");
  const work = activity("work", { input: Type.Undefined(), timeout: { heartbeat: "10s" }, retry: { initialDelay: 1 } }, gate.body);
  const worker = workflow("worker", async function* () {
    return yield* work(undefined);
  });
  await inCase({ workflows: [worker], codec }, async (env) => {
    const run = await env.start(worker);
    (await gate.arrived()).ctx.heartbeat({ secret: "card" });
    await env.settle();
    const rows = await saved(env, run.runId);
    assert.equal(rows.length, 1);
    assert.ok(!JSON.stringify(rows).includes("card"));
    env.crash();
    gate.open("work", "of a dead process");
    await env.restart();
    const { ctx } = await gate.arrived();
    assert.deepEqual(ctx.lastHeartbeat, { secret: "card" });
    ctx.heartbeat({ secret: "another card" });
    gate.fail("work", new Error("down"));
    await env.until(() => gate.calls === 3);
    const { ctx: third } = await gate.arrived();
    gate.open("work", third.lastHeartbeat);
    assert.deepEqual(await run.result(), { secret: "another card" });
    const history = await env.bareStore.readHistory({ tenant: "default", run: run.runId }, 1, 100);
    assert.ok(history.every(({ events }) => !events.includes("card")));
  });
});
