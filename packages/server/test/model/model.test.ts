/**
 * The model itself: it knows its language, and notices an engine that does not.
 *
 * 1. A history in which something happened otherwise than the language says does not agree with the model.
 */
import assert from "node:assert/strict";
import { test } from "node:test";
import { encodePayload, type HistoryFact } from "@wovyr/sdk/internal";
import { checkEndOfCase, createTestEnvironment } from "@wovyr/testing";
import { endAttempt, forgetAttempts } from "./activities.ts";
import { ModelledRun } from "./history.ts";
import { interpreted, type Program } from "./program.ts";

const activity: Program = { kind: "activity", attempts: 1 };
const then = (...parts: Program[]): Program => ({ kind: "sequence", parts });
const [inBranches, inRace] = (["all", "race"] as const).map(
  (kind): Program => ({
    kind,
    bare: false,
    parts: [then(activity, activity), then(activity, activity)],
  }),
);

type Events = readonly HistoryFact[];

/** Runs a program whose attempts end in the given order, and gives the events of its turns. */
async function historyOf(part: Program, order: readonly string[]): Promise<Events[]> {
  forgetAttempts();
  await using env = await createTestEnvironment({ workflows: [interpreted], autoSkip: false });
  const { runId } = await env.start(interpreted, { part, name: "0" }, { id: "root" });
  for (const effect of order) {
    endAttempt(runId, effect, "done");
    await env.settle();
  }
  await checkEndOfCase(env);
  return (await env.turns("root")).map((turn) => turn.events);
}

/** Gives turns to a model, numbered as a history is. */
function give(turns: readonly Events[]): ModelledRun {
  const run = new ModelledRun("run", "root");
  for (const events of turns) run.take({ seq: run.next, at: 0, node: "node", events });
  return run;
}

const inBranchesOrder = ["0.1/0", "0.0/0", "0.0/1", "0.1/1"];
const position = (turns: readonly Events[], effect: string) =>
  turns.findIndex((events) => events.some((fact) => fact.type === "ActivityCompleted" && fact.effect === effect));

test("a history that nobody touched agrees with the model", async () => {
  assert.ok(give(await historyOf(inBranches as Program, inBranchesOrder)).closed);
  assert.ok(give(await historyOf(inRace as Program, ["0.1/0", "0.1/1"])).closed);
});

test("two completions that changed places are noticed", async () => {
  const turns = await historyOf(inBranches as Program, inBranchesOrder);
  const [first, second] = [position(turns, "0.1/0"), position(turns, "0.0/0")];
  const swapped = turns.map((events, index) => {
    const other = index === first ? turns[second] : index === second ? turns[first] : undefined;
    return other === undefined ? events : [other[0] as HistoryFact, ...events.slice(1)];
  });
  assert.throws(() => give(swapped), /part/);
});

test("two completions of one turn that changed places are noticed by the order in which the branches went on", async () => {
  const turns = await historyOf(inBranches as Program, inBranchesOrder);
  const [first, second] = [position(turns, "0.1/0"), position(turns, "0.0/0")];
  const incoming = [turns[second]?.[0], turns[first]?.[0]] as HistoryFact[];
  const rest = [...(turns[first] ?? []).slice(1), ...(turns[second] ?? []).slice(1)];
  assert.throws(() => give([...turns.slice(0, first), [...incoming, ...rest]]), /the variables of the model .* part/);
});

test("the continuation of a loser is noticed", async () => {
  const turns = await historyOf(inRace as Program, ["0.1/0", "0.1/1"]);
  const goneOn = turns.map((events) =>
    events.map((fact): HistoryFact => {
      if (fact.type !== "InstanceCompleted") return fact;
      const output = { value: { winner: 1, value: ["0.1.0 done", "0.1.1 done"] }, log: ["0.0.1 went on"] };
      return { ...fact, output: encodePayload(output) };
    }),
  );
  assert.throws(() => give(goneOn), /part/);
  const leftOpen = turns.map((events) => events.filter((fact) => fact.type !== "EffectCancelled"));
  assert.throws(() => give(leftOpen));
});

test("something undone out of its turn, or twice, is noticed", async () => {
  const part = then({ ...activity, undo: activity }, { ...activity, undo: activity }, { kind: "throw" });
  const turns = await historyOf(part, ["0", "1", "~1/0", "~0/0"]);
  assert.equal(give(turns).model.end?.status, "Compensated");
  const exchanged = turns.map((events) =>
    events.map((fact): HistoryFact => {
      if (fact.type !== "ActivityScheduled" && fact.type !== "ActivityCompleted" && fact.type !== "CompensationCompleted") return fact;
      const other = { "~1": "~0", "~0": "~1", "~1/0": "~0/0", "~0/0": "~1/0" }[fact.effect];
      return other === undefined ? fact : { ...fact, effect: other };
    }),
  );
  assert.throws(() => give(exchanged));
  const again = turns.map((events) => events.flatMap((fact) => (fact.type === "CompensationCompleted" ? [] : [fact])));
  assert.throws(() => give(again), /part/);
});

test("a timer that fires before its time, or before an earlier one, is noticed", async () => {
  const sleep = (ms: number): Program => ({ kind: "sleep", ms });
  const part: Program = { kind: "all", bare: true, parts: [sleep(10), sleep(25)] };
  const turns = await historyOf(part, []);
  const fired = (effect: string, due: number): HistoryFact => ({ type: "TimerFired", effect, due });
  const run = new ModelledRun("run", "root");
  const at = Date.parse("2026-01-01T00:00:00Z");
  run.take({ seq: 1, at, node: "node", events: turns[0] as Events });
  run.settle();
  assert.throws(() => run.take({ seq: run.next, at: at + 9, node: "node", events: [fired("0.0", at + 10)] }), /before its time/);
  const again = new ModelledRun("run", "root");
  again.take({ seq: 1, at, node: "node", events: turns[0] as Events });
  again.settle();
  assert.throws(() => again.take({ seq: again.next, at: at + 30, node: "node", events: [fired("0.1", at + 25)] }), /was due earlier/);
});
