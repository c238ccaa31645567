/**
 * What a test says of a history.
 *
 * 1. What is thrown is an `AssertionError` whose `actual` and `expected` are lines: their difference is what is wrong.
 */
import assert, { AssertionError } from "node:assert";
import { checkOptions, foldHistory, type HistoryEvent, type InstanceState, turnsOf } from "@wovyr/sdk/internal";
import { checkEvents, refuse, shown } from "../checks.ts";
import { askedEffects } from "../history/effect-line.ts";
import { eventLines } from "../history/history-text.ts";
import { valueText } from "../history/history-text-value.ts";
import { matches } from "./match.ts";

/**
 * What an event is to look like, in part: `{ type: "ActivityScheduled", name: "reserve", input: { id: "1" } }`. Fields are those of the event or of its
 * data, and match as `matches` says. Or a question.
 */
export type EventShape = { readonly type?: string | RegExp; readonly [field: string]: unknown } | ((event: HistoryEvent) => boolean);

/** The events have these shapes in this order; others may lie between them, unless `exact`: then these follow one another. */
export function assertHistory(
  events: readonly HistoryEvent[],
  shapes: readonly EventShape[],
  options: { readonly exact?: boolean } = {},
): void {
  checkEvents(events, "assertHistory()");
  checkOptions(options, ["exact"], "assertHistory()");
  if (!Array.isArray(shapes) || shapes.length === 0) refuse("assertHistory() needs a list of at least one shape of an event");
  if (options.exact === true) assertTogether(events, shapes);
  else assertInOrder(events, shapes);
}

/** The effects that a run asked for, in this order: `activity reserve`, `sleep 3d`, `event paid (timeout 2d)`, `child ship`, `side effect`, `timeout 5m`. */
export function effectsOf(events: readonly HistoryEvent[]): string[] {
  checkEvents(events, "effectsOf()");
  return askedEffects(events).map(({ line }) => line);
}

/** The run asked for these effects (the lines of `effectsOf`), and for no others. */
export function assertEffects(events: readonly HistoryEvent[], lines: readonly string[]): void {
  checkEvents(events, "assertEffects()");
  if (!Array.isArray(lines)) refuse(`assertEffects() takes a list of lines (["activity charge", "sleep 3d"]), not ${shown(lines)}`);
  fail("the run did not ask for these effects in this order", effectsOf(events), lines, assertEffects);
}

/** The run is closed, and left no activity, timer, wait or child open. */
export function assertNothingOpen(events: readonly HistoryEvent[]): void {
  checkEvents(events, "assertNothingOpen()");
  const state = foldHistory(turnsOf(events));
  const open = openEffects(state);
  if (state.closed && open.length === 0) return;
  const waiting = open.length === 0 ? "" : `, with ${open.join(", ")}`;
  const parked = state.parked === undefined ? "" : `: ${state.parked.message}`;
  throw new AssertionError({
    message: state.closed
      ? `the run is closed (${state.status})${waiting} left open`
      : `the run is not closed: it is ${state.status}${waiting} open${parked}`,
    actual: { closed: state.closed, open },
    expected: { closed: true, open: [] },
    operator: "assertNothingOpen",
    stackStartFn: assertNothingOpen,
  });
}

function openEffects(state: InstanceState): string[] {
  const named = (what: string, items: ReadonlyMap<string, object>, name: (item: never) => string) =>
    [...items].map(([effect, item]) => `${what} ${name(item as never)} [${effect}]`);
  return [
    ...named("activity", state.activities, ({ name }: { name: string }) => name),
    ...named("timer", state.timers, ({ purpose }: { purpose: string }) => purpose),
    ...named("event", state.waits, ({ name }: { name: string }) => name),
    ...named("child", state.children, ({ workflow }: { workflow: string }) => workflow),
  ];
}

function assertInOrder(events: readonly HistoryEvent[], shapes: readonly EventShape[]): void {
  let at = 0;
  for (const [index, shape] of shapes.entries()) {
    const found = events.findIndex((event, place) => place >= at && eventMatches(event, shape));
    if (found >= 0) {
      at = found + 1;
      continue;
    }
    const lines = eventLines(events);
    const expected = [...lines.slice(0, at), `${shapeText(shape)}, which is missing from here on`, ...lines.slice(at)];
    const after = at === 0 ? "in the history" : `after event ${at} (${lines[at - 1]})`;
    fail(`event ${index + 1} of ${shapes.length}, ${shapeText(shape)}, is not ${after}`, lines, expected, assertHistory);
  }
}

function assertTogether(events: readonly HistoryEvent[], shapes: readonly EventShape[]): void {
  let best = { at: 0, length: -1 };
  for (let at = 0; at < Math.max(events.length, 1); at++) {
    let length = 0;
    while (length < shapes.length && at + length < events.length && eventMatches(events[at + length], shapes[length])) length += 1;
    if (length === shapes.length) return;
    if (length > best.length) best = { at, length };
  }
  const lines = eventLines(events);
  const expected = [
    ...lines.slice(0, best.at + best.length),
    ...shapes.slice(best.length).map(shapeText),
    ...lines.slice(best.at + shapes.length),
  ];
  const shape = shapes[best.length] as EventShape;
  const there = lines[best.at + best.length] ?? "the end of the history";
  fail(`event ${best.length + 1} of ${shapes.length} was to be ${shapeText(shape)}, and there is ${there}`, lines, expected, assertHistory);
}

function eventMatches(event: HistoryEvent | undefined, shape: EventShape | undefined): boolean {
  if (event === undefined) return false;
  if (typeof shape === "function") return matches(event, shape);
  return Object.entries(shape ?? {}).every(([field, wanted]) =>
    matches(field in event ? Reflect.get(event, field) : event.data[field], wanted),
  );
}

function shapeText(shape: EventShape): string {
  return typeof shape === "function" ? `what ${shape.name === "" ? "the function" : shape.name} asks for` : valueText(shape);
}

/** Throws with the difference of two lists of lines, if there is one. */
function fail(message: string, actual: readonly string[], expected: readonly string[], stackStartFn: (...args: never[]) => void): void {
  try {
    assert.deepStrictEqual(actual, expected);
  } catch (error) {
    if (!(error instanceof AssertionError)) throw error;
    throw new AssertionError({ message: `${message}\n\n${error.message}`, actual, expected, operator: stackStartFn.name, stackStartFn });
  }
}
