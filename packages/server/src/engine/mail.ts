/**
 * What waits in an instance's mailbox.
 *
 * 1. Every item has a stable identity within its run: applied once, however often it is delivered.
 * 2. Whether it still means something is judged against the run's state when its turn comes, never before.
 */
import { ApiError, type WovyrError } from "@wovyr/sdk";
import {
  type HistoryFact,
  type Incoming,
  type InstanceState,
  isMessage,
  type Message,
  messageDigest,
  type OpenActivity,
} from "@wovyr/sdk/internal";

/** Whoever waits for an item to be durable. */
export interface Receipt {
  accepted(replayed: boolean): void;
  refused(error: Error): void;
}

export type Mail = {
  readonly fact: Incoming;
  /** The inbox row to remove with the turn that applies it. */
  readonly inbox?: string;
  readonly receipt?: Receipt;
  /** Of a failed transactional step: that it was not done is certain. */
  readonly settled?: true;
};

export type Verdict =
  | { readonly kind: "apply" }
  /** Applied before: acknowledged, and left alone. */
  | { readonly kind: "known" }
  /** Too late to mean anything: acknowledged, and dropped. */
  | { readonly kind: "stale" }
  | { readonly kind: "refuse"; readonly error: WovyrError };

const apply: Verdict = { kind: "apply" };
const known: Verdict = { kind: "known" };
const stale: Verdict = { kind: "stale" };
const when = (condition: boolean): Verdict => (condition ? apply : stale);

export function judge(state: InstanceState, fact: Incoming): Verdict {
  switch (fact.type) {
    case "InstanceStarted":
      return state.start === undefined ? apply : known;
    case "ActivityCompleted": {
      const activity = state.activities.get(fact.effect);
      return when(activity?.state === "Running" && activity.attempt === fact.attempt);
    }
    case "AttemptLost": {
      const activity = state.activities.get(fact.effect);
      if (activity?.state !== "Running" || activity.attempt !== fact.attempt) return stale;
      return when(fact.losses === undefined || fact.losses === activity.losses);
    }
    case "ActivityFailed":
      return when(mayFail(state.activities.get(fact.effect), fact));
    case "AttemptStarted": {
      const activity = state.activities.get(fact.effect);
      if (activity?.state === "Scheduled" || activity?.state === "Lost") return when(activity.attempt === fact.attempt);
      return when(activity?.state === "Retrying" && activity.attempt + 1 === fact.attempt);
    }
    case "TimerFired":
      return when(state.timers.has(fact.effect));
    case "ChildCompleted":
    case "ChildFailed":
    case "ChildRejected":
      return when(state.children.has(fact.effect));
    case "AdmissionDecided":
      return when(state.awaitsAdmission);
    case "StartReplaced":
      return judgeReplacement(state, fact);
    case "EventReceived":
    case "UpdateRequested":
    case "WakeRequested":
    case "CancelRequested":
    case "TerminateRequested":
    case "PauseRequested":
    case "ResumeRequested":
    case "ResetRequested":
      return judgeMessage(state, fact);
    case "ActivityDecided":
      return judgeActivityDecision(state, fact);
    case "CompensationDecided":
      return judgeDecision(state, fact);
    case "Forked":
      return when(state.forked?.run !== fact.run);
    case "Imported":
      return when(!state.closed && state.importedAt !== fact.at);
    case "Parked":
      return when(!state.closed && state.parked?.message !== fact.failure.message);
    case "Resumed":
      // One that is paused is tried again when the pause ends.
      return when(state.parked !== undefined && state.paused === undefined);
  }
}

/** An attempt that runs, was lost, or came to its end while it waited (for a place, or for a decision) may fail. */
function mayFail(
  activity: Readonly<OpenActivity> | undefined,
  { attempt, noRetry }: Extract<Incoming, { type: "ActivityFailed" }>,
): boolean {
  if (activity?.attempt !== attempt) return false;
  if (activity.state === "Running" || activity.state === "Lost") return true;
  if (activity.state === "Paused") return noRetry === "scheduleToClose";
  const hasNotBegun = noRetry === "scheduleToStart" || noRetry === "scheduleToClose" || noRetry === "concurrencyLimit";
  return hasNotBegun && (activity.state === "Scheduled" || activity.state === "Retrying");
}

function judgeMessage(state: InstanceState, fact: Message): Verdict {
  const before = state.messages.get(fact.message);
  if (before !== undefined) {
    if (before === messageDigest(fact)) return known;
    return {
      kind: "refuse",
      error: new ApiError(
        `The idempotency key "${fact.message}" was used for another request to this run. Use a new key for a new request.`,
        {
          code: "IDEMPOTENCY_CONFLICT",
        },
      ),
    };
  }
  if (state.outcome === undefined) return apply;
  return {
    kind: "refuse",
    error: new ApiError(`The run has ended (${state.outcome.status}); it takes no more messages.`, { code: "INSTANCE_CLOSED" }),
  };
}

/** The start that it would replace has been entered, or has come to nothing. */
export class StartIsOver extends ApiError {
  constructor() {
    super("The run has begun; it takes no other start.", { code: "INSTANCE_CLOSED" });
  }
}

function judgeReplacement(state: InstanceState, fact: Extract<Incoming, { type: "StartReplaced" }>): Verdict {
  const verdict = judgeMessage(state, fact);
  return verdict.kind === "apply" && !state.isDelayed ? { kind: "refuse", error: new StartIsOver() } : verdict;
}

function judgeDecision(state: InstanceState, fact: Extract<Incoming, { type: "CompensationDecided" }>): Verdict {
  const verdict = judgeMessage(state, fact);
  if (verdict.kind !== "apply") return verdict;
  const compensation = state.compensations.get(fact.effect);
  if (compensation?.state === "stuck") return apply;
  const stuck = [...state.compensations].flatMap(([effect, { state }]) => (state === "stuck" ? [effect] : []));
  const which = stuck.length === 0 ? "None is at present" : `Stuck at present: ${stuck.join(", ")}`;
  return {
    kind: "refuse",
    error:
      compensation === undefined
        ? new ApiError(`The run has no compensation "${fact.effect}" to decide on. ${which}.`, { code: "COMPENSATION_NOT_FOUND" })
        : new ApiError(`Compensation "${fact.effect}" is ${compensation.state}: only one that is stuck can be decided on. ${which}.`, {
            code: "COMPENSATION_NOT_STUCK",
          }),
  };
}

function judgeActivityDecision(state: InstanceState, fact: Extract<Incoming, { type: "ActivityDecided" }>): Verdict {
  const verdict = judgeMessage(state, fact);
  if (verdict.kind !== "apply") return verdict;
  const activity = state.activities.get(fact.effect);
  if (activity?.state === "Paused" && activity.attempt === fact.attempt) return apply;
  return {
    kind: "refuse",
    error: new ApiError(`Attempt ${fact.attempt} of effect "${fact.effect}" does not wait for a decision any more.`, {
      code: "DEAD_LETTER_DECIDED",
    }),
  };
}

/**
 * Whether it is for the run that goes on where another one ended: all that is said to that one, but for a reset, which names a place in its history, and for
 * decisions on its activities, whose effects are not those of the next.
 */
const isPassedOn = (fact: Incoming): boolean =>
  isMessage(fact) && fact.type !== "ResetRequested" && fact.type !== "ActivityDecided" && fact.type !== "StartReplaced";

/** Whether it is for the run that goes on where this one ended. What this one has taken already is not taken again by that one. */
export const isForSuccessor = (state: InstanceState, fact: Incoming): boolean =>
  state.successor !== undefined && isPassedOn(fact) && !(isMessage(fact) && state.messages.has(fact.message));

/** Whether it ends a run without entering its code. */
export function isEnd(fact: Incoming): fact is EndFact {
  return (
    fact.type === "TerminateRequested" || fact.type === "ResetRequested" || (fact.type === "CancelRequested" && fact.mode === "immediate")
  );
}

export type EndFact = Extract<Incoming, { type: "TerminateRequested" | "CancelRequested" | "ResetRequested" }>;

/** Bytes that applying the item adds to history, roughly. */
export function weightOf(fact: Incoming): number {
  switch (fact.type) {
    case "EventReceived":
      return fact.payload.length;
    case "ActivityCompleted":
    case "ChildCompleted":
      return fact.output.length;
    case "ActivityDecided":
      return fact.output?.length ?? 256;
    case "InstanceStarted":
    case "UpdateRequested":
    case "StartReplaced":
      return fact.input.length;
    default:
      return 256;
  }
}

/** The identity of a fact within its run. */
export function mailIdentity(fact: Incoming): string {
  switch (fact.type) {
    case "InstanceStarted":
      return "start";
    case "ActivityCompleted":
    case "ActivityFailed":
      return `outcome:${fact.effect}:${fact.attempt}`;
    case "AttemptStarted":
    case "AttemptLost":
      return `${fact.type}:${fact.effect}:${fact.attempt}`;
    case "TimerFired":
      return `timer:${fact.effect}`;
    case "ChildCompleted":
    case "ChildFailed":
    case "ChildRejected":
      return `child:${fact.effect}`;
    case "AdmissionDecided":
      return "admission";
    case "EventReceived":
    case "StartReplaced":
    case "UpdateRequested":
    case "WakeRequested":
    case "ActivityDecided":
    case "CompensationDecided":
    case "CancelRequested":
    case "TerminateRequested":
    case "PauseRequested":
    case "ResumeRequested":
    case "ResetRequested":
      return `message:${fact.message}`;
    case "Parked":
    case "Resumed":
    case "Forked":
    case "Imported":
      return fact.type;
  }
}

/** What a run that takes no step need not keep: timers and retries have rows, and a lost attempt and a new chance are seen when the run is loaded. */
export const comesAgain: ReadonlySet<Incoming["type"]> = new Set(["TimerFired", "AttemptStarted", "AttemptLost", "Resumed"]);

/** Whether the next owner of a run hears of it without this node: because it is durable, or because who said it is told that it came to nothing. */
export const comesAgainTo = ({ fact, inbox, receipt }: Mail): boolean =>
  inbox !== undefined || receipt !== undefined || fact.type === "TimerFired";

/** Whether an inbox message of this name holds the outcome of an attempt. */
export const isOutcomeMessage = (message: string): boolean => message.startsWith("outcome:");

/** Facts that loading a run may add before its code is entered: with them alone it has come no further. */
export const addedByLoading: ReadonlySet<HistoryFact["type"]> = new Set(["Resumed", "AttemptLost", "AttemptStarted"]);
