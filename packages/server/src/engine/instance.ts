/**
 * One run in memory: its mailbox, its state, its execution, and the turn that is being made or saved.
 *
 * 1. At most one unsaved turn; what arrives meanwhile waits in the mailbox.
 * 2. State and execution include the unsaved turn. When it is refused both are dropped with it, and its items go back to the front of the mailbox.
 * 3. What arrives for a paused run is recorded like for any other; its code hears of it when it goes on (the execution sees to that).
 * 4. A parked run records nothing but pauses, its resumption and its end; what arrives for it is kept durable in its inbox (held-mail.ts). When it goes on,
 *    that is recorded first, so that whatever the code does then, it is in the history.
 */
import { WovyrError } from "@wovyr/sdk";
import {
  type ActivityEffect,
  announcedLosses,
  CancelledError,
  decodePayload,
  Execution,
  type ExecutionLimits,
  failureOf,
  type HistoryFact,
  type Incoming,
  InstanceState,
  isUndoing,
  type LogLine,
  type ParentLink,
  parse,
  resetReason,
  type WorkflowDefinition,
  type WorkflowGuard,
} from "@wovyr/sdk/internal";
import type { VoidTurn } from "./diagnosis.ts";
import { parkedNow } from "./held-mail.ts";
import { admissionOf } from "./limits/admission.ts";
import { comesAgain, type EndFact, isEnd, isForSuccessor, judge, type Mail, weightOf } from "./mail.ts";
import { outOfPause, pausedIfAsked, resolvedDecision } from "./paused-activity.ts";
import type { NewInstance } from "./ports/store.ts";
import { isUndecided, type RemoteAttempt } from "./remote-outcome.ts";
import { foundOutcome } from "./step-outcomes.ts";
import { pausedEffect, retriedEffect, TurnPlan } from "./turn-plan.ts";
import type { Job } from "./turns.ts";

/** A turn between its first event and its commit. */
export type OpenTurn = {
  readonly at: number;
  /** Events in history before it. */
  readonly tail: number;
  readonly facts: HistoryFact[];
  readonly plan: TurnPlan;
  /** Items that it answers: applied, known, stale or refused. */
  readonly mail: Mail[];
  readonly verdicts: ("done" | "known" | WovyrError)[];
  /** Items that have to wait until the run's code can be run again. */
  readonly held: Mail[];
};

export type InstanceIdentity = {
  readonly tenant: string;
  readonly run: string;
  readonly id: string;
  readonly shard: number;
  readonly workflow: string;
  readonly version: string;
  readonly correlationId?: string | undefined;
  readonly parent?: ParentLink | undefined;
};

/** What an instance asks of the engine around it. */
export interface InstanceHost {
  now(): number;
  /** Whether this node owns the instance at this moment. */
  mayAct(): boolean;
  /** A turn was put off because this node may not act now. */
  deferred(instance: Instance): void;
  /** A fresh one, which sorts after `after`. */
  newRunId(after?: string): string;
  readonly limits: ExecutionLimits;
  readonly group: string;
  /** Watches what workflow code calls. */
  readonly guard?: WorkflowGuard | undefined;
  eventSchema(instance: Instance, event: string): { readonly schema?: unknown } | undefined;
  /** What the run makes of what a worker says of an attempt. */
  judged(instance: Instance, fact: ActivityCompleted | ActivityFailed, attempt: RemoteAttempt): ActivityCompleted | ActivityFailed;
  /** Whether what goes to a task queue is for workers elsewhere. */
  isQueued(queue: string): boolean;
  /** An attempt is due that is to be recorded when there is a place for it: it is to be delivered again then. */
  announce(instance: Instance, attempt: Extract<Incoming, { type: "AttemptStarted" }>): void;
  /** A transactional step failed for good, or it was decided on: the item is to be delivered again, settled, when it is certain that the step was not done. */
  settle(instance: Instance, effect: string, mail: Mail): void;
  /** A turn is complete. `facts` may be empty: then nothing is to be written, only answered. */
  turnEnded(instance: Instance, turn: OpenTurn): void;
  /** The code cannot go on from what is durable: the turn is void, `failure` says why. */
  turnBroke(instance: Instance, failure: Error, turn: VoidTurn): void;
  /** An asynchronous part of the job is over. */
  jobDone(instance: Instance): void;
}

type Phase = "loading" | "idle" | "queued" | "running" | "saving" | "dropped";

export const turnMail = 10_000;
const turnWeight = 16 * 1024 * 1024;

export class Instance implements Job {
  readonly identity: InstanceIdentity;
  readonly definition: WorkflowDefinition | undefined;
  state = new InstanceState();
  execution: Execution | undefined;
  mailbox: Mail[] = [];
  /** Items that one turn takes at most. */
  mailPerTurn = turnMail;
  /** Present until the row exists. */
  create: NewInstance | undefined;
  #phase: Phase = "idle";
  #settled: (() => void)[] | undefined;
  /** Characters of history: what it roughly weighs in memory. */
  weight = 0;
  readonly #host: InstanceHost;
  #turn: OpenTurn | undefined;
  #next = 0;
  /** Where in the mailbox a parked run goes on. */
  #resumption = -1;
  #turnWeight = 0;

  constructor(identity: InstanceIdentity, definition: WorkflowDefinition | undefined, host: InstanceHost) {
    this.identity = identity;
    this.definition = definition;
    this.#host = host;
  }

  get phase(): Phase {
    return this.#phase;
  }

  set phase(phase: Phase) {
    this.#phase = phase;
    if (this.#settled === undefined || phase === "running" || phase === "saving" || phase === "loading") return;
    const waiting = this.#settled;
    this.#settled = undefined;
    for (const tell of waiting) tell();
  }

  /** Resolves when the turn that is being made is durable or void. */
  settled(): Promise<void> {
    return new Promise((resolve) => {
      this.#settled ??= [];
      this.#settled.push(resolve);
    });
  }

  newExecution(): Execution | undefined {
    const { definition } = this;
    if (definition === undefined) return undefined;
    return new Execution({
      definition,
      tenant: this.identity.tenant,
      run: this.identity.run,
      newRunId: (after) => this.#host.newRunId(after),
      limits: this.#host.limits,
      guard: this.#host.guard,
      isQueued: this.#host.isQueued,
    });
  }

  // ── the job of making one turn ─────────────────────────────────────────────────────────────────────────

  run(): boolean {
    if (this.phase !== "queued") return true;
    if (!this.#host.mayAct()) {
      this.phase = "idle";
      this.#host.deferred(this);
      return true;
    }
    this.phase = "running";
    const at = Math.max(this.#host.now(), this.state.at);
    this.#turn = {
      at,
      tail: this.state.tail,
      facts: [],
      plan: new TurnPlan(this.identity.run),
      mail: [],
      verdicts: [],
      held: [],
    };
    this.#next = 0;
    this.#resumption = this.#findResumption();
    this.#turnWeight = 0;
    this.state.beginTurn(at);
    if (this.execution !== undefined) {
      this.execution.onIdle = this.#onIdle;
      this.execution.beginTurn(at);
    }
    return this.#advance();
  }

  /** One that has not even begun goes on first and begins then. */
  #findResumption(): number {
    if (this.state.parked === undefined) return -1;
    const place = this.mailbox.findLastIndex(({ fact }) => fact.type === "Resumed");
    if (place <= 0 || this.state.start !== undefined) return place;
    this.mailbox.unshift(...this.mailbox.splice(place, 1));
    return 0;
  }

  readonly #onIdle = (): void => {
    if (this.#advance()) this.#host.jobDone(this);
  };

  stuck(): void {
    this.execution?.stuck();
    this.#advance();
  }

  /** A turn that cannot be made at all is void like any other that breaks: it must not take its neighbours with it. */
  #advance(): boolean {
    try {
      return this.#advanceTurn();
    } catch (error) {
      const turn = this.#turn;
      if (turn === undefined) throw error;
      this.#turn = undefined;
      this.#host.turnBroke(this, error as Error, { at: turn.at, facts: turn.mail.map((mail) => mail.fact) });
      return true;
    }
  }

  /** Applies items until a fiber is stepping (false) or the turn is complete (true). */
  #advanceTurn(): boolean {
    const turn = this.#turn;
    if (turn === undefined) return true;
    for (;;) {
      const { execution } = this;
      if (execution?.broken !== undefined) {
        this.#turn = undefined;
        this.#host.turnBroke(this, execution.broken, { at: turn.at, facts: turn.mail.map((mail) => mail.fact) });
        return true;
      }
      if (execution !== undefined) this.#fold(turn, execution.takeFacts());
      const mail = this.mailbox[this.#next];
      // What is said to a run that another one goes on from is for that one.
      const forAnother = mail !== undefined && isForSuccessor(this.state, mail.fact);
      if (mail === undefined || forAnother || this.#next >= this.mailPerTurn || this.#turnWeight > turnWeight) {
        // All that came in has been handled: what waits for the workflow's own state may go on.
        if (execution?.settleConditions() !== true) break;
        if (execution.busy) return false;
        continue;
      }
      this.#next += 1;
      this.#turnWeight += weightOf(mail.fact);
      if (this.#apply(turn, mail) && execution?.busy === true) return false;
    }
    this.#finish(turn);
    return true;
  }

  /** Judges one item and delivers it; true when the workflow's code was entered. */
  #apply(turn: OpenTurn, mail: Mail): boolean {
    const fact = this.#meant(mail.fact);
    if (fact.type === "AttemptStarted" && mail.fact.type === "TimerFired" && this.#awaitsPlace(fact.effect)) {
      turn.mail.push(mail);
      turn.verdicts.push("known");
      this.#host.announce(this, fact);
      return false;
    }
    const verdict = judge(this.state, fact);
    // What was published is not for this run alone: whoever published it has been answered, and it waits for a wait that it fits.
    const sent = verdict.kind === "apply" && fact.type === "EventReceived" && fact.position === undefined;
    const misfit = sent ? this.#misfit(fact) : undefined;
    if (verdict.kind === "apply" && misfit === undefined && this.#mustWait(fact)) {
      turn.held.push(mail);
      return false;
    }
    if (verdict.kind === "apply" && mail.settled !== true && this.#mayBeDone(fact) && this.#refusal(fact) === undefined) {
      this.#host.settle(this, fact.effect, { ...mail, fact });
      return false;
    }
    turn.mail.push(mail);
    if (verdict.kind === "refuse") turn.verdicts.push(verdict.error);
    else if (verdict.kind !== "apply") turn.verdicts.push("known");
    else {
      const refusal = misfit ?? this.#refusal(fact);
      turn.verdicts.push(refusal ?? "done");
      if (refusal === undefined) return this.#deliver(turn, fact);
    }
    return false;
  }

  /** The next attempt of what lost its process before, or is to run once at most, is recorded when it begins, and not when it is due. */
  #awaitsPlace(effect: string): boolean {
    const activity = this.state.activities.get(effect);
    if (activity?.state !== "Retrying" || activity.queue !== undefined) return false;
    return activity.losses >= announcedLosses || activity.semantics === "atMostOnce";
  }

  /** Whether it ends a transactional step otherwise than by an attempt, of which one may have committed all the same. */
  #mayBeDone(fact: Incoming): fact is ActivityFailed | ActivityDecided {
    const ends =
      (fact.type === "ActivityFailed" && fact.retryAt === undefined && fact.paused !== true) ||
      (fact.type === "ActivityDecided" && fact.decision !== "retry" && fact.message !== foundOutcome(fact));
    return ends && this.state.activities.get(fact.effect)?.semantics === "transactional";
  }

  /** What an item means for this run as it is now. */
  #meant(fact: Incoming): Incoming {
    switch (fact.type) {
      case "TimerFired":
        return this.#meantByTimer(fact);
      case "ActivityCompleted":
      case "ActivityFailed":
        return this.#meantByOutcome(this.#judged(fact));
      case "InstanceStarted":
        return withAdmission(withTimeouts(fact, this.definition), this.definition, this.#host.group);
      case "StartReplaced":
        return withTimeouts(fact, this.definition);
      default:
        return fact;
    }
  }

  #meantByOutcome(fact: ActivityCompleted | ActivityFailed): Incoming {
    if (fact.type === "ActivityCompleted") return fact;
    return pausedIfAsked(this.#isOverBudget(fact) ? withoutRetry(fact) : fact, this.state, this.#callOf(fact.effect), this.definition);
  }

  /** What a worker says of an attempt leaves open what follows. */
  #judged(fact: ActivityCompleted | ActivityFailed): ActivityCompleted | ActivityFailed {
    const activity = this.state.activities.get(fact.effect);
    if (activity?.queue === undefined || !isUndecided(fact)) return fact;
    const call = this.#callOf(fact.effect);
    return call === undefined ? fact : this.#host.judged(this, fact, { call, activity, workflowRetry: this.definition?.activityRetry });
  }

  /** The timer of a retry means the start of the next attempt, that of a pause the end of its activity's time. */
  #meantByTimer(fact: Extract<Incoming, { type: "TimerFired" }>): Incoming {
    const paused = pausedEffect(fact.effect);
    if (paused !== undefined) return outOfPause(paused, this.state) ?? fact;
    const effect = retriedEffect(fact.effect);
    if (effect === undefined) return fact;
    return {
      type: "AttemptStarted",
      effect,
      attempt: (this.state.activities.get(effect)?.attempt ?? 0) + 1,
    };
  }

  #callOf(effect: string): ActivityEffect<unknown> | undefined {
    const work = this.execution?.leaves.get(effect)?.work;
    return work?.kind === "activity" ? work.effect : undefined;
  }

  /** Whether the run has made as many retries as its workflow allows. What undoes is not held to it. */
  #isOverBudget({ effect, retryAt }: ActivityFailed): boolean {
    const budget = this.definition?.retryBudget;
    return retryAt !== undefined && !isUndoing(effect) && budget !== undefined && this.state.retries >= budget;
  }

  #deliver(turn: OpenTurn, fact: Incoming): boolean {
    if (this.execution === undefined) {
      this.#fold(turn, this.#withoutCode(fact));
      return false;
    }
    this.execution.deliver(this.#resolved(fact) as Incoming);
    return true;
  }

  /** A decision on an activity with the output that its schema makes of what was said, or why it does not fit. */
  #resolved(fact: Incoming): Incoming | WovyrError {
    return fact.type === "ActivityDecided" ? resolvedDecision(fact, this.#callOf(fact.effect), this.#host.limits.payload) : fact;
  }

  /** What comes of an item that needs no code. A paused run that is to go on where its code is not has to wait for that: it is parked. */
  #withoutCode(fact: Incoming): HistoryFact[] {
    const { state } = this;
    if (ends(state, fact)) return endWithoutCode(state, fact);
    if (fact.type !== "ResumeRequested" || state.paused === undefined || state.parked !== undefined) return [fact];
    return [{ type: "Parked", failure: failureOf(parkedNow(this)) }, fact];
  }

  /** Whether an item needs code that cannot be run now, or comes again when the run goes on. */
  #mustWait(fact: Incoming): boolean {
    const { execution, state } = this;
    if (ends(state, fact) || fact.type === "Parked" || fact.type === "PauseRequested" || fact.type === "ResumeRequested") return false;
    if (execution === undefined) return true;
    if (fact.type === "Forked" || this.#next <= this.#resumption) return false;
    if (state.parked !== undefined) return fact.type !== "Resumed";
    return state.paused !== undefined && comesAgain.has(fact.type);
  }

  /** Why a message is turned away before anything of it is recorded. What the code hears later is judged then. */
  #refusal(fact: Incoming): WovyrError | undefined {
    if (fact.type === "ActivityDecided") {
      const resolved = this.#resolved(fact);
      return resolved instanceof WovyrError ? resolved : undefined;
    }
    if (fact.type !== "UpdateRequested" || this.state.held) return undefined;
    const refusal = this.execution?.refusalOf(fact);
    return refusal === undefined || refusal instanceof WovyrError ? refusal : new WovyrError(refusal.message, { code: "UPDATE_REJECTED" });
  }

  /** Why an event's payload cannot be meant for this run: it does not fit the declared schema, or that of the wait that is open for it. */
  #misfit(fact: Extract<Incoming, { type: "EventReceived" }>): WovyrError | undefined {
    const known = this.#host.eventSchema(this, fact.name);
    if (known?.schema === undefined) return undefined;
    try {
      parse(known.schema as never, decodePayload(fact.payload), `payload of event "${fact.name}"`);
      return undefined;
    } catch (error) {
      return error instanceof WovyrError ? error : new WovyrError(String(error), { code: "INVALID_INPUT" });
    }
  }

  #fold(turn: OpenTurn, facts: readonly HistoryFact[]): void {
    for (const fact of facts) {
      turn.plan.add(fact, this.state);
      this.state.fold(fact);
      turn.facts.push(fact);
    }
  }

  #finish(turn: OpenTurn): void {
    if (this.execution !== undefined) {
      this.execution.endTurn();
      this.#fold(turn, this.execution.takeFacts());
    }
    turn.plan.end(this.state);
    this.state.endTurn();
    this.mailbox = this.mailbox.slice(this.#next);
    this.#turn = undefined;
    this.#host.turnEnded(this, turn);
  }

  takeLogs(): readonly LogLine[] {
    return this.execution?.takeLogs() ?? [];
  }

  /** Forgets what was made of history; the mailbox stays. */
  forget(): void {
    this.state = new InstanceState();
    this.execution = undefined;
    this.weight = 0;
  }
}

type ActivityCompleted = Extract<Incoming, { type: "ActivityCompleted" }>;
type ActivityFailed = Extract<Incoming, { type: "ActivityFailed" }>;
type ActivityDecided = Extract<Incoming, { type: "ActivityDecided" }>;
type InstanceStarted = Extract<Incoming, { type: "InstanceStarted" }>;
type StartReplaced = Extract<Incoming, { type: "StartReplaced" }>;

function withoutRetry({ retryAt: _, ...failed }: ActivityFailed): ActivityFailed {
  return { ...failed, noRetry: "retryBudget" };
}

/** The time limits of a run are what its start says, then what its workflow says; those of a chain of runs are those of its first. */
function withTimeouts<F extends InstanceStarted | StartReplaced>(fact: F, definition: WorkflowDefinition | undefined): F {
  if (definition?.timeout === undefined) return fact;
  if (fact.type === "InstanceStarted" && (fact.continuedFrom !== undefined || fact.retry !== undefined)) return fact;
  return { ...fact, timeout: { ...definition.timeout, ...fact.timeout } };
}

/** How many runs are at work at once is what the workflow says when the run is started. */
function withAdmission(fact: InstanceStarted, definition: WorkflowDefinition | undefined, group: string): InstanceStarted {
  if (definition?.concurrency === undefined) return fact;
  return { ...fact, admission: admissionOf(definition.name, definition.concurrency, fact.input, group) };
}

/** What ends a run without entering its code. One that undoes what it did is only terminated. */
const ends = (state: InstanceState, fact: Incoming): fact is EndFact =>
  isEnd(fact) && (fact.type !== "CancelRequested" || state.compensating === undefined);

/** How a run ends whose code cannot be run: everything open is closed, then it is terminated or cancelled. */
function endWithoutCode(state: InstanceState, fact: EndFact): HistoryFact[] {
  const open = [
    ...state.activities.keys(),
    ...state.timers.keys(),
    ...state.waits.keys(),
    ...state.children.keys(),
    ...state.conditions.keys(),
  ];
  const failure = failureOf(endOf(fact));
  return [
    fact,
    ...open.map((effect) => ({ type: "EffectCancelled" as const, effect })),
    ...[...state.updates.keys()].map((message) => ({ type: "UpdateFailed" as const, message, failure })),
    {
      type: fact.type === "CancelRequested" ? "InstanceCancelled" : "InstanceTerminated",
      failure,
      ...(fact.type === "ResetRequested" && { resetTo: fact.run }),
    },
  ];
}

function endOf(fact: EndFact): WovyrError {
  switch (fact.type) {
    case "CancelRequested":
      return new CancelledError(fact.reason ?? "cancelled on request");
    case "TerminateRequested":
      return new WovyrError(fact.reason ?? "terminated on request", { code: "TERMINATED" });
    case "ResetRequested":
      return new WovyrError(resetReason(fact), { code: "TERMINATED" });
  }
}
