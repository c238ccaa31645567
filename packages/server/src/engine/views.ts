/** What the API shows of rows and histories: payloads decoded, times as dates. */
import {
  type Admission,
  type AttemptWait,
  decodePayload,
  graphOf,
  type HistoryEvent,
  type InstanceDescription,
  InstanceState,
  type InstanceSummary,
  type OpenActivity,
  type RunGraph,
  type Status,
  type Turn,
  viewOfFailure,
} from "@wovyr/sdk/internal";
import { awaitsCopy } from "./copied-run.ts";
import { deadLetterId } from "./dead-letter-id.ts";
import { type InstanceRow, isOpenStatus } from "./ports/store.ts";
import type { KnownTask } from "./ports/tasks.ts";

const shownAs = { queued: "Scheduled", parked: "Parked", paused: "Paused", compensating: "Compensating" } as const;

/** The state of a row that is not closed, as far as the row itself tells it. */
export function statusOf(row: InstanceRow): Status {
  if (!isOpenStatus(row.status)) return row.status;
  if (row.status !== "open") return shownAs[row.status];
  if (row.tail === 0) return "Created";
  return row.busy ? "Running" : "Waiting";
}

export function summaryOf(row: InstanceRow): InstanceSummary {
  return {
    id: row.id,
    runId: row.run,
    workflow: row.workflow,
    version: row.version,
    status: statusOf(row),
    startedAt: new Date(row.createdAt),
    ...(row.closedAt !== undefined && { closedAt: new Date(row.closedAt) }),
    ...(row.correlationId !== undefined && {
      correlationId: row.correlationId,
    }),
    ...(row.parent !== undefined && {
      parent: { id: row.parent.id, runId: row.parent.run },
    }),
    ...originOf(row),
    attributes: row.attributes,
  };
}

function originOf({ origin }: InstanceRow): Pick<InstanceSummary, "forkedFrom" | "resetFrom"> {
  if (origin?.from === undefined) return {};
  const { id, run, at, reset } = origin.from;
  const from = { id, runId: run, at };
  return reset === true ? { resetFrom: from } : { forkedFrom: from };
}

type Activity = InstanceDescription["activities"][number];
type Circuit = NonNullable<Activity["circuit"]>;

/** What only this process knows of a run. */
export type LiveView = {
  /** Undefined when its code is not registered here. */
  readonly waitingAt: readonly string[] | undefined;
  /** How the circuit of an activity stands, when it is not closed. */
  readonly circuitOf: (activity: string) => Circuit | undefined;
  /** What the attempt of an effect waits for. */
  readonly waitOf: (effect: string) => AttemptWait | undefined;
  /** Its tasks on queues, by effect. */
  readonly tasks: ReadonlyMap<string, KnownTask>;
};

export function descriptionOf(
  row: InstanceRow,
  turns: readonly Turn[],
  { waitingAt, circuitOf, waitOf, tasks }: LiveView,
): InstanceDescription {
  const state = new InstanceState();
  for (const turn of turns) state.apply(turn);
  const record = (payload: string | undefined) => (payload === undefined ? {} : (decodePayload(payload) as Record<string, unknown>));
  const { outcome } = state;
  const resumed = state.paused !== undefined && isReleased(row, turns);
  return {
    ...summaryOf(row),
    status: state.tail === 0 ? statusOf(row) : resumed ? (state.parked === undefined ? statusOf(row) : "Parked") : state.status,
    memo: record(state.start?.memo),
    variables: record(state.variables),
    historyLength: state.tail,
    activities: [...state.activities].map(([effect, activity]) =>
      activityView(row.run, effect, activity, circuitOf(activity.name), waitOf(effect), tasks.get(effect)),
    ),
    timers: [...state.timers].map(([effect, timer]) => ({
      effect,
      purpose: timer.purpose,
      dueAt: new Date(timer.due),
    })),
    awaitedEvents: [...state.waits].map(([effect, wait]) => ({
      effect,
      name: wait.name,
      ...(wait.key !== undefined && { key: wait.key }),
    })),
    children: [...state.children].map(([effect, child]) => ({
      effect,
      workflow: child.workflow,
      id: child.id,
      runId: child.run,
    })),
    conditions: [...state.conditions],
    compensations: [...state.compensations].map(([effect, { failure, ...compensation }]) => ({
      effect,
      ...compensation,
      ...(compensation.state === "stuck" && {
        deadLetter: deadLetterId({ kind: "compensation", run: row.run, effect, attempts: compensation.tries }),
      }),
      ...(failure !== undefined && { failure: viewOfFailure(failure) }),
    })),
    ...(state.compensating !== undefined && { compensating: viewOfFailure(state.compensating) }),
    bufferedEvents: [...state.unread.values()].map((event) => ({
      name: event.name,
      ...(event.key !== undefined && { key: event.key }),
      receivedAt: new Date(event.at),
    })),
    ...(state.awaitsAdmission && admissionWait(state.start?.admission)),
    ...(waitingAt === undefined && !state.closed && { unregistered: true }),
    waitingAt: state.closed ? [] : (waitingAt ?? []),
    ...(outcome?.status === "Completed" && {
      output: decodePayload(outcome.output),
    }),
    ...(outcome !== undefined &&
      "failure" in outcome && {
        failure: viewOfFailure(outcome.failure),
      }),
    ...(outcome !== undefined &&
      "compensation" in outcome &&
      outcome.compensation !== undefined && { compensation: viewOfFailure(outcome.compensation) }),
    attempt: state.start?.retry?.attempt ?? 1,
    ...(outcome?.status === "ContinuedAsNew" && { continuedTo: outcome.run }),
    ...(outcome !== undefined && "retriedAs" in outcome && outcome.retriedAs !== undefined && { retriedAs: outcome.retriedAs }),
    ...(outcome !== undefined && "resetTo" in outcome && outcome.resetTo !== undefined && { resetTo: outcome.resetTo }),
    // What a fork has of its origin's past is not its own.
    ...(state.start?.continuedFrom !== undefined &&
      (state.forked === undefined || state.forked.reset === true) && { continuedFrom: state.start.continuedFrom }),
    ...(state.start?.forkedFrom !== undefined &&
      state.forked === undefined && { forkedFrom: { id: state.start.forkedFrom.id, runId: state.start.forkedFrom.run } }),
    ...(state.start?.retry !== undefined && { retryOf: state.start.retry.of }),
    ...(state.parked !== undefined && { parked: viewOfFailure(state.parked) }),
    ...(state.paused !== undefined && !resumed && { paused: { ...state.paused, at: new Date(state.paused.at) } }),
  };
}

/** What a run waits for that has not been entered. */
function admissionWait(admission: Admission | undefined): Pick<InstanceDescription, "waitingFor"> {
  if (admission === undefined || !("name" in admission)) return {};
  const { of, key } = admission;
  return { waitingFor: { kind: "concurrency", of, ...(key !== undefined && { key }) } };
}

function activityView(
  run: string,
  effect: string,
  { name, state, attempt, lastFailure, retryAt, losses, heartbeat, queue, priority, scheduledAt, attemptAt }: Readonly<OpenActivity>,
  circuit: Circuit | undefined,
  waitingFor: AttemptWait | undefined,
  task: KnownTask | undefined,
): InstanceDescription["activities"][number] {
  return {
    effect,
    name,
    state,
    attempt,
    ...(lastFailure !== undefined && { lastFailure: viewOfFailure(lastFailure) }),
    ...(state === "Retrying" && retryAt !== undefined && { nextRetryAt: new Date(retryAt) }),
    ...(state === "Paused" && { deadLetter: deadLetterId({ kind: "activity", run, effect, attempts: attempt }) }),
    ...(queue !== undefined && { queue }),
    ...(losses > 0 && { losses }),
    ...(heartbeat !== undefined && { lastHeartbeat: decodePayload(heartbeat) }),
    ...(circuit !== undefined && { circuit }),
    ...(priority !== undefined && { priority }),
    ...(waitingFor !== undefined && { waitingFor }),
    ...(task !== undefined && { task: taskView(task, attemptAt ?? scheduledAt) }),
  };
}

function taskView({ worker, requires }: KnownTask, since: number): NonNullable<Activity["task"]> {
  return worker === undefined ? { state: "waiting", requires, since: new Date(since) } : { state: "leased", worker };
}

/** A run as nodes and edges. */
export function runGraphOf(row: InstanceRow, turns: readonly Turn[]): RunGraph {
  const graph = graphOf(eventsOf(turns));
  return {
    id: row.id,
    runId: row.run,
    ...graph,
    ...(turns.length === 0
      ? { workflow: row.workflow, version: row.version, status: statusOf(row) }
      : { status: graph.status === undefined || (graph.status === "Paused" && isReleased(row, turns)) ? statusOf(row) : graph.status }),
  };
}

/** Whether a pause that a history shows is that of another run: a fork does not take it over. */
const isReleased = (row: InstanceRow, turns: readonly Turn[]): boolean =>
  row.origin !== undefined && row.origin.importedAt === undefined && awaitsCopy(row, turns);

/** The facts as events, payloads as they are stored: a graph shows none. */
function* eventsOf(turns: readonly Turn[]): Generator<HistoryEvent> {
  for (const { seq, at, events } of turns)
    for (const [index, fact] of events.entries()) yield { seq: seq + index, turn: seq, type: fact.type, at: new Date(at), data: fact };
}
