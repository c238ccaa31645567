/**
 * Random programs under random orders of completion: whatever interrupts them, they come to the same end.
 *
 * An uninterrupted run draws, step by step, what happens next, from what its history says is open. The interrupted run is given the same steps, with
 * evictions and crashes before, after and in the middle of them.
 */
import assert from "node:assert/strict";
import { test } from "node:test";
import type { InstanceState } from "@wovyr/sdk/internal";
import { decodePayload } from "@wovyr/sdk/internal";
import { checkEndOfCase, createTestEnvironment, SeededRandom, type TestEnvironment } from "@wovyr/testing";
import fc from "fast-check";
import { endActivity, forgetActivities, interpreted, type Program, program, signal } from "./program.ts";

type Step =
  | { readonly kind: "activity"; readonly effect: string; readonly fails: boolean }
  | { readonly kind: "signal"; readonly n: number }
  | { readonly kind: "time" }
  | { readonly kind: "cancel" };

type End = { readonly status: string; readonly output: unknown; readonly log: unknown };

const stepLimit = 200;
const instance = "program";

function draw(state: InstanceState, random: SeededRandom, signals: number, mayCancel: boolean): Step | undefined {
  const steps: Step[] = [...state.activities.keys()].map((effect) => ({ kind: "activity", effect, fails: random.below(5) === 0 }));
  if (state.timers.size > 0) steps.push({ kind: "time" }, { kind: "time" });
  if (signals < 3 || state.waits.size > 0) steps.push({ kind: "signal", n: signals });
  if (mayCancel && random.below(15) === 0) steps.push({ kind: "cancel" });
  return steps.length === 0 ? undefined : random.pick(steps);
}

/** Sets a step going; whoever calls decides how much of it happens before the next crash. */
async function take(env: TestEnvironment, runId: string, step: Step, state: InstanceState): Promise<void> {
  const run = env.handle(interpreted, instance);
  const refused = (error: { code?: string }) => {
    if (error.code !== "UNREACHABLE" && error.code !== "INSTANCE_CLOSED") throw error;
  };
  switch (step.kind) {
    case "activity":
      endActivity(`${runId}/${step.effect}`, step.fails);
      return;
    case "signal":
      await run.send(signal, `signal ${step.n}`, { idempotencyKey: `signal-${step.n}` }).catch(refused);
      return;
    case "cancel":
      await run.cancel().catch(refused);
      return;
    case "time":
      env.clock.advanceTo(Math.min(...[...state.timers.values()].map((timer) => timer.due)));
  }
}

const endOf = (state: InstanceState): End => ({
  status: state.status,
  output: state.outcome?.status === "Completed" ? decodePayload(state.outcome.output) : state.outcome?.failure.message,
  log: state.variables === undefined ? undefined : decodePayload(state.variables),
});

async function uninterrupted(tree: Program, seed: number): Promise<{ end: End; steps: Step[] }> {
  await using env = await createTestEnvironment({ workflows: [interpreted], autoSkip: false, seed });
  const random = new SeededRandom(seed);
  const steps: Step[] = [];
  const { runId } = await env.start(interpreted, tree, { id: instance });
  let signals = 0;
  for (;;) {
    await env.settle();
    const state = await env.state(instance);
    const step =
      state.closed || steps.length >= stepLimit
        ? undefined
        : draw(
            state,
            random,
            signals,
            steps.every(({ kind }) => kind !== "cancel"),
          );
    if (step === undefined) {
      assert.ok(state.closed, `stuck after ${steps.length} steps`);
      await checkEndOfCase(env);
      return { end: endOf(state), steps };
    }
    if (step.kind === "signal") signals += 1;
    steps.push(step);
    await take(env, runId, step, state);
  }
}

async function interrupted(tree: Program, seed: number, steps: readonly Step[], chaos: SeededRandom): Promise<End> {
  await using env = await createTestEnvironment({ workflows: [interpreted], autoSkip: false, seed, evictAlways: chaos.below(3) === 0 });
  const { runId } = await env.start(interpreted, tree, { id: instance });
  for (const step of steps) {
    await env.settle();
    if (chaos.below(4) === 0) await env.evict();
    const state = await env.state(instance);
    // After two losses activities run one at a time, in an order that is not the steps'.
    if (chaos.below(3) > 0 || [...state.activities.values()].some((activity) => activity.losses > 0)) {
      await take(env, runId, step, state);
      continue;
    }
    const { tail } = state;
    const taking = take(env, runId, step, state);
    for (let macrotasks = chaos.below(4); macrotasks > 0; macrotasks--) await new Promise((resolve) => setImmediate(resolve));
    await env.restart();
    await taking;
    await env.settle();
    // What was not durable yet is done again: by the client that got no answer, or by the activity's next attempt.
    const after = await env.state(instance);
    if (step.kind === "activity" && after.activities.has(step.effect)) await take(env, runId, step, after);
    if (step.kind === "signal" && !after.closed) await take(env, runId, step, after);
    if (step.kind === "cancel" && ![...after.messages.keys()].some((message) => message.startsWith("m-")))
      await take(env, runId, step, after);
    assert.ok(after.tail >= tail);
  }
  await env.settle();
  const end = endOf(await env.state(instance));
  await checkEndOfCase(env);
  return end;
}

const runs = Number(process.env.WOVYR_TEST_RUNS ?? 100);
const seed = Number(process.env.WOVYR_TEST_SEED ?? Date.now() % 1_000_000_000);

test("random programs end alike, however they are evicted and crashed, and leave nothing open", async (t) => {
  t.diagnostic(`seed ${seed}`);
  let taken = 0;
  await fc.assert(
    fc.asyncProperty(program, fc.nat(1_000_000), async (tree, order) => {
      forgetActivities();
      const { end, steps } = await uninterrupted(tree, order);
      taken += steps.length;
      for (let round = 0; round < 2; round++) {
        forgetActivities();
        assert.deepEqual(await interrupted(tree, order, steps, new SeededRandom(order * 2 + round)), end);
      }
    }),
    { seed, numRuns: runs, includeErrorInReport: true },
  );
  t.diagnostic(`${taken} steps`);
});
