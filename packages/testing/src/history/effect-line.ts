/**
 * An effect as a short line: `activity reserve`, `sleep 3d`, `event paid (timeout 2d)`, `child ship`, `side effect`, `timeout 2d`.
 *
 * 1. A line says what the code asks for, and never when or as which effect: it stays the same over runs.
 * 2. The timers of the engine's own (a delayed start, retries, clean-up) are no effects.
 */
import type { HistoryEvent } from "@wovyr/sdk/internal";
import { lengthText, timeOf } from "./history-text-time.ts";

/** What a line needs of a fact; those of a history as it is stored have it, and `{ type, ...data }` of an event as it is shown. */
export type EffectFact = {
  readonly type: string;
  readonly effect?: unknown;
  readonly name?: unknown;
  readonly workflow?: unknown;
  readonly purpose?: unknown;
  /** Milliseconds since the epoch, or a date. */
  readonly due?: unknown;
};

/** An effect that a run asked for. */
export type AskedEffect = { readonly effect: string; readonly line: string };

/** The line of a fact that was recorded at a time (milliseconds since the epoch); undefined when it asks for no effect. */
export function effectLine(fact: EffectFact, at: number): string | undefined {
  switch (fact.type) {
    case "ActivityScheduled":
      return `activity ${String(fact.name)}`;
    case "EventAwaited":
      return `event ${String(fact.name)}`;
    case "ChildStarted":
      return `child ${String(fact.workflow)}`;
    case "SideEffectRecorded":
      return "side effect";
    case "TimerStarted":
      if (fact.purpose !== "sleep" && fact.purpose !== "timeout") return undefined;
      return `${fact.purpose} ${lengthText(Math.max(0, timeOf(fact.due) - at))}`;
    default:
      return undefined;
  }
}

/** The effects of a history in the order in which they were asked for. The time limit of an event is part of its line; one that found its event waiting has none. */
export function askedEffects(events: readonly HistoryEvent[]): AskedEffect[] {
  const asked: AskedEffect[] = [];
  const waits = new Map<string, number>();
  for (const { type, at, data } of events) {
    const line = effectLine({ type, ...data }, timeOf(at));
    if (line === undefined) continue;
    const effect = String(data.effect);
    const wait = type === "TimerStarted" ? waits.get(effect.replace(/!timeout$/, "")) : undefined;
    const waiting = wait === undefined ? undefined : asked[wait];
    if (wait !== undefined && waiting !== undefined) {
      asked[wait] = { effect: waiting.effect, line: `${waiting.line} (${line})` };
      continue;
    }
    if (type === "EventAwaited") waits.set(effect, asked.length);
    asked.push({ effect, line });
  }
  return asked;
}
