/** What became of a dead letter that a run waited for, as the run's history tells it. */
import { closedStatus, type DeadLetterDecision, type HistoryFact, InstanceState, type Turn } from "@wovyr/sdk/internal";
import type { DeadLetterPlace } from "./dead-letter-id.ts";

export type Ending = {
  /** Absent where nobody decided: its time was over, or what waited for it was given up. */
  readonly decision?: DeadLetterDecision;
  readonly note?: string;
  /** Set where somebody decided, and history does not tell what. */
  readonly untold?: true;
  /** The idempotency key of the decision. */
  readonly message?: string;
  /** Milliseconds since the epoch. */
  readonly at: number;
};

/** Undefined where the run never gave this work up after so many attempts, or waits for a decision still. */
export function endingOf(place: DeadLetterPlace, turns: readonly Turn[]): Ending | undefined {
  if (place.kind === "workflow" || place.kind === "event") return goneSince(place, turns);
  const state = new InstanceState();
  for (const { at, events } of turns) {
    state.beginTurn(at);
    for (const fact of events) {
      const waited = isAwaited(place, state);
      const decided = waited ? decisionOf(place, fact) : undefined;
      state.fold(fact);
      if (decided !== undefined) return { ...decided, at };
      if (waited && !isAwaited(place, state)) return { at };
    }
    state.endTurn();
  }
  return undefined;
}

/** Nothing in history tells what was decided on a run that ended, or on an event: only that there was such a letter. */
function goneSince({ kind, isEffect }: DeadLetterPlace, turns: readonly Turn[]): Ending | undefined {
  for (const { at, events } of turns)
    for (const fact of events) {
      const isIt = kind === "workflow" ? fact.type in closedStatus : fact.type === "ActivityScheduled" && isEffect(fact.effect);
      if (isIt) return { untold: true, at };
    }
  return undefined;
}

/** Whether the run waits for a decision on it. */
function isAwaited({ kind, attempts, isEffect }: DeadLetterPlace, state: InstanceState): boolean {
  if (state.closed) return false;
  if (kind === "activity") {
    for (const [effect, activity] of state.activities)
      if (isEffect(effect)) return activity.state === "Paused" && activity.attempt === attempts;
    return false;
  }
  for (const [effect, compensation] of state.compensations)
    if (isEffect(effect)) return compensation.state === "stuck" && compensation.tries === attempts;
  return false;
}

function decisionOf({ isEffect }: DeadLetterPlace, fact: HistoryFact): Omit<Ending, "at"> | undefined {
  if ((fact.type !== "ActivityDecided" && fact.type !== "CompensationDecided") || !isEffect(fact.effect)) return undefined;
  const { message, decision, note } = fact;
  return { decision: decision === "skip" ? "fail" : decision, message, ...(note !== undefined && { note }) };
}
