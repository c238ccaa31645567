/**
 * The facts that a run's history stores.
 *
 * 1. History is append-only; event numbers (`seq`) are dense from 1 within one run.
 * 2. One row is one turn: what came in (`Incoming`) and everything it caused (`Command`), in the order in which it happened.
 * 3. A fact says what happened, never what follows from it: states are derived (`instance-state.ts`, `activity-state.ts`).
 */
import type { OnLimit } from "./concurrency.ts";
import type { Failure } from "./failure.ts";
import type { Priority } from "./priority.ts";
import type { NoRetry } from "./retry-decision.ts";
import type { RunTimeouts } from "./run-timeouts.ts";
import type { StartDetails } from "./start-details.ts";

/** A value as text, made by `encodePayload` and opaque to everything but `decodePayload` and a `PayloadCodec`. */
export type Payload = string;

/** Where an effect stands in its run: `fiberPath/sequence`, for example `3`, `3.0`, `3.1/0`. */
export type EffectId = string;

export type ParentLink = {
  readonly tenant: string;
  readonly id: string;
  readonly run: string;
  readonly effect: EffectId;
};

/** A run and the instance that it is of. */
export type RunLink = { readonly id: string; readonly run: string };

/** An event that a run passes on to the next. */
export type CarriedEvent = {
  readonly message: string;
  readonly name: string;
  readonly payload: Payload;
  /** With which it was published. */
  readonly key?: string;
  /** Its place among all publications; absent on an event that was sent to the instance. */
  readonly position?: number;
};

/** The last publication of an event and a key that a run, or one before it in its chain, was told; `at` is when, in milliseconds since the epoch. */
export type LastPublication = { readonly name: string; readonly key: string; readonly position: number; readonly at: number };

export type ParentClosePolicy = "terminate" | "cancel" | "abandon";
/** `compensate`: as `graceful`, and what the run has done is undone then, whatever its policy says, but for `never`. */
export type CancelMode = "graceful" | "immediate" | "compensate";
/** What a person says of an activity that is paused: it is tried anew, it came to this, it failed. */
export type ActivityDecision = "retry" | "resolve" | "fail";
/** What a person says of a compensation that is stuck. */
export type CompensationDecision = "retry" | "skip" | "resolve";
/** The limit on how many runs of its kind are at work at once, as it was when the run was started. */
export type Admission =
  | {
      /** Tells it from every other limit of the tenant. */
      readonly name: string;
      /** Whose it is: that of a workflow, or of a scope. */
      readonly of: string;
      readonly key?: string;
      readonly capacity: number;
      readonly onLimit: OnLimit;
    }
  /** Why it could not be told. */
  | { readonly failure: Failure };

/** A compensation: its own id (`~2`), and the effect that it undoes by its id and name. */
export type PlannedCompensation = { readonly effect: EffectId; readonly undoes: EffectId; readonly name: string };

/** What reaches a run from outside. Each is applied once: `messageId` (message.ts) gives it a stable identity. */
export type Incoming =
  | {
      readonly type: "InstanceStarted";
      readonly id: string;
      readonly workflow: string;
      readonly version: string;
      readonly input: Payload;
      /** 32 hexadecimal digits; seeds `ctx.random()` and `ctx.uuid()`. */
      readonly seed: string;
      /** Milliseconds since the epoch; the root function is entered then. */
      readonly startAt?: number;
      readonly parent?: ParentLink;
      readonly correlationId?: string;
      readonly memo?: Payload;
      readonly attributes?: Payload;
      /** Of its activities and children, unless they say another; absent when it is `normal`. */
      readonly priority?: Priority;
      /** It is entered when its turn has come: so many of its kind run at once. */
      readonly admission?: Admission;
      /** Until it is entered another start may take its place, and put it off; not beyond this. Milliseconds since the epoch. */
      readonly debounceUntil?: number;
      /** Its time limits, as they were when its instance was started. */
      readonly timeout?: RunTimeouts;
      /** When the first run of its execution began, where that has a time limit; milliseconds since the epoch. */
      readonly executionStartedAt?: number;
      /** Which attempt it is, when a run before it failed. */
      readonly retry?: RunAttempt;
      /** Retries of activities in the runs that this one goes on from: they count against the same budget. */
      readonly retries?: number;
      /** The run that this one goes on from, and the events that nobody there had taken. */
      readonly continuedFrom?: string;
      /** The first of the runs that this one goes on from, however many lie between. */
      readonly firstRun?: string;
      readonly carried?: readonly CarriedEvent[];
      /** What the runs before were told is not looked back at. */
      readonly publications?: readonly LastPublication[];
      /** The last messages that the runs before had applied, with their digests: said again, they are known. */
      readonly known?: Readonly<Record<string, string>>;
      /** The run that recorded this; absent: the one whose history it is. Set where a history was copied into another run. */
      readonly run?: string;
      /** The run whose input and options this one has. */
      readonly forkedFrom?: RunLink;
    }
  | {
      readonly type: "ActivityCompleted";
      readonly effect: EffectId;
      readonly attempt: number;
      readonly output: Payload;
    }
  | {
      readonly type: "ActivityFailed";
      readonly effect: EffectId;
      readonly attempt: number;
      readonly failure: Failure;
      /** Milliseconds since the epoch; absent on the last attempt. */
      readonly retryAt?: number;
      /** Why there is no further attempt. */
      readonly noRetry?: NoRetry;
      /** The activity waits for somebody to decide, instead of failing; where its time is limited, until then (milliseconds since the epoch). */
      readonly paused?: true;
      readonly pausedUntil?: number;
      /** What the attempt told last by `ctx.heartbeat()`. */
      readonly heartbeat?: Payload;
    }
  | {
      readonly type: "AttemptStarted";
      readonly effect: EffectId;
      readonly attempt: number;
    }
  | {
      readonly type: "AttemptLost";
      readonly effect: EffectId;
      readonly attempt: number;
      /** A crash counts against the bound on losses; an attempt that a shutdown gave up does not. */
      readonly cause: "crash" | "shutdown";
      /** Of an attempt that a worker had: how many were lost before it, which tells one loss from the next. */
      readonly losses?: number;
      /** What it told last by `ctx.heartbeat()`, as far as it was saved. */
      readonly heartbeat?: Payload;
    }
  | {
      readonly type: "TimerFired";
      readonly effect: EffectId;
      readonly due: number;
    }
  | {
      readonly type: "EventReceived";
      readonly message: string;
      readonly name: string;
      readonly payload: Payload;
      readonly key?: string;
      readonly position?: number;
    }
  | {
      readonly type: "ChildCompleted";
      readonly effect: EffectId;
      readonly output: Payload;
    }
  | {
      readonly type: "ChildFailed";
      readonly effect: EffectId;
      readonly status: ClosedStatus;
      readonly failure: Failure;
      /** What the child did not undo. */
      readonly compensation?: Failure;
    }
  | {
      readonly type: "ChildRejected";
      readonly effect: EffectId;
      readonly failure: Failure;
    }
  | {
      readonly type: "UpdateRequested";
      readonly message: string;
      readonly name: string;
      readonly input: Payload;
    }
  /** Another start, with all that it says, in the place of the one that has not been entered yet, which is put off by so many milliseconds. */
  | ({ readonly type: "StartReplaced"; readonly message: string; readonly delay: number } & StartDetails)
  /** Whether the run may be entered. */
  | { readonly type: "AdmissionDecided"; readonly admitted: boolean }
  /** Ends every sleep that is open. */
  | { readonly type: "WakeRequested"; readonly message: string }
  | {
      readonly type: "CancelRequested";
      readonly message: string;
      readonly mode: CancelMode;
      readonly reason?: string;
    }
  | {
      readonly type: "TerminateRequested";
      readonly message: string;
      readonly reason?: string;
    }
  | {
      readonly type: "ActivityDecided";
      readonly message: string;
      readonly effect: EffectId;
      /** The one whose failure it is about. */
      readonly attempt: number;
      readonly decision: ActivityDecision;
      /** What it came to, where that is the decision. */
      readonly output?: Payload;
      /** A digest of the output as it was said, before the activity's schema made of it what is recorded. */
      readonly said?: string;
      readonly note?: string;
    }
  | {
      readonly type: "CompensationDecided";
      readonly message: string;
      readonly effect: EffectId;
      readonly decision: CompensationDecision;
      readonly note?: string;
    }
  /** From here on the code hears of nothing: what arrives is recorded, and heard at `ResumeRequested`. */
  | { readonly type: "PauseRequested"; readonly message: string; readonly reason?: string }
  /** Ends a pause, and lets a parked run try again. */
  | { readonly type: "ResumeRequested"; readonly message: string }
  /** The run ends here; another one of its id goes on from event number `to`. */
  | {
      readonly type: "ResetRequested";
      readonly message: string;
      readonly to: number;
      /** How that was said, where it was no number. */
      readonly asked?: "first" | "last";
      readonly run: string;
      readonly reason?: string;
    }
  /** What stands before it was recorded by another run. From here on this one goes on by itself, under its own name and with random numbers of its own. */
  | {
      readonly type: "Forked";
      readonly from: RunLink;
      /** Number of the last event that was copied. */
      readonly at: number;
      readonly id: string;
      readonly run: string;
      readonly seed: string;
      readonly correlationId: string;
      /** Open children are started again, each under these names. */
      readonly children?: readonly (RunLink & { readonly effect: EffectId })[];
      /** What was said to the other run after that event, with digests: said again, it is known. */
      readonly known?: Readonly<Record<string, string>>;
      /** Set when it takes the place of the other run, whose id it has. */
      readonly reset?: true;
      readonly reason?: string;
    }
  /** What stands before it, so many events, was recorded elsewhere, by this very run. */
  | { readonly type: "Imported"; readonly at: number }
  | { readonly type: "Parked"; readonly failure: Failure }
  | { readonly type: "Resumed" };

/** `order.ts:12`: where the code asked for it, while lines are remembered. Told when code and history part, and never compared. */
export type CodeLine = string;

/** What the workflow's code asked for. Compared with history, one by one, on every replay. */
export type Command =
  | {
      readonly type: "ActivityScheduled";
      readonly effect: EffectId;
      readonly line?: CodeLine;
      readonly name: string;
      readonly input: Payload;
      readonly digest: string;
      readonly summary?: string;
      /** Absent when it runs at least once. Of one that runs once at most each attempt is recorded before it begins. */
      readonly semantics?: "atMostOnce" | "transactional";
      /** The task queue from which a worker takes it; absent when it runs in the process of the orchestrator. */
      readonly queue?: string;
      /** Absent when it is `normal`. */
      readonly priority?: Priority;
    }
  | {
      readonly type: "TimerStarted";
      readonly effect: EffectId;
      readonly line?: CodeLine;
      readonly purpose: TimerPurpose;
      readonly due: number;
    }
  | {
      readonly type: "EventAwaited";
      readonly effect: EffectId;
      readonly line?: CodeLine;
      readonly name: string;
      readonly key?: string;
    }
  | {
      readonly type: "EventConsumed";
      readonly effect: EffectId;
      readonly message: string;
    }
  | {
      readonly type: "ChildStarted";
      readonly effect: EffectId;
      readonly line?: CodeLine;
      readonly workflow: string;
      readonly version: string;
      readonly id: string;
      readonly run: string;
      readonly input: Payload;
      readonly digest: string;
      readonly onParentClose: ParentClosePolicy;
      /** Absent when it is `normal`. */
      readonly priority?: Priority;
    }
  | {
      readonly type: "SideEffectRecorded";
      readonly effect: EffectId;
      readonly line?: CodeLine;
      /** Absent when the function threw, or returned what cannot be stored; then `failure` says so. */
      readonly value?: Payload;
      readonly failure?: Failure;
    }
  | { readonly type: "ConditionAwaited"; readonly effect: EffectId; readonly line?: CodeLine }
  | { readonly type: "ConditionMet"; readonly effect: EffectId }
  | { readonly type: "Patched"; readonly patch: string }
  | { readonly type: "UpdateCompleted"; readonly message: string; readonly output: Payload }
  | { readonly type: "UpdateFailed"; readonly message: string; readonly failure: Failure }
  | { readonly type: "EffectCancelled"; readonly effect: EffectId }
  /** The child is told to undo what it did; its parent waits for its end. */
  | { readonly type: "ChildCancelRequested"; readonly effect: EffectId; readonly reason: string }
  | {
      readonly type: "CompensationStarted";
      /** The saga or the `compensateNow` whose compensations they are; `~` for those of the run. */
      readonly effect: EffectId;
      readonly line?: CodeLine;
      readonly order: "reverse" | "parallel";
      /** What happens when one of them fails: it waits for somebody to decide, or is left behind. */
      readonly onFailure: "pause" | "fail";
      /** In the order in which they begin. */
      readonly compensations: readonly PlannedCompensation[];
      /** Why; absent where the code asked for it. */
      readonly failure?: Failure;
    }
  | { readonly type: "CompensationCompleted"; readonly effect: EffectId }
  /** It is not undone, and the others go on. */
  | { readonly type: "CompensationFailed"; readonly effect: EffectId; readonly failure: Failure }
  /** It waits for somebody to decide. */
  | { readonly type: "CompensationStuck"; readonly effect: EffectId; readonly failure: Failure }
  | { readonly type: "VariablesChanged"; readonly variables: Payload }
  | { readonly type: "AttributesChanged"; readonly attributes: Payload }
  | { readonly type: "InstanceCompleted"; readonly output: Payload }
  | ({ readonly type: "InstanceFailed"; readonly failure: Failure } & Partial<NextAttempt>)
  | ({ readonly type: "InstanceTimedOut"; readonly failure: Failure } & Partial<NextAttempt>)
  | { readonly type: "InstanceCancelled"; readonly failure: Failure }
  | {
      readonly type: "InstanceTerminated";
      readonly failure: Failure;
      /** The run that goes on in its place. */
      readonly resetTo?: string;
    }
  /** `failure` is what the run failed with, or was cancelled with. */
  | ({ readonly type: "InstanceCompensated"; readonly failure: Failure } & Partial<NextAttempt>)
  /** `compensation` says what was not undone. */
  | { readonly type: "InstanceCompensationFailed"; readonly failure: Failure; readonly compensation: Failure }
  | {
      readonly type: "InstanceContinuedAsNew";
      readonly run: string;
      readonly version: string;
      readonly input: Payload;
      readonly digest: string;
      readonly carried?: readonly CarriedEvent[];
    };

/** A run that takes the place of one that failed. */
export type NextAttempt = {
  readonly run: string;
  /** When its function is entered; milliseconds since the epoch. */
  readonly retryAt: number;
  readonly carried?: readonly CarriedEvent[];
};

/** What a run that takes the place of a failed one knows of those before it. */
export type RunAttempt = {
  /** Counts from 2. */
  readonly attempt: number;
  /** The run that failed. */
  readonly of: string;
  /** When the first attempt began; milliseconds since the epoch. */
  readonly since: number;
  /** Milliseconds that were waited before this one. */
  readonly delay: number;
};

/** `run` and `execution`: the time limit of the run, or of all runs of its execution, whichever ends first. */
export type TimerPurpose = "start" | "sleep" | "timeout" | "cleanup" | "retry" | "run" | "execution";

export type HistoryFact = Incoming | Command;

/** One row of history: everything that one turn recorded. Its events are numbered `seq`, `seq + 1`, … */
export type Turn = {
  readonly seq: number;
  /** Milliseconds since the epoch: the time of every event of the turn, and `ctx.now()` in it. */
  readonly at: number;
  /** The node that ran it. */
  readonly node: string;
  readonly events: readonly HistoryFact[];
};

export type ClosedStatus =
  | "Completed"
  | "Failed"
  | "TimedOut"
  | "Cancelled"
  | "Terminated"
  | "ContinuedAsNew"
  | "Compensated"
  | "CompensationFailed";

/** Every state that an instance can be shown in. */
export type Status = "Created" | "Validated" | "Scheduled" | "Running" | "Waiting" | "Paused" | "Parked" | "Compensating" | ClosedStatus;
