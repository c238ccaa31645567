import assert from "node:assert/strict";
import { test } from "node:test";
import { activity, all, awaitEvent, event, sleep, workflow } from "@wovyr/sdk";
import { checkEndOfCase, createTestEnvironment, Gate } from "@wovyr/testing";

const double = activity("double", async (n: number) => n * 2);
const go = event("go");

const nap = workflow("nap", async function* (days: number, ctx) {
  const began = ctx.now().getTime();
  yield* sleep(`${days} days` as const);
  const [value] = yield* all([double(21)]);
  return { value, slept: ctx.now().getTime() - began };
});

const patient = workflow("patient", async function* () {
  yield* awaitEvent(go);
  return "gone";
});

test("time jumps over a long sleep and stands exactly at its end", async () => {
  await using env = await createTestEnvironment({ workflows: [nap] });
  const began = performance.now();
  assert.deepEqual(await env.execute(nap, 40), { value: 42, slept: 40 * 86_400_000 });
  assert.equal(env.now().toISOString(), "2026-02-10T00:00:00.000Z");
  assert.ok(performance.now() - began < 1_000);
  await checkEndOfCase(env, { everyAttemptExecuted: true });
});

test("in manual mode only advance moves time", async () => {
  await using env = await createTestEnvironment({ workflows: [nap], autoSkip: false });
  const run = await env.start(nap, 1);
  await env.advance("23h");
  assert.equal((await env.state(run.id)).status, "Waiting");
  await env.advance("1h");
  assert.equal((await env.state(run.id)).status, "Completed");
});

test("a run that nothing can move rejects its result and says what it waits for", async () => {
  await using env = await createTestEnvironment({ workflows: [patient] });
  const run = await env.start(patient);
  await assert.rejects(run.result(), /will never end: .*event "go" at .*environment\.test\.ts:17/);
});

test("a result is awaited across a crash", async () => {
  await using env = await createTestEnvironment({ workflows: [patient] });
  const run = await env.start(patient);
  env.autoSkip = false;
  const result = run.result();
  await env.restart();
  await run.send(go);
  assert.equal(await result, "gone");
  assert.equal(env.crashes, 1);
});

test("the same seed gives the same run ids", async () => {
  const ids = async (seed: number) => {
    await using env = await createTestEnvironment({ workflows: [patient], seed });
    return [(await env.start(patient)).runId, (await env.start(patient)).runId];
  };
  assert.deepEqual(await ids(7), await ids(7));
  assert.notDeepEqual(await ids(7), await ids(8));
});

test("a gate chooses the order in which activities end", async () => {
  const gate = new Gate<string, string>();
  const work = activity("work", gate.body);
  const ordered: string[] = [];
  const both = workflow("both", async function* () {
    const one = async function* (name: string) {
      ordered.push(yield* work(name));
    };
    yield* all([one("a"), one("b")]);
    return ordered.splice(0);
  });
  await using env = await createTestEnvironment({ workflows: [both] });
  const run = await env.start(both);
  const result = run.result();
  await gate.arrived("b");
  gate.open("b", "B");
  await env.settle();
  gate.open("a", "A");
  assert.deepEqual(await result, ["B", "A"]);
});
