/**
 * A history as somebody hands it over: checked, so that replaying it can go wrong only where the code does.
 *
 * 1. What is no history is refused with its place and reason, as a `ValidationError` or a `WovyrError`; nothing else is thrown.
 * 2. Every event is of a known kind and has the fields that the runtime reads; the whole folds into a state.
 * 3. What follows on a request to terminate or to reset is left out: no code made it.
 */
import { WovyrError } from "@wovyr/sdk";
import { foldHistory, type HistoryEvent, type Incoming, misshapenFact, shownForm, type Turn, turnsOf } from "@wovyr/sdk/internal";

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

/** The turns up to a request to terminate or to reset. */
function withoutTermination(turns: readonly Turn[]): Turn[] {
  const kept: Turn[] = [];
  for (const turn of turns) {
    const end = turn.events.findIndex((fact) => fact.type === "TerminateRequested" || fact.type === "ResetRequested");
    if (end < 0) kept.push(turn);
    else if (end > 0) kept.push({ ...turn, events: turn.events.slice(0, end) });
    if (end >= 0) break;
  }
  return kept;
}

/** What an event lacks, or undefined when it has all that is read of it. What is no event at all is left to `turnsOf`. */
function lackingField(event: HistoryEvent): string | undefined {
  if (typeof event !== "object" || event === null || typeof event.type !== "string") return undefined;
  const { type, data } = event;
  return typeof data === "object" && data !== null ? misshapenFact(type, data, shownForm) : undefined;
}
