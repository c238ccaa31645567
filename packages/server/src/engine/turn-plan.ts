/**
 * What the facts of one turn mean outside the run: rows to write with them, and work to start or stop once they are durable.
 *
 * 1. Built fact by fact, each before it is folded into the run's state, so that what a fact closes can still be looked up.
 * 2. What a turn both starts and closes leaves no trace outside.
 */
import type {
  Closing,
  EffectId,
  Failure,
  HistoryFact,
  Incoming,
  InstanceState,
  OpenActivity,
  OpenChild,
  OpenWait,
} from "@wovyr/sdk/internal";
import type { DeadLetterWrite } from "./ports/store.ts";

type ActivityFailed = Extract<HistoryFact, { type: "ActivityFailed" }>;
/** A child that is to be created. */
export type ChildToStart = Omit<OpenChild, "onParentClose"> & { readonly effect: EffectId };

/** A fact for another run. */
export type Send = {
  readonly run: string;
  readonly id: string;
  readonly message: string;
  readonly fact: Incoming;
};

/** Work that was given up; its failure is not encoded yet. */
export type GivenUp = Omit<DeadLetterWrite, "failure"> & { readonly failure: Failure };

export const retryTimer = (effect: EffectId): EffectId => `${effect}!retry`;
const retrySuffix = "!retry";

/** The activity whose retry a timer row starts; undefined for a timer of the workflow. */
export const retriedEffect = (timer: EffectId): EffectId | undefined =>
  timer.endsWith(retrySuffix) ? timer.slice(0, -retrySuffix.length) : undefined;

const closeTimer = (effect: EffectId): EffectId => `${effect}!close`;
const closeSuffix = "!close";

/** The paused activity whose time a timer row ends; undefined for any other timer. */
export const pausedEffect = (timer: EffectId): EffectId | undefined =>
  timer.endsWith(closeSuffix) ? timer.slice(0, -closeSuffix.length) : undefined;

const noEntries: ReadonlyMap<never, never> = new Map<never, never>();
const nothing: readonly never[] = [];

export class TurnPlan {
  #attempts: Map<EffectId, number> | undefined;
  #stopped: EffectId[] | undefined;
  /** How transactional steps stood before the turn; undefined: not at all. */
  #stepsBefore: Map<EffectId, Readonly<OpenActivity> | undefined> | undefined;
  #abandoned: Map<EffectId, Readonly<OpenActivity>> | undefined;
  #timers: Map<EffectId, number> | undefined;
  #timersDone: Set<EffectId> | undefined;
  #children: Map<EffectId, ChildToStart> | undefined;
  #waits: Map<EffectId, OpenWait> | undefined;
  #waitsDone: EffectId[] | undefined;
  /** Events and keys of which the turn was told publications. */
  #publications: Set<string> | undefined;
  #tasksDone: Set<EffectId> | undefined;
  #sends: Send[] | undefined;
  #deadLetters: Map<EffectId, GivenUp> | undefined;
  #deadLettersDone: Set<EffectId> | undefined;
  closing: Closing | undefined;
  /** Set when the run takes steps again: what comes again by itself is seen when it is loaded, and what was kept for it while it was parked. */
  reopens = false;
  /** Set when another run takes the place of this one. */
  reset: Extract<Incoming, { type: "ResetRequested" }> | undefined;
  attributesChanged = false;
  readonly #run: string;

  constructor(run: string) {
    this.#run = run;
  }

  /** Attempts to start, by effect. */
  get attempts(): ReadonlyMap<EffectId, number> {
    return this.#attempts ?? noEntries;
  }

  /** Activities to ask to stop. */
  get stopped(): readonly EffectId[] {
    return this.#stopped ?? nothing;
  }

  /** Transactional steps of turns before that the run no longer waits for, as they stood before this one. */
  get abandoned(): ReadonlyMap<EffectId, Readonly<OpenActivity>> {
    return this.#abandoned ?? noEntries;
  }

  /** When new timers are due. */
  get timers(): ReadonlyMap<EffectId, number> {
    return this.#timers ?? noEntries;
  }

  get timersDone(): Iterable<EffectId> {
    return this.#timersDone ?? nothing;
  }

  get children(): ReadonlyMap<EffectId, ChildToStart> {
    return this.#children ?? noEntries;
  }

  /** Waits for events that the turn leaves open, and those that look for kept publications once more. */
  get waits(): ReadonlyMap<EffectId, OpenWait> {
    return this.#waits ?? noEntries;
  }

  /** Waits of turns before that are over. */
  get waitsDone(): readonly EffectId[] {
    return this.#waitsDone ?? nothing;
  }

  get endsTasks(): boolean {
    return this.#tasksDone !== undefined;
  }

  /** Effects whose tasks no worker is to take any more. */
  get tasksDone(): Iterable<EffectId> {
    return this.#tasksDone ?? nothing;
  }

  get sends(): readonly Send[] {
    return this.#sends ?? nothing;
  }

  get deadLetters(): Iterable<GivenUp> {
    return this.#deadLetters?.values() ?? nothing;
  }

  get deadLettersDone(): Iterable<EffectId> {
    return this.#deadLettersDone ?? nothing;
  }

  /** `state` is the run's before the fact. */
  add(fact: HistoryFact, state: InstanceState): void {
    switch (fact.type) {
      case "InstanceStarted":
        this.attributesChanged = fact.attributes !== undefined;
        return;
      case "ActivityScheduled":
        if (fact.semantics === "transactional") this.#stepBefore(fact.effect, undefined);
        this.#attempt(fact.effect, 1);
        return;
      case "AttemptStarted":
        this.#noteStep(fact.effect, state);
        this.#attempt(fact.effect, fact.attempt);
        if (state.activities.get(fact.effect)?.state === "Retrying") this.#endTimer(retryTimer(fact.effect));
        return;
      case "AttemptLost":
        this.#noteStep(fact.effect, state);
        if (fact.cause === "crash") this.#attempt(fact.effect, fact.attempt);
        else this.#attempts?.delete(fact.effect);
        return;
      case "ActivityFailed":
        this.#noteStep(fact.effect, state);
        this.#activityFailed(fact, state);
        return;
      case "ActivityDecided":
        this.#noteStep(fact.effect, state);
        this.#endPause(fact.effect, state);
        if (fact.decision !== "retry") this.#over(fact.effect, state);
        else if (!state.held) this.#attempt(fact.effect, fact.attempt + 1);
        return;
      case "ActivityCompleted":
        this.#over(fact.effect, state);
        return;
      case "TimerStarted":
        this.#startTimer(fact.effect, fact.due);
        return;
      case "TimerFired":
        this.#endTimer(fact.effect);
        return;
      case "WakeRequested":
        for (const [effect, { purpose }] of state.timers) if (purpose === "sleep") this.#endTimer(effect);
        return;
      case "ChildStarted":
        this.#children ??= new Map();
        this.#children.set(fact.effect, fact);
        return;
      case "EffectCancelled":
        this.#cancelled(fact.effect, state);
        return;
      case "AttributesChanged":
        this.attributesChanged = true;
        return;
      case "Parked":
        if (!state.held) this.#endTimers(state);
        return;
      case "PauseRequested":
        if (!state.held) this.#endTimers(state);
        this.reopens = false;
        return;
      case "ResumeRequested":
        if (!state.held) return;
        if (state.parked === undefined) this.#startTimers(state);
        this.reopens = true;
        return;
      case "Resumed":
        this.#startTimers(state);
        return;
      case "ResetRequested":
        this.reset = fact;
        return;
      case "Forked":
      case "Imported":
        this.#beginAgain(fact, state);
        return;
      case "InstanceCompleted":
      case "InstanceFailed":
      case "InstanceTimedOut":
      case "InstanceCancelled":
      case "InstanceTerminated":
      case "InstanceCompensated":
      case "InstanceCompensationFailed":
      case "InstanceContinuedAsNew":
        this.closing = fact;
        for (const effect of state.activities.keys()) this.#endTask(effect, state);
        return;
      case "EventAwaited":
        this.#wait(fact.effect, fact);
        return;
      case "ChildCancelRequested":
        this.#compensateChild(fact, state);
        return;
      case "CompensationStarted":
        // One that was given up while it was stuck is begun anew.
        for (const { effect } of fact.compensations) if (state.compensations.get(effect)?.state === "stuck") this.#endDeadLetter(effect);
        return;
      case "CompensationStuck":
        this.#compensationStuck(fact, state);
        return;
      case "CompensationDecided":
        this.#endDeadLetter(fact.effect);
        return;
      case "EventReceived":
        this.#told(fact);
        return;
      case "EventConsumed":
        this.#endWait(fact.effect, state);
        return;
      case "StartReplaced":
        this.attributesChanged ||= fact.attributes !== state.attributes;
        return;
      case "AdmissionDecided":
      case "UpdateRequested":
      case "UpdateCompleted":
      case "UpdateFailed":
      case "ConditionAwaited":
      case "ConditionMet":
      case "Patched":
      case "ChildCompleted":
      case "ChildFailed":
      case "ChildRejected":
      case "CancelRequested":
      case "TerminateRequested":
      case "SideEffectRecorded":
      case "CompensationCompleted":
      case "CompensationFailed":
      case "VariablesChanged":
        return;
      default:
        fact satisfies never;
    }
  }

  /** The turn is complete. A wait that wanted none of the publications that it was shown looks for more: it is shown some at a time. */
  end(state: InstanceState): void {
    if (this.#publications === undefined) return;
    for (const [effect, wait] of state.waits)
      if (wait.key !== undefined && this.#publications.has(`${wait.name} ${wait.key}`)) this.#wait(effect, wait);
  }

  #noteStep(effect: EffectId, state: InstanceState): void {
    const activity = state.activities.get(effect);
    if (activity?.semantics === "transactional") this.#stepBefore(effect, { ...activity });
  }

  #stepBefore(effect: EffectId, activity: Readonly<OpenActivity> | undefined): void {
    this.#stepsBefore ??= new Map();
    if (!this.#stepsBefore.has(effect)) this.#stepsBefore.set(effect, activity);
  }

  #abandon(effect: EffectId, state: InstanceState): void {
    this.#noteStep(effect, state);
    const before = this.#stepsBefore?.get(effect);
    if (before === undefined) return;
    this.#abandoned ??= new Map();
    this.#abandoned.set(effect, before);
  }

  /** It has come to something, and not always by an attempt that ran here: one that waits for its place is not to begin. */
  #over(effect: EffectId, state: InstanceState): void {
    if (this.#attempts?.delete(effect) === true || state.activities.get(effect)?.state !== "Running") this.#stop(effect);
  }

  #stop(effect: EffectId): void {
    this.#stopped ??= [];
    this.#stopped.push(effect);
  }

  #endTask(effect: EffectId, state: InstanceState): void {
    if (state.activities.get(effect)?.queue === undefined) return;
    this.#tasksDone ??= new Set();
    this.#tasksDone.add(effect);
  }

  #send(send: Send): void {
    this.#sends ??= [];
    this.#sends.push(send);
  }

  #attempt(effect: EffectId, attempt: number): void {
    this.#attempts ??= new Map();
    this.#attempts.set(effect, attempt);
  }

  #startTimer(effect: EffectId, due: number): void {
    this.#timers ??= new Map();
    this.#timers.set(effect, due);
  }

  #timerDone(effect: EffectId): void {
    this.#timersDone ??= new Set();
    this.#timersDone.add(effect);
  }

  #endTimer(effect: EffectId): void {
    if (this.#timers?.delete(effect) !== true) this.#timerDone(effect);
  }

  #wait(effect: EffectId, { name, key }: OpenWait): void {
    this.#waits ??= new Map();
    this.#waits.set(effect, { name, ...(key !== undefined && { key }) });
  }

  #endWait(effect: EffectId, state: InstanceState): void {
    if (this.#waits?.delete(effect) === true || !state.waits.has(effect)) return;
    this.#waitsDone ??= [];
    this.#waitsDone.push(effect);
  }

  #told({ name, key, position }: Extract<Incoming, { type: "EventReceived" }>): void {
    if (key === undefined || position === undefined) return;
    this.#publications ??= new Set();
    this.#publications.add(`${name} ${key}`);
  }

  #endTimers(state: InstanceState): void {
    for (const effect of openTimers(state).keys()) this.#endTimer(effect);
  }

  #startTimers(state: InstanceState): void {
    for (const [effect, due] of openTimers(state)) this.#startTimer(effect, due);
  }

  /** Whatever is open in a history that was copied here begins here. */
  #beginAgain(fact: Extract<HistoryFact, { type: "Forked" | "Imported" }>, state: InstanceState): void {
    this.attributesChanged = state.attributes !== undefined;
    if (fact.type === "Forked" || !state.held) this.#beginOpen(state);
    for (const [effect, activity] of state.activities) if (activity.state === "Paused") this.#paused(effect, activity);
    for (const [effect, wait] of state.waits) this.#wait(effect, wait);
    for (const [effect, { state: at, failure }] of state.compensations)
      if (at === "stuck" && failure !== undefined) this.#compensationStuck({ effect, failure }, state);
    if (fact.type === "Imported") return;
    for (const { effect, id, run } of fact.children ?? []) {
      const child = state.children.get(effect);
      if (child === undefined) continue;
      this.#children ??= new Map();
      this.#children.set(effect, { ...child, effect, id, run });
    }
  }

  #beginOpen(state: InstanceState): void {
    this.#startTimers(state);
    for (const [effect, { state: at, attempt }] of state.activities)
      if (at !== "Retrying" && at !== "Paused") this.#attempt(effect, attempt);
  }

  #cancelled(effect: EffectId, state: InstanceState): void {
    this.#endWait(effect, state);
    const activity = state.activities.get(effect);
    if (activity !== undefined) {
      this.#abandon(effect, state);
      this.#endTask(effect, state);
      if (activity.state === "Retrying") this.#endTimer(retryTimer(effect));
      else if (activity.state === "Paused") this.#endPause(effect, state);
      else this.#attempts?.delete(effect);
      // One that waits for its place is known to the dispatcher already.
      this.#stop(effect);
    }
    if (state.timers.has(effect)) this.#endTimer(effect);
    const child = state.children.get(effect);
    // A child that outlives its parent is started even when the turn that asks for it also ends the wait for it.
    if (child === undefined || child.onParentClose === "abandon") return;
    if (this.#children?.delete(effect) !== true) this.#closeChild(effect, child);
  }

  #activityFailed({ effect, attempt, failure, retryAt, paused, pausedUntil }: ActivityFailed, state: InstanceState): void {
    const activity = state.activities.get(effect);
    this.#endTask(effect, state);
    if (retryAt !== undefined) {
      // The timers of a run that takes no step start when it goes on.
      if (!state.held) this.#startTimer(retryTimer(effect), retryAt);
      return;
    }
    this.#over(effect, state);
    if (activity?.state === "Retrying") this.#endTimer(retryTimer(effect));
    if (activity?.state === "Paused") this.#endPause(effect, state);
    if (paused !== true || activity === undefined) return;
    this.#paused(effect, { ...activity, attempt, lastFailure: failure });
    if (pausedUntil !== undefined && !state.held) this.#startTimer(closeTimer(effect), pausedUntil);
  }

  #paused(effect: EffectId, { name, attempt, lastFailure }: Readonly<OpenActivity>): void {
    if (lastFailure === undefined) return;
    this.#deadLetters ??= new Map();
    this.#deadLetters.set(effect, { effect, kind: "activity", name, attempts: attempt, failure: lastFailure });
  }

  /** Nobody is asked about the activity any more. */
  #endPause(effect: EffectId, state: InstanceState): void {
    this.#endDeadLetter(effect);
    if (state.activities.get(effect)?.pausedUntil !== undefined) this.#endTimer(closeTimer(effect));
  }

  #compensationStuck({ effect, failure }: Omit<Extract<HistoryFact, { type: "CompensationStuck" }>, "type">, state: InstanceState): void {
    const compensation = state.compensations.get(effect);
    if (compensation === undefined) return;
    const { name, tries } = compensation;
    this.#deadLetters ??= new Map();
    this.#deadLetters.set(effect, { effect, kind: "compensation", name, attempts: tries, failure });
  }

  #endDeadLetter(effect: EffectId): void {
    if (this.#deadLetters?.delete(effect) === true) return;
    this.#deadLettersDone ??= new Set();
    this.#deadLettersDone.add(effect);
  }

  #compensateChild({ effect, reason }: Extract<HistoryFact, { type: "ChildCancelRequested" }>, state: InstanceState): void {
    const child = state.children.get(effect);
    if (child === undefined) return;
    const message = `${this.#run}:${effect}:compensate`;
    this.#send({ run: child.run, id: child.id, message, fact: { type: "CancelRequested", message, mode: "compensate", reason } });
  }

  #closeChild(effect: EffectId, child: OpenChild): void {
    const message = `${this.#run}:${effect}:close`;
    const reason = "its parent no longer waits for it";
    if (child.onParentClose === "cancel")
      this.#send({
        run: child.run,
        id: child.id,
        message,
        fact: { type: "CancelRequested", message, mode: "graceful", reason },
      });
    if (child.onParentClose === "terminate")
      this.#send({
        run: child.run,
        id: child.id,
        message,
        fact: { type: "TerminateRequested", message, reason },
      });
  }
}

/** Every timer row that an open run has: those of the workflow, of retries, and of activities that are paused. */
function openTimers(state: InstanceState): Map<EffectId, number> {
  const timers = new Map<EffectId, number>();
  for (const [effect, timer] of state.timers) timers.set(effect, timer.due);
  for (const [effect, activity] of state.activities) {
    if (activity.state === "Retrying" && activity.retryAt !== undefined) timers.set(retryTimer(effect), activity.retryAt);
    else if (activity.state === "Paused" && activity.pausedUntil !== undefined) timers.set(closeTimer(effect), activity.pausedUntil);
  }
  return timers;
}
