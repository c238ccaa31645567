import assert from "node:assert/strict";
import { test } from "node:test";
import { activity, all, awaitEvent, event, Type, type WovyrError, workflow } from "@wovyr/sdk";
import { memoryStore } from "@wovyr/server/internal";
import { createFaultyStore, createTestEnvironment, FaultPlan, replayHistory } from "@wovyr/testing";
import { inEachCache } from "./case.ts";

const work = activity("work", async (n: number) => n);
const tick = event("tick", Type.Number());

const sequence = workflow("sequence", async function* (size: number) {
  for (let n = 0; n < size; n++) yield* work(n);
  return size;
});

const drain = workflow("drain", async function* (size: number) {
  yield* awaitEvent(event("begin"));
  let sum = 0;
  for (let n = 0; n < size; n++) sum += yield* awaitEvent(tick);
  return sum;
});

/** What tells a linear cost from a quadratic one on a busy machine: eight times the work may take 24 times as long, and not 64 times. */
const growth = 8;
const tolerance = 24;

/** The least processor time of five cold replays, in milliseconds. */
async function replayTime(of: Parameters<typeof replayHistory>[0], turns: Parameters<typeof replayHistory>[1]): Promise<number> {
  let best = Number.POSITIVE_INFINITY;
  for (let round = 0; round < 5; round++) {
    const began = process.cpuUsage();
    const { failure } = await replayHistory(of, turns);
    assert.equal(failure, undefined);
    const { user, system } = process.cpuUsage(began);
    best = Math.min(best, (user + system) / 1_000);
  }
  return best;
}

test("H019 a cold replay takes time in proportion to the history", async () => {
  await using env = await createTestEnvironment({ workflows: [sequence] });
  const times: number[] = [];
  for (const size of [1_000, 1_000 * growth]) {
    const run = await env.start(sequence, size);
    assert.equal(await run.result(), size);
    times.push(await replayTime(sequence, await env.turns(run.id)));
  }
  const [small = 0, large = 0] = times;
  assert.ok(large / small < tolerance, `1,000 steps: ${small.toFixed(1)} ms, 8,000 steps: ${large.toFixed(1)} ms`);
});

test("H019 buffered events are taken in time that does not depend on how many wait", async () => {
  await using env = await createTestEnvironment({ workflows: [drain] });
  const times: number[] = [];
  for (const size of [500, 500 * growth]) {
    const run = await env.start(drain, size);
    await Promise.all(Array.from({ length: size }, (_, n) => run.send(tick, n)));
    await run.send(event("begin"));
    assert.equal(await run.result(), (size * (size - 1)) / 2);
    times.push(await replayTime(drain, await env.turns(run.id)));
  }
  const [small = 0, large = 0] = times;
  assert.ok(large / small < tolerance, `500 events: ${small.toFixed(1)} ms, 4,000 events: ${large.toFixed(1)} ms`);
});

test("H019 10,000 parallel activities end in one turn each way", async () => {
  const fan = workflow("fan", async function* (size: number) {
    return (yield* all(Array.from({ length: size }, (_, n) => work(n)))).length;
  });
  await using env = await createTestEnvironment({ workflows: [fan], limits: { activities: 20_000 } });
  const run = await env.start(fan, 10_000);
  assert.equal(await run.result(), 10_000);
  assert.ok((await env.turns(run.id)).length < 50);
  const took = await replayTime(fan, await env.turns(run.id));
  assert.ok(took < 2_000, `${took} ms`);
});

test("H019 without a cache, a turn reads its run once, however long that has become", async () => {
  const reads = [
    "loadInstances",
    "readHistory",
    "readLastTurn",
    "getInstance",
    "findInstance",
    "listInstances",
    "listTimers",
    "listInbox",
  ] as const;
  const plan = new FaultPlan();
  const seen = new Map<string, number>();
  for (const read of reads) plan.watch(read, () => void seen.set(read, (seen.get(read) ?? 0) + 1));
  await using env = await createTestEnvironment({
    workflows: [sequence],
    store: createFaultyStore(memoryStore(), plan),
    evictAlways: true,
  });
  const readsFor = async (size: number) => {
    seen.clear();
    const run = await env.start(sequence, size);
    assert.equal(await run.result(), size);
    const turns = (await env.turns(run.id)).length;
    return { turns, loads: seen.get("loadInstances") ?? 0, others: [...seen.values()].reduce((sum, n) => sum + n, 0) };
  };
  for (const size of [25, 250]) {
    const { turns, loads, others } = await readsFor(size);
    assert.ok(loads <= turns, `${loads} loads in ${turns} turns`);
    assert.ok(others - loads <= 10, `${others} other reads`);
  }
});

test("H019 at the limit of history a run fails with advice, which it may still take", async () => {
  const stubborn = workflow("stubborn", async function* () {
    for (;;) yield* work(0);
  });
  const docile = workflow("docile", { input: Type.Number() }, async function* (round, ctx) {
    if (round === 2) return round;
    try {
      for (;;) yield* work(0);
    } catch (error) {
      assert.equal((error as WovyrError).code, "HISTORY_TOO_LONG");
      return yield* ctx.continueAsNew(round + 1);
    }
  });
  await inEachCache({ workflows: [stubborn, docile], limits: { history: 100 } }, async (env) => {
    const run = await env.start(stubborn);
    await assert.rejects(run.result(), /has recorded 100 events, the limit\. Let it continue as new \(ctx\.continueAsNew\)/);
    assert.ok((await env.state(run.id)).tail <= 102);
    assert.equal(await env.execute(docile, 0), 2);
  });
});
