/**
 * The graph of a run, drawn from its history.
 *
 * 1. Every effect that history tells of is one node under its own id; what several branches belong to is a node under its id too, though no fact names it.
 * 2. What began after something had ended follows it. What began while it was open goes on beside it, and what comes later joins them.
 * 3. It is a function of the events. Facts of any version can be in them; a history that is cut off gives the graph up to there.
 */
import type { Status } from "../model/history.ts";
import type { HistoryEvent } from "../protocol/operations.ts";
import { EffectTree } from "./effect-tree.ts";
import { defaultMaxNodes, type EdgeKind, type ExecutionGraph, type GraphEdge, type GraphNode, type NodeState } from "./graph.ts";
import { lengthText } from "./length.ts";
import { boundsCleanup, hasNode, type Place, partsOf, type Told, untilOf } from "./place.ts";

export type GraphOptions = {
  /** Effects beyond it become one node that says how many there are; at least 10, default 5,000. */
  readonly maxNodes?: number | undefined;
};

/** What happened in a run, and what is happening in it. */
export function graphOf(events: Iterable<HistoryEvent>, { maxNodes = defaultMaxNodes }: GraphOptions = {}): ExecutionGraph {
  const tree = new EffectTree(Math.max(10, maxNodes));
  for (const event of events) tree.apply(event);
  return new Drawing(tree).graph();
}

/** Where an edge to what comes next begins. */
type Exit = { readonly from: string; readonly kind: EdgeKind };

class Drawing {
  readonly #tree: EffectTree;
  readonly #nodes: GraphNode[] = [];
  readonly #edges: GraphEdge[] = [];

  constructor(tree: EffectTree) {
    this.#tree = tree;
  }

  graph(): ExecutionGraph {
    const { root, outside, start, end, leftOut, workflow, version } = this.#tree;
    const begun = root.undoing[0]?.since ?? Number.POSITIVE_INFINITY;
    const told = (places: readonly Place[]) => places.flatMap((place) => joined(this.#place(place, [{ from: "start", kind: "event" }])));
    this.#nodes.push(nodeOf("start", start));
    let exits = this.#generator(root, [{ from: "start", kind: "sequence" }]);
    exits.push(...told(outside.filter(({ since }) => since <= begun)));
    exits = this.#undone(root, exits);
    exits.push(...told(outside.filter(({ since }) => since > begun)));
    this.#addCompensated();
    if (leftOut > 0) {
      this.#add({ id: "more", kind: "more", name: `${leftOut} more` }, exits);
      exits = [{ from: "more", kind: "sequence" }];
    }
    if (end !== undefined) this.#add(nodeOf("end", end), exits);
    return { workflow, version, status: this.#status(), nodes: this.#nodes, edges: this.#edges };
  }

  #status(): Status {
    const { start, end, root, outside } = this.#tree;
    if (end !== undefined) return end.state as Status;
    if (root.undoing.length > 0) return "Compensating";
    if (start.state === undefined) return "Created";
    if (start.state === "Scheduled") return "Scheduled";
    return [root, ...outside].some((place) => summaryOf(place).openActivity) ? "Running" : "Waiting";
  }

  #add(node: GraphNode, exits: readonly Exit[]): void {
    this.#nodes.push(node);
    for (const { from, kind } of exits) this.#edges.push({ from, to: node.id, kind });
  }

  /** Draws the steps of a generator; returns where it goes on from. */
  #generator({ steps, beside }: Place, entry: readonly Exit[]): Exit[] {
    let next: Exit[] = [...entry];
    let goingOn: { readonly until: number; readonly exits: readonly Exit[] }[] = [];
    steps.forEach((step, index) => {
      const ended = goingOn.filter(({ until }) => until < step.since);
      goingOn = goingOn.filter(({ until }) => until >= step.since);
      const entered = [...next, ...ended.flatMap(({ exits }) => exits)];
      const exits = this.#place(step, entered);
      const following = steps[index + 1];
      const until = untilOf(step);
      if (following === undefined || until < following.since) next = exits;
      else {
        goingOn.push({ until, exits: joined(exits) });
        next = step.told === undefined && hasNode(step) ? [{ from: step.id, kind: "sequence" }] : entered;
      }
    });
    const exits = [...next, ...goingOn.flatMap(({ exits }) => exits)];
    for (const cleanup of beside.filter(boundsCleanup)) {
      const after = steps.findLast((step) => step.since < cleanup.since && hasNode(step));
      exits.push(...this.#timer(cleanup, after === undefined ? entry : [{ from: after.id, kind: "branch" }]));
    }
    return exits;
  }

  #place(place: Place, entry: readonly Exit[]): Exit[] {
    return this.#undone(place, this.#done(place, entry));
  }

  /** What undoes what was done in a place comes after it. */
  #undone({ undoing }: Place, entry: readonly Exit[]): Exit[] {
    let next = [...entry];
    for (const { order, places } of undoing)
      if (order === "reverse") for (const place of places) next = this.#place(place, next);
      else next = places.flatMap((place) => joined(this.#place(place, next)));
    return next;
  }

  /** From what was done to what undoes it. */
  #addCompensated(): void {
    const known = new Set(this.#nodes.map(({ id }) => id));
    for (const [undo, undone] of this.#tree.undone)
      if (known.has(undo) && known.has(undone)) this.#edges.push({ from: undone, to: undo, kind: "compensation" });
  }

  #done(place: Place, entry: readonly Exit[]): Exit[] {
    if (!hasNode(place)) return this.#generator(place, entry);
    const { id, told } = place;
    this.#add(told === undefined ? groupOf(place) : nodeOf(id, told), entry);
    if (told?.attempts !== undefined && told.attempts.length > 1) this.#edges.push({ from: id, to: id, kind: "retry" });
    const begun: Exit[] = [{ from: id, kind: "branch" }];
    const exits = place.branches.flatMap((branch) => joined(this.#place(branch, begun)));
    if (place.steps.length > 0) exits.push(...joined(this.#generator(place, begun)));
    for (const timer of place.beside.filter((timer) => !boundsCleanup(timer))) exits.push(...this.#timer(timer, begun));
    return told === undefined && exits.length > 0 ? exits : [{ from: id, kind: "sequence" }, ...exits];
  }

  /** A timer of the runtime's own leads on only where it fired. */
  #timer(timer: Place, entry: readonly Exit[]): Exit[] {
    const exits = joined(this.#place(timer, entry));
    return timer.told?.state === "Completed" ? exits : [];
  }
}

const joined = (exits: readonly Exit[]): Exit[] => exits.map(({ from }) => ({ from, kind: "join" }));

function nodeOf(id: string, told: Told): GraphNode {
  const { kind, name, state, startedAt, endedAt, dueAt, attempts, failure, childRun } = told;
  return {
    id,
    kind,
    name: kind === "timer" && dueAt !== undefined ? `${name} ${lengthText(dueAt.getTime() - startedAt.getTime())}` : name,
    ...(state !== undefined && { state }),
    startedAt,
    ...(endedAt !== undefined && { endedAt }),
    ...(dueAt !== undefined && { dueAt }),
    ...(attempts !== undefined && { attempts }),
    ...(failure !== undefined && { failure }),
    ...(childRun !== undefined && { childRun }),
  };
}

/** The node of what has branches: history knows it by its branches alone. */
function groupOf(place: Place): GraphNode {
  const { id, branches, beside } = place;
  const timer = beside.find((timer) => !boundsCleanup(timer))?.told;
  const alone = branches.length <= 1 && (branches[0] === undefined || indexIn(branches[0]) === 0);
  const { open, openActivity, lastState, startedAt, endedAt } = summaryOf(place);
  const ended: NodeState = undoneState(place) ?? (timer?.state === "Completed" ? "TimedOut" : (lastState ?? "Cancelled"));
  return {
    id,
    kind: alone ? "scope" : "branches",
    name: timer !== undefined ? "timeout" : alone ? "1 branch" : `${branches.length} branches`,
    state: open ? (place.undoing.length > 0 ? "Compensating" : openActivity ? "Running" : "Waiting") : ended,
    ...(startedAt !== undefined && { startedAt }),
    ...(!open && endedAt !== undefined && { endedAt }),
  };
}

/** What a saga came to that was undone. */
function undoneState({ undoing }: Place): NodeState | undefined {
  const undone = undoing.flatMap(({ places }) => places);
  if (undone.length === 0) return undefined;
  return undone.some(({ told }) => told?.state === "Failed") ? "CompensationFailed" : "Compensated";
}

const indexIn = ({ stands }: Place): number => (stands.kind === "branch" ? stands.index : 0);

type Summary = {
  open: boolean;
  openActivity: boolean;
  /** The state of what ended last, cancellations aside: as a rule it decided. */
  lastState: NodeState | undefined;
  last: number;
  startedAt: Date | undefined;
  endedAt: Date | undefined;
};

/** What the effects in a place come to together. */
function summaryOf(place: Place): Summary {
  const sum: Summary = { open: false, openActivity: false, lastState: undefined, last: 0, startedAt: undefined, endedAt: undefined };
  addTo(sum, place);
  return sum;
}

function addTo(sum: Summary, place: Place): void {
  const { told, until, stands } = place;
  if (told !== undefined) {
    if (until === Number.POSITIVE_INFINITY) {
      sum.open = true;
      if (told.kind === "activity" && told.state !== "Paused") sum.openActivity = true;
    } else if (told.state !== "Cancelled" && stands.kind !== "beside" && until > sum.last) {
      sum.last = until;
      sum.lastState = told.state;
    }
    if (sum.startedAt === undefined || told.startedAt < sum.startedAt) sum.startedAt = told.startedAt;
    if (told.endedAt !== undefined && (sum.endedAt === undefined || told.endedAt > sum.endedAt)) sum.endedAt = told.endedAt;
  }
  for (const part of partsOf(place)) addTo(sum, part);
}
