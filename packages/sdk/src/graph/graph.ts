/**
 * What a graph is made of: that of a run (graph-of.ts) and that of a definition's source (`staticGraph` of the server) alike.
 *
 * 1. Ids of nodes are unique in their graph; every edge joins nodes that are there.
 * 2. Every node is reached from the node `start`. Without edges of the kinds `retry` and `loop` there is no cycle.
 * 3. A graph holds no inputs, outputs or payloads: it may be shown to those who may not see them.
 */
import type { ActivityState } from "../model/activity-state.ts";
import type { Status } from "../model/history.ts";

export const nodeKinds = [
  "start",
  "end",
  "activity",
  "timer",
  "event",
  "child",
  "sideEffect",
  // undoes what an effect did
  "compensation",
  // several branches at once: `all`, `race`, `map` …
  "branches",
  // one branch under a rule: `timeout`, `spawn` …
  "scope",
  // of source only
  "choice",
  "loop",
  "try",
  "call",
  // what cannot be known, or what this version does not know
  "unknown",
  // what was left out because the graph would be too large
  "more",
] as const;

export type NodeKind = (typeof nodeKinds)[number];

export const edgeKinds = [
  "sequence",
  // begins a branch, or one way of a choice
  "branch",
  // from the end of a branch to what follows when all have ended
  "join",
  // an activity's next attempt; leads to itself
  "retry",
  // back to the head of a loop; of source only
  "loop",
  // to a run that a child node started, where graphs of runs are put together
  "child",
  // to what a message from outside began
  "event",
  // from what was done to what undoes it
  "compensation",
] as const;

export type EdgeKind = (typeof edgeKinds)[number];

/** States of activities, and for all else those of instances: a timer or a wait is `Waiting`, a child `Running`, until it is `Completed`, `Cancelled` … */
export type NodeState = ActivityState | Status;

export type GraphFailure = { readonly name: string; readonly message: string; readonly code?: string };

export type GraphAttempt = {
  /** From 1. */
  readonly number: number;
  readonly startedAt: Date;
  /** Absent while it runs. */
  readonly endedAt?: Date;
  readonly failure?: GraphFailure;
  /** Its process ended before it did. */
  readonly lost?: "crash" | "shutdown";
  /** When the next attempt is due; absent on the last one. */
  readonly nextAt?: Date;
};

export type GraphNode = {
  /** In a run the id of the effect, of the effect that the branches belong to, or `start`, `end`, `more`. */
  readonly id: string;
  readonly kind: NodeKind;
  readonly name: string;
  /** Absent in the graph of a definition, and where history does not say. */
  readonly state?: NodeState;
  readonly startedAt?: Date;
  readonly endedAt?: Date;
  /** When a timer fires. */
  readonly dueAt?: Date;
  /** Of an activity, in order. */
  readonly attempts?: readonly GraphAttempt[];
  readonly failure?: GraphFailure;
  readonly childRun?: { readonly workflow: string; readonly id: string; readonly runId: string };
};

export type GraphEdge = {
  readonly from: string;
  readonly to: string;
  readonly kind: EdgeKind;
  /** A key of branches, a way of a choice: `true`, `catch`, `received` … */
  readonly label?: string;
};

export type ExecutionGraph = {
  readonly workflow: string;
  readonly version: string;
  /** Of a run. */
  readonly status?: Status;
  readonly nodes: readonly GraphNode[];
  readonly edges: readonly GraphEdge[];
};

/** A graph of a run that says which. */
export type RunGraph = ExecutionGraph & { readonly id: string; readonly runId: string };

/** How many nodes a graph has at most, unless told otherwise. */
export const defaultMaxNodes = 5_000;
