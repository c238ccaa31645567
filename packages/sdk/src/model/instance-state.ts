/**
 * What a run's history says: its state, what it waits for, what it holds.
 *
 * 1. Everything here is a function of the facts; two folds of the same history are equal.
 * 2. Every transition is in one of the two tables (here and activity-state.ts); any other throws `InvalidTransition`.
 * 3. Only open effects are kept, so a long history folds into little.
 */
import { type ActivityState, moveActivity } from "./activity-state.ts";
import { digest } from "./digest.ts";
import type { Failure } from "./failure.ts";
import type {
  CarriedEvent,
  ClosedStatus,
  Command,
  EffectId,
  HistoryFact,
  Incoming,
  LastPublication,
  ParentClosePolicy,
  Payload,
  Status,
  TimerPurpose,
  Turn,
} from "./history.ts";
import { InvalidTransition } from "./invalid-transition.ts";
import { isUndoing, type OpenCompensation, OpenCompensations, ofRun } from "./open-compensation.ts";
import type { Priority } from "./priority.ts";
import { restated, startDetails } from "./start-details.ts";
import { workerLossLimit } from "./task-queue.ts";

const anyEnd = ["Completed", "Failed", "TimedOut", "Cancelled", "Terminated", "ContinuedAsNew"] as const;
const isEnd = (status: Status): boolean => instanceTransitions[status].length === 0;

export const instanceTransitions: Readonly<Record<Status, readonly Status[]>> = {
  Created: ["Validated", "Paused", "Parked", "Cancelled", "Terminated"],
  Validated: ["Scheduled"],
  Scheduled: ["Running", "Paused", "Cancelled", "Terminated", "Parked"],
  Running: ["Waiting", "Paused", "Parked", "Compensating", "CompensationFailed", ...anyEnd],
  Waiting: ["Running", "Paused", "Parked", "Cancelled", "Terminated", "TimedOut", "Compensating"],
  Paused: ["Created", "Scheduled", "Running", "Waiting", "Parked", "Compensating", "Cancelled", "Terminated"],
  Parked: ["Created", "Running", "Paused", "Compensating", "Cancelled", "Terminated"],
  Compensating: ["Compensated", "CompensationFailed", "Terminated", "Paused", "Parked"],
  Completed: [],
  Failed: [],
  TimedOut: [],
  Cancelled: [],
  Terminated: [],
  ContinuedAsNew: [],
  Compensated: [],
  CompensationFailed: [],
};

/**
 * From so many losses on the next attempt is recorded when it begins, and not before: until there is a place for it the activity stays `Lost`, so that one that
 * merely waits is not lost again with its process.
 */
export const announcedLosses = 2;

/** From so many on, of which the last came after a begin that was recorded, an activity is suspected of ending its process: it runs alone. */
export const suspectLosses = 3;

export type OpenActivity = {
  readonly name: string;
  readonly input: Payload;
  /** Milliseconds since the epoch. */
  readonly scheduledAt: number;
  /**
   * Absent when it runs at least once. Of one that runs once at most an attempt is `Scheduled` until it is recorded that it begins, as one is that a person
   * asks for.
   */
  readonly semantics?: "atMostOnce" | "transactional";
  /** The task queue from which a worker takes it. Its attempts are open from when they are recorded, and nothing is lost with the process of the orchestrator. */
  readonly queue?: string;
  /** Absent when it is `normal`. */
  readonly priority?: Priority;
  state: ActivityState;
  attempt: number;
  /** Attempts that ended with their process. */
  losses: number;
  retryAt?: number;
  lastFailure?: Failure;
  /** When the present attempt was due, where that was later than the activity; milliseconds since the epoch. */
  attemptAt?: number;
  /** Milliseconds that were waited before the present attempt. */
  previousDelay?: number;
  /** What an attempt told last by `ctx.heartbeat()`. */
  heartbeat?: Payload;
  /** While it waits for somebody to decide: when its time is over, in milliseconds since the epoch. */
  pausedUntil?: number;
  /** Set when somebody had it tried anew: how many attempts were made before, and when it was; what its policy limits counts from there. */
  renewed?: { readonly attempts: number; readonly at: number };
};

export type OpenTimer = {
  readonly purpose: TimerPurpose;
  readonly due: number;
};
export type OpenWait = { readonly name: string; readonly key?: string };
export type OpenChild = {
  readonly workflow: string;
  readonly version: string;
  readonly id: string;
  readonly run: string;
  readonly input: Payload;
  readonly onParentClose: ParentClosePolicy;
  /** Absent when it is `normal`. */
  readonly priority?: Priority;
};
/** Since when somebody lets it wait, and why. */
export type Pause = { readonly at: number; readonly reason?: string };
export type OpenUpdate = { readonly name: string; readonly at: number };
export type UnreadEvent = { readonly name: string; readonly key?: string; readonly at: number };

export type Outcome =
  | { readonly status: "Completed"; readonly output: Payload }
  | { readonly status: "ContinuedAsNew"; readonly run: string }
  | {
      readonly status: Exclude<ClosedStatus, "Completed" | "ContinuedAsNew">;
      readonly failure: Failure;
      /** What was not undone. */
      readonly compensation?: Failure;
      /** The run that takes the place of this one. */
      readonly retriedAs?: string;
      /** The run that goes on in its place. */
      readonly resetTo?: string;
    };

type ActivityFailed = Extract<Incoming, { type: "ActivityFailed" }>;

export type StartFact = Extract<Incoming, { type: "InstanceStarted" }>;
export type ForkFact = Extract<Incoming, { type: "Forked" }>;

const none: ReadonlyMap<never, never> = new Map<never, never>();
const noEffects: ReadonlySet<never> = new Set<never>();
const noPublications: readonly never[] = [];
const publicationKey = (name: string, key: string) => `${name} ${key}`;

export class InstanceState {
  status: Status = "Created";
  start: StartFact | undefined;
  /** Number of events. */
  tail = 0;
  /** Time of the last turn, milliseconds since the epoch. */
  at = 0;
  startedAt = 0;
  /** Retries of activities, those of the runs that this one goes on from included. */
  retries = 0;
  #activities: Map<EffectId, OpenActivity> | undefined;
  #timers: Map<EffectId, OpenTimer> | undefined;
  #waits: Map<EffectId, OpenWait> | undefined;
  #children: Map<EffectId, OpenChild> | undefined;
  #conditions: Set<EffectId> | undefined;
  #updates: Map<string, OpenUpdate> | undefined;
  #unread: Map<string, UnreadEvent> | undefined;
  #publications: Map<string, LastPublication> | undefined;
  /** What became of its wait for its turn. */
  #admitted: boolean | undefined;
  #messages: Map<string, string> | undefined;
  #compensations: OpenCompensations | undefined;
  /** Why the run undoes what it did; undefined while it does not. */
  compensating: Failure | undefined;
  variables: Payload | undefined;
  attributes: Payload | undefined;
  outcome: Outcome | undefined;
  parked: Failure | undefined;
  paused: Pause | undefined;
  /** Where it went on from what another run recorded, last. */
  forked: ForkFact | undefined;
  /** How many events it had when it came from another store, last. */
  importedAt: number | undefined;
  /** The state in which it was paused. */
  #pausedIn: Status = "Running";

  get activities(): ReadonlyMap<EffectId, Readonly<OpenActivity>> {
    return this.#activities ?? none;
  }

  get timers(): ReadonlyMap<EffectId, OpenTimer> {
    return this.#timers ?? none;
  }

  get waits(): ReadonlyMap<EffectId, OpenWait> {
    return this.#waits ?? none;
  }

  get children(): ReadonlyMap<EffectId, OpenChild> {
    return this.#children ?? none;
  }

  /** Effects that wait for a condition. */
  get conditions(): ReadonlySet<EffectId> {
    return this.#conditions ?? noEffects;
  }

  /** Updates that are being handled, by message. */
  get updates(): ReadonlyMap<string, OpenUpdate> {
    return this.#updates ?? none;
  }

  /** Events that nothing has taken yet, by message. */
  get unread(): ReadonlyMap<string, UnreadEvent> {
    return this.#unread ?? none;
  }

  /** The last publication of each event and key that the run was told, in the order in which they were told. */
  get publications(): Iterable<LastPublication> {
    return this.#publications?.values() ?? noPublications;
  }

  /** The position of the last publication of this event and key that the run was told; 0 when there is none. */
  lastPosition(name: string, key: string): number {
    return this.#publications?.get(publicationKey(name, key))?.position ?? 0;
  }

  /** Messages that were applied, with a digest of what they said. */
  get messages(): ReadonlyMap<string, string> {
    return this.#messages ?? none;
  }

  /** By their own ids (`~2`). */
  get compensations(): ReadonlyMap<EffectId, Readonly<OpenCompensation>> {
    return this.#compensations?.byEffect ?? none;
  }

  get closed(): boolean {
    return this.outcome !== undefined;
  }

  /** The run that goes on where this one ended: as a new one, by another attempt, or from a place in its history. */
  get successor(): string | undefined {
    const { outcome } = this;
    if (outcome === undefined || outcome.status === "Completed") return undefined;
    return outcome.status === "ContinuedAsNew" ? outcome.run : (outcome.retriedAs ?? outcome.resetTo);
  }

  /** Whether it takes no step for now: a person paused it, or its code cannot be run. */
  get held(): boolean {
    return this.paused !== undefined || this.parked !== undefined;
  }

  apply(turn: Pick<Turn, "at" | "events">): void {
    this.beginTurn(turn.at);
    for (const fact of turn.events) this.fold(fact);
    this.endTurn();
  }

  beginTurn(at: number): void {
    this.at = at;
  }

  fold(fact: HistoryFact): void {
    this.#fold(fact);
    this.tail += 1;
  }

  endTurn(): void {
    this.#settle();
  }

  /** Whether an attempt in this process is open or due, so that the run is to be looked at when its process has died. */
  get busy(): boolean {
    for (const { state, queue } of this.activities.values()) {
      if (state === "Retrying" || state === "Paused" || (state === "Running" && queue !== undefined)) continue;
      return true;
    }
    return this.awaitsAdmission;
  }

  /** Whether the run has begun but for its turn, which has not come yet. */
  get awaitsAdmission(): boolean {
    return isGated(this.start?.admission) && this.#admitted === undefined && this.outcome === undefined && !this.isDelayed;
  }

  /** Whether its start is put off to a time that has not come. */
  get isDelayed(): boolean {
    for (const { purpose } of this.timers.values()) if (purpose === "start") return true;
    return false;
  }

  /** While it is paused it stays so, unless it ends: what happens to it meanwhile shows when it goes on. */
  #move(to: Status): void {
    if (this.status === "Paused" && this.paused !== undefined && !isEnd(to)) this.#pausedIn = moved(this.#pausedIn, to);
    else this.status = moved(this.status, to);
  }

  /** At the end of a turn the run is either working (an attempt is open, or comes by itself) or waiting, unless it undoes what it did. */
  #settle(): void {
    if (this.outcome !== undefined || this.held || this.compensating !== undefined) return;
    if (this.status === "Scheduled" || this.status === "Created") return;
    this.#move(this.#isWorking ? "Running" : "Waiting");
  }

  /** Whether an attempt is open or will come by itself. */
  get #isWorking(): boolean {
    for (const { state } of this.activities.values()) if (state !== "Paused") return true;
    return false;
  }

  #resume(): void {
    if (this.status === "Waiting") this.#move("Running");
  }

  #fold(fact: HistoryFact): void {
    switch (fact.type) {
      case "InstanceStarted":
        this.start = fact;
        this.startedAt = this.at;
        this.retries = fact.retries ?? 0;
        this.attributes = fact.attributes;
        if (fact.known !== undefined) this.#messages = new Map(Object.entries(fact.known));
        for (const publication of fact.publications ?? []) this.#told(publication);
        for (const event of fact.carried ?? []) this.#received(event);
        this.#move("Validated");
        this.#move("Scheduled");
        if (!isGated(fact.admission) && (fact.startAt === undefined || fact.startAt <= this.at)) this.#move("Running");
        return;
      case "ActivityScheduled":
        this.#activityScheduled(fact);
        return;
      case "AttemptStarted":
        this.#attemptStarted(fact);
        return;
      case "AttemptLost":
        this.#attemptLost(fact);
        return;
      case "ActivityCompleted":
        this.#resume();
        this.#moveActivity(fact.effect, "Completed");
        this.#activities?.delete(fact.effect);
        return;
      case "ActivityFailed":
        this.#activityFailed(fact);
        return;
      case "TimerStarted":
        this.#timers ??= new Map();
        this.#timers.set(fact.effect, { purpose: fact.purpose, due: fact.due });
        return;
      case "TimerFired":
        this.#timers?.delete(fact.effect);
        if (this.status === "Scheduled" && !this.awaitsAdmission) this.#move("Running");
        this.#resume();
        return;
      case "EventAwaited":
        this.#waits ??= new Map();
        this.#waits.set(fact.effect, { name: fact.name, ...(fact.key !== undefined && { key: fact.key }) });
        return;
      case "EventReceived":
        this.#received(fact);
        return;
      case "EventConsumed":
        this.#resume();
        this.#unread?.delete(fact.message);
        this.#waits?.delete(fact.effect);
        return;
      case "ChildStarted":
        this.#children ??= new Map();
        this.#children.set(fact.effect, {
          workflow: fact.workflow,
          version: fact.version,
          id: fact.id,
          run: fact.run,
          input: fact.input,
          onParentClose: fact.onParentClose,
          ...(fact.priority !== undefined && { priority: fact.priority }),
        });
        return;
      case "ChildCompleted":
      case "ChildFailed":
      case "ChildRejected":
        this.#resume();
        this.#children?.delete(fact.effect);
        return;
      case "EffectCancelled":
        if (this.activities.has(fact.effect)) this.#moveActivity(fact.effect, "Cancelled");
        this.#activities?.delete(fact.effect);
        this.#timers?.delete(fact.effect);
        this.#waits?.delete(fact.effect);
        this.#children?.delete(fact.effect);
        this.#conditions?.delete(fact.effect);
        return;
      case "ConditionAwaited":
        this.#conditions ??= new Set();
        this.#conditions.add(fact.effect);
        return;
      case "ConditionMet":
        this.#resume();
        this.#conditions?.delete(fact.effect);
        return;
      case "UpdateRequested":
        this.#resume();
        this.#said(fact);
        this.#updates ??= new Map();
        this.#updates.set(fact.message, { name: fact.name, at: this.at });
        return;
      case "UpdateCompleted":
      case "UpdateFailed":
        this.#updates?.delete(fact.message);
        return;
      case "StartReplaced":
        this.#said(fact);
        if (this.start !== undefined) this.start = restated(this.start, fact);
        this.attributes = fact.attributes;
        return;
      case "AdmissionDecided":
        this.#admitted = fact.admitted;
        if (fact.admitted && this.status !== "Running") this.#move("Running");
        return;
      case "WakeRequested":
        this.#resume();
        for (const [effect, { purpose }] of this.timers) if (purpose === "sleep") this.#timers?.delete(effect);
        this.#said(fact);
        return;
      case "ChildCancelRequested":
        return;
      case "CompensationStarted":
        this.#compensationStarted(fact);
        return;
      case "CompensationCompleted":
        this.#resume();
        this.#compensations?.ended(fact.effect, "done");
        return;
      case "CompensationFailed":
        this.#resume();
        this.#compensations?.ended(fact.effect, "failed", fact.failure);
        return;
      case "CompensationStuck":
        this.#compensations?.ended(fact.effect, "stuck", fact.failure);
        return;
      case "ActivityDecided":
        this.#resume();
        this.#messages ??= new Map();
        this.#messages.set(fact.message, messageDigest(fact));
        this.#activityDecided(fact);
        return;
      case "CompensationDecided":
        this.#resume();
        this.#messages ??= new Map();
        this.#messages.set(fact.message, messageDigest(fact));
        this.#compensations?.decided(fact.effect, fact.decision, fact.note);
        return;
      case "CancelRequested":
      case "TerminateRequested":
      case "ResetRequested":
        this.#said(fact);
        return;
      case "PauseRequested":
        this.#said(fact);
        this.#pause(fact.reason);
        return;
      case "ResumeRequested":
        this.#said(fact);
        this.#endPause();
        return;
      case "Forked":
        this.#forkedHere(fact);
        return;
      case "Imported":
        this.importedAt = fact.at;
        // They stand elsewhere in another store.
        this.#publications = undefined;
        this.#beginAgain();
        return;
      case "Parked":
        this.#move("Parked");
        this.parked = fact.failure;
        return;
      case "Resumed":
        this.parked = undefined;
        this.#move(this.start === undefined ? "Created" : this.compensating === undefined ? "Running" : "Compensating");
        return;
      case "SideEffectRecorded":
      case "Patched":
        return;
      case "VariablesChanged":
        this.variables = fact.variables;
        return;
      case "AttributesChanged":
        this.attributes = fact.attributes;
        return;
      case "InstanceCompleted":
      case "InstanceFailed":
      case "InstanceTimedOut":
      case "InstanceCancelled":
      case "InstanceTerminated":
      case "InstanceCompensated":
      case "InstanceCompensationFailed":
      case "InstanceContinuedAsNew":
        this.#close(fact);
        return;
      default:
        fact satisfies never;
    }
  }

  /** Remembers a message, so that it is known when it is said again. */
  #said(fact: Message): void {
    this.#messages ??= new Map();
    this.#messages.set(fact.message, messageDigest(fact));
  }

  #pause(reason: string | undefined): void {
    if (this.paused !== undefined) return;
    this.#pausedIn = this.status;
    this.#move("Paused");
    this.paused = { at: this.at, ...(reason !== undefined && { reason }) };
  }

  #endPause(): void {
    if (this.paused === undefined) return;
    this.paused = undefined;
    this.#move(this.#pausedIn);
  }

  /** The run of another name goes on from here; whatever held the other one up does not hold this one. */
  #forkedHere(fact: ForkFact): void {
    this.forked = fact;
    this.#endPause();
    if (this.parked !== undefined) {
      this.parked = undefined;
      this.#move(this.compensating === undefined ? "Running" : "Compensating");
    }
    for (const [message, said] of Object.entries(fact.known ?? {})) {
      this.#messages ??= new Map();
      this.#messages.set(message, said);
    }
    for (const { effect, id, run } of fact.children ?? []) {
      const child = this.#children?.get(effect);
      if (child !== undefined) this.#children?.set(effect, { ...child, id, run });
    }
    this.#beginAgain();
  }

  /** Nobody runs what the history shows as running: each attempt begins again, and none counts as lost. One that was lost too often waits for its place. */
  #beginAgain(): void {
    for (const [effect, { state, losses, semantics, queue }] of this.activities) {
      if (state === "Retrying" || state === "Paused") continue;
      if (state === "Running") this.#moveActivity(effect, "Lost");
      if (state === "Scheduled") this.#moveActivity(effect, "Running", "Lost");
      // What is to run once at most is recorded when it begins; of a run that is paused, whatever begins when it goes on.
      const isAnnounced = queue === undefined && losses >= announcedLosses;
      const isRecorded = queue === undefined && semantics === "atMostOnce";
      // A task is put into its queue when the run goes on.
      const isHeld = this.paused !== undefined || (queue !== undefined && this.parked !== undefined);
      if (isRecorded || (isHeld && !isAnnounced)) this.#moveActivity(effect, "Scheduled");
      else if (!isAnnounced) this.#moveActivity(effect, "Scheduled", "Running");
    }
  }

  #received({ message, name, payload, key, position }: CarriedEvent): void {
    this.#said({ type: "EventReceived", message, name, payload });
    this.#unread ??= new Map();
    this.#unread.set(message, { name, ...(key !== undefined && { key }), at: this.at });
    if (key !== undefined && position !== undefined) this.#told({ name, key, position, at: this.at });
  }

  #told(publication: LastPublication): void {
    const { name, key, position } = publication;
    if (position <= this.lastPosition(name, key)) return;
    this.#publications ??= new Map();
    const place = publicationKey(name, key);
    // The last one told comes last.
    this.#publications.delete(place);
    this.#publications.set(place, publication);
  }

  #compensationStarted({ effect, order, compensations, failure }: Extract<Command, { type: "CompensationStarted" }>): void {
    this.#compensations ??= new OpenCompensations();
    this.#compensations.started(effect, order, compensations);
    if (effect !== ofRun) return;
    this.#move("Compensating");
    this.compensating = failure;
  }

  #moveActivity(effect: EffectId, ...states: readonly ActivityState[]): OpenActivity {
    const activity = this.#activities?.get(effect);
    if (activity === undefined) throw new InvalidTransition(`activity ${effect}`, "closed", states[0] ?? "");
    for (const state of states) activity.state = moveActivity(effect, activity.state, state);
    return activity;
  }

  #activityScheduled({ effect, name, input, semantics, queue, priority }: Extract<Command, { type: "ActivityScheduled" }>): void {
    this.#activities ??= new Map();
    const activity: OpenActivity = { name, input, scheduledAt: this.at, state: "Created", attempt: 1, losses: 0 };
    const isPlain = semantics === undefined && queue === undefined && priority === undefined;
    const said = {
      ...(semantics !== undefined && { semantics }),
      ...(queue !== undefined && { queue }),
      ...(priority !== undefined && { priority }),
    };
    this.#activities.set(effect, isPlain ? activity : { ...activity, ...said });
    if (semantics === "atMostOnce" && queue === undefined) this.#moveActivity(effect, "Ready", "Scheduled");
    else this.#moveActivity(effect, "Ready", "Scheduled", "Running");
  }

  #attemptLost({ effect, cause, heartbeat }: Extract<Incoming, { type: "AttemptLost" }>): void {
    const activity = this.#moveActivity(effect, "Lost");
    activity.attemptAt = this.at;
    if (heartbeat !== undefined) activity.heartbeat = heartbeat;
    if (cause === "shutdown") {
      this.#moveActivity(effect, "Scheduled");
      return;
    }
    activity.losses += 1;
    const bound = activity.queue === undefined ? announcedLosses : workerLossLimit;
    // One that is to run once at most is not made again.
    if (activity.losses < bound && activity.semantics !== "atMostOnce") this.#moveActivity(effect, "Scheduled", "Running");
  }

  #attemptStarted(fact: Extract<Incoming, { type: "AttemptStarted" }>): void {
    const before = this.#activities?.get(fact.effect)?.state;
    const activity =
      before === "Scheduled" ? this.#moveActivity(fact.effect, "Running") : this.#moveActivity(fact.effect, "Scheduled", "Running");
    if (before === "Retrying") activity.attemptAt = this.at;
    activity.attempt = fact.attempt;
  }

  #activityFailed(fact: ActivityFailed): void {
    const ended = fact.failure.name === "TimeoutError" ? "TimedOut" : "Failed";
    if (fact.paused === true) {
      this.#activityPaused(fact, ended);
      return;
    }
    if (fact.retryAt === undefined) {
      this.#resume();
      this.#moveActivity(fact.effect, ended);
      this.#activities?.delete(fact.effect);
      return;
    }
    const activity = this.#moveActivity(fact.effect, ended, "Retrying");
    activity.retryAt = fact.retryAt;
    activity.lastFailure = fact.failure;
    activity.previousDelay = Math.max(0, fact.retryAt - this.at);
    if (fact.heartbeat !== undefined) activity.heartbeat = fact.heartbeat;
    if (!isUndoing(fact.effect)) this.retries += 1;
  }

  #activityPaused({ effect, failure, pausedUntil, heartbeat }: ActivityFailed, ended: "Failed" | "TimedOut"): void {
    const activity = this.#moveActivity(effect, ended, "Paused");
    activity.lastFailure = failure;
    if (pausedUntil !== undefined) activity.pausedUntil = pausedUntil;
    if (heartbeat !== undefined) activity.heartbeat = heartbeat;
  }

  #activityDecided({ effect, decision }: Extract<Incoming, { type: "ActivityDecided" }>): void {
    if (decision === "retry") {
      this.#renew(effect);
      return;
    }
    this.#moveActivity(effect, decision === "resolve" ? "Completed" : "Failed");
    this.#activities?.delete(effect);
  }

  /** It is tried anew; the attempt is recorded when it begins. One that was suspected of ending its process still is, and has as many losses as that takes. */
  #renew(effect: EffectId): void {
    const activity = this.#moveActivity(effect, "Scheduled");
    activity.renewed = { attempts: activity.attempt, at: this.at };
    activity.attempt += 1;
    activity.attemptAt = this.at;
    activity.losses = Math.min(activity.losses, suspectLosses);
    delete activity.pausedUntil;
    delete activity.previousDelay;
  }

  #close(fact: Extract<Command, { type: keyof typeof closedStatus }>): void {
    const status = closedStatus[fact.type];
    if (status === "Completed" || status === "Failed" || status === "CompensationFailed" || status === "ContinuedAsNew") this.#resume();
    this.#move(status);
    this.parked = undefined;
    this.paused = undefined;
    this.compensating = undefined;
    if (fact.type === "InstanceCompleted") this.outcome = { status: "Completed", output: fact.output };
    else if (fact.type === "InstanceContinuedAsNew") this.outcome = { status: "ContinuedAsNew", run: fact.run };
    else {
      const compensation = fact.type === "InstanceCompensationFailed" ? { compensation: fact.compensation } : {};
      const retriedAs = "run" in fact && fact.run !== undefined ? { retriedAs: fact.run } : {};
      const resetTo = fact.type === "InstanceTerminated" && fact.resetTo !== undefined ? { resetTo: fact.resetTo } : {};
      this.outcome = { status: status as "Failed", failure: fact.failure, ...compensation, ...retriedAs, ...resetTo };
    }
  }
}

const isGated = (admission: StartFact["admission"]): boolean => admission !== undefined && "name" in admission;

/** By the fact that closes a run. */
export const closedStatus = {
  InstanceCompleted: "Completed",
  InstanceFailed: "Failed",
  InstanceTimedOut: "TimedOut",
  InstanceCancelled: "Cancelled",
  InstanceTerminated: "Terminated",
  InstanceCompensated: "Compensated",
  InstanceCompensationFailed: "CompensationFailed",
  InstanceContinuedAsNew: "ContinuedAsNew",
} as const;

function moved(from: Status, to: Status): Status {
  if (from !== to && !instanceTransitions[from].includes(to)) throw new InvalidTransition("instance", from, to);
  return to;
}

/** What somebody says to a run. */
export type Message = Extract<Incoming, { readonly message: string }>;

const messageTypes: Readonly<Record<Message["type"], true>> = {
  EventReceived: true,
  UpdateRequested: true,
  StartReplaced: true,
  WakeRequested: true,
  ActivityDecided: true,
  CompensationDecided: true,
  CancelRequested: true,
  TerminateRequested: true,
  PauseRequested: true,
  ResumeRequested: true,
  ResetRequested: true,
};

/** Whether somebody said it to the run, rather than that something came of what the run asked for. */
export const isMessage = (fact: HistoryFact): fact is Message => fact.type in messageTypes;

/** What a message says, without its identity: two messages of one id must agree in it. */
export function messageDigest(fact: Message): string {
  switch (fact.type) {
    case "EventReceived":
      return digest(["event", fact.name, fact.payload]);
    case "UpdateRequested":
      return digest(["update", fact.name, fact.input]);
    case "StartReplaced":
      return digest(["start", startDetails(fact)]);
    case "WakeRequested":
      return digest(["wake"]);
    case "ActivityDecided":
      return digest(["activity", fact.effect, fact.attempt, fact.decision, fact.said, fact.note]);
    case "CompensationDecided":
      return digest(["compensation", fact.effect, fact.decision, fact.note]);
    case "CancelRequested":
      return digest(["cancel", fact.mode, fact.reason]);
    case "TerminateRequested":
      return digest(["terminate", fact.reason]);
    case "PauseRequested":
      return digest(["pause", fact.reason]);
    case "ResumeRequested":
      return digest(["resume"]);
    case "ResetRequested":
      return digest(["reset", fact.asked ?? fact.to, fact.reason]);
  }
}

export const foldHistory = (turns: readonly Pick<Turn, "at" | "events">[]): InstanceState => {
  const state = new InstanceState();
  for (const turn of turns) state.apply(turn);
  return state;
};
