/**
 * A history as somebody hands it over: checked, so that replaying it can go wrong only where the code does.
 *
 * 1. What is no history is refused with its place and reason, as a `ValidationError` or a `WovyrError`; nothing else is thrown.
 * 2. Every event is of a known kind and has the fields that the runtime reads; the whole folds into a state.
 * 3. What follows on a request to terminate is left out: no code made it.
 */
import { WovyrError } from "@wovyr/sdk";
import {
  type FailureView,
  foldHistory,
  type HistoryEvent,
  type HistoryFact,
  type Incoming,
  type PlannedCompensation,
  type Turn,
  turnsOf,
} from "@wovyr/sdk/internal";

export type RecordedHistory = {
  readonly start: Extract<Incoming, { type: "InstanceStarted" }>;
  readonly turns: readonly Turn[];
  /** Number of events, those that are left out included. */
  readonly events: number;
  readonly closed: boolean;
};

/** What was read: events, and the run that they belong to where it is told. */
export type HistoryInFile = { readonly runId: string | undefined; readonly events: readonly HistoryEvent[] };

/** The history that these events are. */
export function recordedHistory(events: readonly HistoryEvent[]): RecordedHistory {
  if (events.length === 0) throw noHistory("it holds no event");
  for (const event of events) {
    const lacking = lackingField(event);
    if (lacking !== undefined) throw noHistory(`event ${event.seq} ${lacking}`);
  }
  const whole = turnsOf(events);
  const start = whole.flatMap((turn) => turn.events).find((fact) => fact.type === "InstanceStarted");
  if (start === undefined) throw noHistory("it holds no InstanceStarted");
  const turns = withoutTermination(whole);
  try {
    const { closed } = foldHistory(whole);
    return { start, turns, events: events.length, closed };
  } catch (cause) {
    throw noHistory(`its events contradict each other: ${cause instanceof Error ? cause.message : String(cause)}`, cause);
  }
}

/** What a value says that was read from a file: an array of events, or a page of them as the API gives it. */
export function historyIn(value: unknown): HistoryInFile {
  if (Array.isArray(value)) return { runId: undefined, events: value };
  if (typeof value !== "object" || value === null || !("items" in value) || !Array.isArray(value.items))
    throw noHistory("it is neither an array of events nor a page of them, `{ runId, items }`");
  if ("nextSeq" in value && value.nextSeq !== undefined)
    throw noHistory(
      `it is one page of a longer history, which goes on at event ${value.nextSeq}; save it whole, for example with saveHistory()`,
    );
  return { runId: "runId" in value && typeof value.runId === "string" ? value.runId : undefined, events: value.items };
}

function noHistory(reason: string, cause?: unknown): WovyrError {
  return new WovyrError(`This is no history that can be replayed: ${reason}.`, { code: "INVALID_INPUT", cause });
}

/** The turns up to a request to terminate. */
function withoutTermination(turns: readonly Turn[]): Turn[] {
  const kept: Turn[] = [];
  for (const turn of turns) {
    const end = turn.events.findIndex((fact) => fact.type === "TerminateRequested");
    if (end < 0) kept.push(turn);
    else if (end > 0) kept.push({ ...turn, events: turn.events.slice(0, end) });
    if (end >= 0) break;
  }
  return kept;
}

// ── the shape of events ──────────────────────────────────────────────────────────────────────────────────

const isText = (value: unknown) => typeof value === "string";
const isNumber = (value: unknown) => typeof value === "number";
const isTime = (value: unknown) => !Number.isNaN(new Date(value as string | Date).getTime());
const isObject = (value: unknown) => typeof value === "object" && value !== null;
const isFailure = (value: unknown): boolean => {
  if (!isObject(value)) return false;
  const { name, message, cause } = value as Partial<FailureView>;
  return isText(name) && isText(message) && (cause === undefined || isFailure(cause));
};

const isPlanned = (value: unknown): boolean => {
  if (!isObject(value)) return false;
  const { effect, undoes, name } = value as Partial<PlannedCompensation>;
  return isText(effect) && isText(undoes) && isText(name);
};

const checks = {
  effect: isText,
  id: isText,
  workflow: isText,
  version: isText,
  name: isText,
  message: isText,
  seed: (value: unknown) => typeof value === "string" && /^[0-9a-f]{32}$/.test(value),
  digest: isText,
  run: isText,
  patch: isText,
  purpose: isText,
  attempt: isNumber,
  due: isTime,
  failure: isFailure,
  compensation: isFailure,
  compensations: (value: unknown) => Array.isArray(value) && value.every(isPlanned),
  decision: (value: unknown) => value === "retry" || value === "skip" || value === "resolve",
};
type Field = keyof typeof checks;

const fieldsOf: Record<HistoryFact["type"], readonly Field[]> = {
  InstanceStarted: ["id", "workflow", "version", "seed"],
  ActivityScheduled: ["effect", "name", "digest"],
  ActivityCompleted: ["effect", "attempt"],
  ActivityFailed: ["effect", "attempt", "failure"],
  AttemptStarted: ["effect", "attempt"],
  AttemptLost: ["effect", "attempt"],
  TimerStarted: ["effect", "purpose", "due"],
  TimerFired: ["effect"],
  EventAwaited: ["effect", "name"],
  EventReceived: ["message", "name"],
  EventConsumed: ["effect", "message"],
  ChildStarted: ["effect", "workflow", "version", "id", "run", "digest"],
  ChildCompleted: ["effect"],
  ChildFailed: ["effect", "failure"],
  ChildRejected: ["effect", "failure"],
  SideEffectRecorded: ["effect"],
  EffectCancelled: ["effect"],
  ChildCancelRequested: ["effect"],
  CompensationStarted: ["effect", "compensations"],
  CompensationCompleted: ["effect"],
  CompensationFailed: ["effect", "failure"],
  CompensationStuck: ["effect", "failure"],
  CompensationDecided: ["message", "effect", "decision"],
  UpdateRequested: ["message", "name"],
  WakeRequested: ["message"],
  UpdateCompleted: ["message"],
  UpdateFailed: ["message", "failure"],
  ConditionAwaited: ["effect"],
  ConditionMet: ["effect"],
  Patched: ["patch"],
  CancelRequested: ["message"],
  TerminateRequested: ["message"],
  VariablesChanged: [],
  AttributesChanged: [],
  Parked: ["failure"],
  Resumed: [],
  InstanceCompleted: [],
  InstanceFailed: ["failure"],
  InstanceTimedOut: ["failure"],
  InstanceCancelled: ["failure"],
  InstanceTerminated: ["failure"],
  InstanceCompensated: ["failure"],
  InstanceCompensationFailed: ["failure", "compensation"],
  InstanceContinuedAsNew: ["run", "version", "digest"],
};

/** What an event lacks, or undefined when it has all that is read of it. What is no event at all is left to `turnsOf`. */
function lackingField(event: HistoryEvent): string | undefined {
  if (!isObject(event) || !isText(event.type) || !isObject(event.data)) return undefined;
  const { type, data } = event;
  if (!Object.hasOwn(fieldsOf, type)) return `is of type "${type}", which this version of Wovyr does not know`;
  const field = fieldsOf[type as HistoryFact["type"]].find((name) => !checks[name](data[name]));
  return field === undefined ? undefined : `(${type}) has no proper \`${field}\``;
}
