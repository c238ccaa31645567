/** Graphs of random programs, at every turn of their histories. */
import assert from "node:assert/strict";
import { test } from "node:test";
import {
  activity,
  all,
  any,
  awaitEvent,
  type Branch,
  child,
  type Effect,
  event,
  type Flow,
  map,
  race,
  settled,
  shield,
  sideEffect,
  sleep,
  spawn,
  timeout,
  workflow,
} from "@wovyr/sdk";
import { foldHistory, graphOf, type HistoryEvent, turnsOf } from "@wovyr/sdk/internal";
import { createTestEnvironment } from "@wovyr/testing";
import fc from "fast-check";
import { assertGraph } from "./assert-graph.ts";

type Program =
  | { readonly does: "work" | "fail" | "named"; readonly n: number }
  | { readonly does: "sleep"; readonly seconds: number }
  | { readonly does: "event"; readonly limit?: number }
  | { readonly does: "child" | "side" | "throw" }
  | { readonly does: "steps" | "all" | "any" | "race" | "settled" | "map"; readonly parts: readonly Program[] }
  | { readonly does: "spawn" | "shield" | "try"; readonly part: Program }
  | { readonly does: "timeout"; readonly seconds: number; readonly part: Program };

const programs = fc.letrec<{ program: Program }>((tie) => ({
  program: fc.oneof(
    { maxDepth: 4, depthIdentifier: "program" },
    fc.record({ does: fc.constantFrom("work" as const, "fail" as const, "named" as const), n: fc.nat(5) }),
    fc.record({ does: fc.constant("sleep" as const), seconds: fc.nat(90) }),
    fc.record({ does: fc.constant("event" as const), limit: fc.integer({ min: 1, max: 60 }) }, { requiredKeys: ["does"] }),
    fc.record({ does: fc.constantFrom("child" as const, "side" as const, "throw" as const) }),
    fc.record({
      does: fc.constantFrom("steps" as const, "all" as const, "any" as const, "race" as const, "settled" as const, "map" as const),
      parts: fc.array(tie("program"), { minLength: 1, maxLength: 4 }),
    }),
    fc.record({ does: fc.constantFrom("spawn" as const, "shield" as const, "try" as const), part: tie("program") }),
    fc.record({ does: fc.constant("timeout" as const), seconds: fc.integer({ min: 1, max: 60 }), part: tie("program") }),
  ),
})).program;

const work = activity("work", async (n: number) => n);
const fail = activity("fail", { retry: { maxAttempts: 2, initialDelay: "10s" } }, async (n: number) => {
  throw new Error(`no ${n}`);
});
const Go = event("go");
const inner = workflow("inner", async function* () {
  yield* sleep("20s");
});

let names = 0;

/** A single effect where it is one, so that branches of both sorts come up. */
function effectOf(program: Program): Effect<unknown> | undefined {
  switch (program.does) {
    case "work":
      return work(program.n);
    case "fail":
      return fail(program.n);
    case "named":
      return work(program.n).with({ id: `n${names++}` });
    case "sleep":
      return sleep(program.seconds * 1_000);
    case "event":
      return program.limit === undefined ? awaitEvent(Go) : awaitEvent(Go, { timeout: program.limit * 1_000 });
    case "child":
      return child(inner);
    case "side":
      return sideEffect(() => 1);
    case "all":
      return all(program.parts.map(branchOf));
    case "any":
      return any(program.parts.map(branchOf));
    case "race":
      return race(program.parts.map(branchOf));
    case "settled":
      return settled(program.parts.map(branchOf));
    case "map":
      return map(program.parts, branchOf as (program: Program) => Branch, { concurrency: 2 });
    case "spawn":
      return spawn(branchOf(program.part));
    case "shield":
      return shield(branchOf(program.part));
    case "timeout":
      return timeout(branchOf(program.part), program.seconds * 1_000);
    case "steps":
    case "throw":
    case "try":
      return undefined;
  }
}

function branchOf(program: Program): Branch {
  return effectOf(program) ?? (() => run(program));
}

async function* run(program: Program): Flow<unknown> {
  const effect = effectOf(program);
  if (effect !== undefined) return yield* effect;
  switch (program.does) {
    case "steps":
      for (const part of program.parts) yield* run(part);
      return;
    case "try":
      try {
        yield* run(program.part);
      } catch {
        yield* work(0);
      } finally {
        yield* sleep("1s");
      }
      return;
    default:
      throw new Error("thrown");
  }
}

const asking: ReadonlySet<string> = new Set([
  "ActivityScheduled",
  "TimerStarted",
  "EventAwaited",
  "ChildStarted",
  "SideEffectRecorded",
  "ConditionAwaited",
]);

function assertFits(events: readonly HistoryEvent[]): void {
  const graph = graphOf(events);
  assertGraph(graph);
  const effects = events.filter(({ type }) => asking.has(type)).map(({ data }) => String(data.effect));
  const ids = new Set(graph.nodes.map(({ id }) => id));
  for (const effect of effects) assert.ok(ids.has(effect), effect);
  const state = foldHistory(turnsOf(events));
  assert.equal(graph.status, state.status);
  const nodes = new Map(graph.nodes.map((node) => [node.id, node]));
  for (const [effect, { state: expected }] of state.activities) assert.equal(nodes.get(effect)?.state, expected, effect);
  const openEffects = [...state.activities, ...state.timers, ...state.waits, ...state.children].map(([effect]) => effect);
  if (state.closed) return;
  assert.deepEqual(
    graph.nodes
      .filter(({ id, endedAt, state }) => ids.has(id) && state !== "Parked" && endedAt === undefined && effects.includes(id))
      .map(({ id }) => id)
      .sort(),
    openEffects.sort(),
    "what is open is shown as open",
  );
}

test("at every turn of a random run each effect is one node, and the graph is whole", async () => {
  const how = fc.constantFrom("leave" as const, "cancel" as const, "terminate" as const, "finish" as const);
  await fc.assert(
    fc.asyncProperty(programs, how, fc.nat(60), async (program, ending, after) => {
      names = 0;
      const main = workflow("main", async function* () {
        yield* run(program);
      });
      await using env = await createTestEnvironment({ workflows: [main, inner], autoSkip: false });
      const handle = await env.start(main, undefined, { id: "run" });
      await env.settle();
      await handle.send(Go).catch(() => {});
      await env.advance(after * 1_000);
      if (ending === "cancel") await handle.cancel().catch(() => {});
      if (ending === "terminate") await handle.terminate().catch(() => {});
      if (ending === "finish") await env.advance("10m");
      await env.settle();
      const events: HistoryEvent[] = [];
      for await (const item of handle.history()) events.push(item);
      for (const [index, { seq, turn }] of events.entries()) if (index > 0 && seq === turn) assertFits(events.slice(0, index));
      assertFits(events);
      assert.deepEqual(graphOf(JSON.parse(JSON.stringify(events))), graphOf(events), "times may be texts");
      const { id, runId, ...told } = await handle.graph();
      assert.deepEqual({ id, runId }, { id: "run", runId: handle.runId });
      assert.deepEqual(told, graphOf(events), "what the engine draws is what history gives");
    }),
    { numRuns: 150 },
  );
});

test("whatever the facts say, there is a graph", () => {
  const id = fc.oneof(
    fc.stringMatching(/^[0-9./!@u:on]{0,12}$/),
    fc.string({ maxLength: 6 }),
    fc.constantFrom("0", "0.0", "0.0/0", "0!timeout", "!cleanup", "@a", "on:x/0", "u:0", "start", "end", "more"),
  );
  const type = fc.constantFrom(
    ...asking,
    "InstanceStarted",
    "ActivityCompleted",
    "ActivityFailed",
    "AttemptStarted",
    "AttemptLost",
    "TimerFired",
    "EventConsumed",
    "ChildFailed",
    "EffectCancelled",
    "UpdateRequested",
    "UpdateCompleted",
    "ConditionMet",
    "Parked",
    "Resumed",
    "InstanceCompleted",
    "SomethingNew",
  );
  const data = fc.record(
    {
      effect: fc.oneof(id, fc.constant(7)),
      name: fc.string(),
      attempt: fc.nat(3),
      due: fc.constant(0),
      retryAt: fc.constant(1),
      failure: fc.anything(),
    },
    { requiredKeys: [] },
  );
  const facts = fc.array(fc.record({ type, data }), { maxLength: 30 });
  fc.assert(
    fc.property(facts, fc.integer({ min: 10, max: 20 }), (facts, maxNodes) => {
      const events = facts.map(({ type, data }, index) => ({ seq: index + 1, turn: 1, type, at: new Date(0), data }));
      const graph = graphOf(events, { maxNodes });
      assertGraph(graph);
      assert.ok(graph.nodes.length <= maxNodes);
    }),
    { numRuns: 2_000 },
  );
});
