/** Graphs of histories that are written by hand: bounds, losses, and facts that nobody knows. Those of real runs are in the server's tests. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { type ExecutionGraph, graphOf, type HistoryEvent } from "../../src/client.ts";

type Fact = readonly [type: string, data?: Record<string, unknown>];

/** A history with one event per turn and second. */
function history(...facts: readonly Fact[]): HistoryEvent[] {
  const started: Fact = ["InstanceStarted", { workflow: "w", version: "1", id: "i" }];
  return [started, ...facts].map(([type, data = {}], index) => ({
    seq: index + 1,
    turn: index + 1,
    type,
    at: new Date(index * 1_000),
    data,
  }));
}

const nodesOf = ({ nodes }: ExecutionGraph) => nodes.map(({ id, kind, name }) => `${id} ${kind} ${name}`);
const edgesOf = ({ edges }: ExecutionGraph) => edges.map(({ from, to, kind }) => `${from} ${kind} ${to}`);

test("no history is a run that nobody has started", () => {
  assert.deepEqual(graphOf([]), {
    workflow: "",
    version: "",
    status: "Created",
    nodes: [{ id: "start", kind: "start", name: "start", startedAt: new Date(0) }],
    edges: [],
  });
});

test("an attempt that was lost is shown, and the one after it", () => {
  const scheduled: Fact = ["ActivityScheduled", { effect: "0", name: "a" }];
  const crash: Fact = ["AttemptLost", { effect: "0", attempt: 1, cause: "crash" }];
  const at = (seconds: number) => new Date(seconds * 1_000);
  const activity = (...facts: readonly Fact[]) => graphOf(history(scheduled, ...facts)).nodes[1];

  const once = activity(crash);
  assert.equal(once?.state, "Running");
  assert.deepEqual(once?.attempts, [
    { number: 1, startedAt: at(1), endedAt: at(2), lost: "crash" },
    { number: 1, startedAt: at(2) },
  ]);
  assert.equal(activity(crash, crash)?.state, "Lost", "a suspect waits for its turn");
  assert.equal(activity(crash, crash, ["AttemptStarted", { effect: "0", attempt: 1 }])?.state, "Running");
  assert.equal(activity(["AttemptLost", { effect: "0", attempt: 1, cause: "shutdown" }])?.state, "Scheduled");
});

test("nothing of what a run was given or gave is in its graph", () => {
  const events = history(
    ["ActivityScheduled", { effect: "0", name: "a", input: "secret" }],
    ["ActivityCompleted", { effect: "0", attempt: 1, output: "secret" }],
    ["EventReceived", { message: "m", name: "e", payload: "secret" }],
    ["ActivityScheduled", { effect: "1", name: "b", input: "secret" }],
    ["ActivityFailed", { effect: "1", attempt: 1, failure: { name: "E", message: "m", stack: "secret", fields: "secret" } }],
    ["InstanceCompleted", { output: "secret" }],
  );
  assert.ok(!JSON.stringify(graphOf(events)).includes("secret"));
});

test("beyond the limit effects are counted", () => {
  const facts = Array.from({ length: 100 }, (_, index): Fact => ["TimerStarted", { effect: `0.${index}`, purpose: "sleep", due: 0 }]);
  const graph = graphOf(history(...facts), { maxNodes: 20 });
  assert.equal(graph.nodes.length, 19);
  assert.deepEqual(nodesOf(graph).slice(-2), ["0.15 timer sleep 0s", "more more 84 more"]);
  assert.equal(edgesOf(graph).filter((edge) => edge.endsWith("join more")).length, 16);
  const closed = graphOf(history(...facts, ["InstanceTerminated"]), { maxNodes: 20 });
  assert.equal(closed.nodes.length, 20);
  assert.equal(edgesOf(closed).at(-1), "more sequence end");
});

test("the default limit holds for a long history, in reasonable time", () => {
  const facts = Array.from({ length: 100_000 }, (_, index): Fact => ["SideEffectRecorded", { effect: `${index}` }]);
  const graph = graphOf(history(...facts));
  assert.equal(graph.nodes.length, 4_999);
  assert.equal(graph.nodes.at(-1)?.name, "95003 more");
});

test("facts and ids of later versions are plain nodes", () => {
  const graph = graphOf(
    history(
      ["SagaBegun", { effect: "0" }],
      ["ActivityScheduled", { effect: "comp:0/0", name: "undo" }],
      ["SomethingHappened", { what: 1 }],
      ["TimerStarted", { effect: "1", purpose: "sleep", due: 60_000 }],
    ),
  );
  assert.deepEqual(nodesOf(graph), [
    "start start w",
    "0 unknown SagaBegun",
    "1 timer sleep 56s",
    "comp:0/0 activity undo",
    "#4 unknown SomethingHappened",
  ]);
  assert.deepEqual(edgesOf(graph), ["start sequence 0", "0 sequence 1", "start event comp:0/0", "start event #4"]);
});

test("a deep nest of branches is drawn without running out of stack", () => {
  const effect = `0${".0/0".repeat(240)}`;
  const graph = graphOf(history(["TimerStarted", { effect, purpose: "sleep", due: 0 }]));
  assert.equal(graph.nodes.at(-1)?.id, effect);
  assert.equal(graph.nodes.length, 242);
});

test("a run that continued as new ends there", () => {
  const graph = graphOf(history(["SideEffectRecorded", { effect: "0" }], ["InstanceContinuedAsNew", { run: "r2", version: "1" }]));
  assert.equal(graph.status, "ContinuedAsNew");
  assert.equal(graph.nodes.at(-1)?.state, "ContinuedAsNew");
  assert.deepEqual(edgesOf(graph), ["start sequence 0", "0 sequence end"]);
});
