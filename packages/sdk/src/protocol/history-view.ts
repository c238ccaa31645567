/**
 * History as the API shows it, and the way back.
 *
 * 1. A view holds every field of its fact, payloads decoded: what it is made of can be made of it again, and replays.
 * 2. Plain JSON keeps no types: a date in a payload comes back as text. The typed media type, and values in process, keep them.
 */
import { ValidationError } from "../model/errors.ts";
import type { CarriedEvent, HistoryFact, Turn } from "../model/history.ts";
import { decodePayload, encodePayload } from "../model/payload.ts";
import { failureOfView, viewOfFailure } from "./failure-view.ts";
import type { FailureView, HistoryEvent } from "./operations.ts";

const payloadFields = new Set(["input", "output", "payload", "value", "variables", "attributes", "memo", "heartbeat"]);
const timeFields = new Set(["due", "retryAt", "pausedUntil", "startAt", "debounceUntil", "executionStartedAt"]);
const failureFields = new Set(["failure", "compensation"]);
/** Payloads that their facts always have: plain JSON leaves them out where they are undefined. */
const payloadOf: Readonly<Partial<Record<HistoryFact["type"], string>>> = {
  InstanceStarted: "input",
  ActivityScheduled: "input",
  ActivityCompleted: "output",
  EventReceived: "payload",
  ChildStarted: "input",
  ChildCompleted: "output",
  UpdateRequested: "input",
  UpdateCompleted: "output",
  InstanceCompleted: "output",
  InstanceContinuedAsNew: "input",
};

export function eventView(fact: HistoryFact, seq: number, turn: number, at: number): HistoryEvent {
  const data: Record<string, unknown> = {};
  for (const [field, value] of Object.entries(fact)) {
    if (field === "type") continue;
    if (payloadFields.has(field)) data[field] = decodePayload(value);
    else if (timeFields.has(field)) data[field] = new Date(value);
    else if (failureFields.has(field)) data[field] = viewOfFailure(value);
    else if (field === "carried")
      data[field] = (value as CarriedEvent[]).map((event) => ({ ...event, payload: decodePayload(event.payload) }));
    else data[field] = value;
  }
  return { seq, turn, type: fact.type, at: new Date(at), data };
}

/** The events of a turn from number `fromSeq` on. */
export function turnView(turn: Pick<Turn, "seq" | "at" | "events">, fromSeq: number): HistoryEvent[] {
  const views: HistoryEvent[] = [];
  turn.events.forEach((fact, index) => {
    const seq = turn.seq + index;
    if (seq >= fromSeq) views.push(eventView(fact, seq, turn.seq, turn.at));
  });
  return views;
}

/** The turns that whole histories show; times may be dates or their text. Throws a `ValidationError` that names the first event that is none. */
export function turnsOf(events: readonly HistoryEvent[]): Turn[] {
  const turns: (Turn & { readonly events: HistoryFact[] })[] = [];
  events.forEach((event, index) => {
    const problem = misshapen(event, index);
    if (problem !== undefined)
      throw new ValidationError(`This is no history: ${problem}.`, { violations: [{ pointer: `/${index}`, message: problem }] });
    if (event.seq === event.turn) turns.push({ seq: event.turn, at: new Date(event.at).getTime(), node: "", events: [] });
    turns[turns.length - 1]?.events.push(factOf(event));
  });
  return turns;
}

function misshapen(event: Partial<HistoryEvent> | undefined, index: number): string | undefined {
  if (typeof event !== "object" || event === null) return `item ${index} is no event`;
  if (typeof event.type !== "string" || typeof event.data !== "object" || event.data === null)
    return `item ${index} lacks the type or the data of an event`;
  if (event.seq !== index + 1)
    return `item ${index} has number ${event.seq} where ${index + 1} belongs; a history begins at 1 and leaves nothing out`;
  if (typeof event.turn !== "number" || event.turn > event.seq || (index === 0 && event.turn !== 1))
    return `item ${index} names no turn of this history`;
  if (event.at === undefined || Number.isNaN(new Date(event.at).getTime())) return `item ${index} has no time`;
  return undefined;
}

function factOf({ type, data }: HistoryEvent): HistoryFact {
  const fact: Record<string, unknown> = { type };
  const required = payloadOf[type as HistoryFact["type"]];
  const fields = required === undefined ? data : { [required]: undefined, ...data };
  for (const [field, value] of Object.entries(fields)) {
    if (payloadFields.has(field)) fact[field] = encodePayload(value, { limit: Number.POSITIVE_INFINITY, what: `${field} of ${type}` });
    else if (timeFields.has(field)) fact[field] = new Date(value as string | Date).getTime();
    else if (failureFields.has(field)) fact[field] = failureOfView(value as FailureView);
    else if (field === "carried")
      fact[field] = (value as CarriedEvent[]).map((event) => ({
        ...event,
        payload: encodePayload(event.payload, { limit: Number.POSITIVE_INFINITY, what: "a carried event" }),
      }));
    else fact[field] = value;
  }
  return fact as HistoryFact;
}
