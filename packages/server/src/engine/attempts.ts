/**
 * How the attempts of a run get to the dispatcher, and what becomes of those that were lost.
 *
 * 1. What was lost twice, and what is to run once at most, is recorded as begun when there is a place for it, and begins then; anything else has begun when it
 *    is recorded. Until then it is not lost with its process.
 * 2. An attempt that history shows as running and that this process does not run was lost with another process. It is made again, up to a bound; unless it
 *    was to run once at most: then its outcome is unknown.
 */
import { WovyrError } from "@wovyr/sdk";
import {
  type ActivityEffect,
  announcedLosses,
  CancelledError,
  type EffectId,
  failureOf,
  type Incoming,
  type InstanceState,
  type OpenActivity,
  type Payload,
  workerLossLimit,
} from "@wovyr/sdk/internal";
import { type Attempt, type AttemptOutcome, attemptKey, limitsOf, outcomeUnknown } from "./attempt.ts";
import type { Engine } from "./engine.ts";
import type { Instance } from "./instance.ts";
import { type Mail, mailIdentity } from "./mail.ts";
import type { Heartbeat, RunAddress } from "./ports/store.ts";

const attemptLossLimit = 5;
const never = Number.POSITIVE_INFINITY;

type AttemptStarted = Extract<Incoming, { type: "AttemptStarted" }>;

export class Attempts {
  readonly #engine: Engine;

  constructor(engine: Engine) {
    this.#engine = engine;
  }

  /** A turn that asks for an attempt is durable. */
  begin(instance: Instance, effect: EffectId): void {
    const activity = instance.state.activities.get(effect);
    if (activity === undefined) return;
    if (activity.queue !== undefined) this.#queued(instance, effect, activity, activity.queue);
    else if (activity.state === "Running") this.#dispatch(instance, effect, activity, undefined);
    else if (activity.state === "Scheduled" || (activity.state === "Lost" && !isOver(activity)))
      this.announce(instance, { type: "AttemptStarted", effect, attempt: activity.attempt });
  }

  /** The task of the attempt waits for a worker; an activity whose workers were lost too often comes to its end. */
  #queued({ identity, execution }: Instance, effect: EffectId, activity: Readonly<OpenActivity>, queue: string): void {
    if (activity.state === "Running") {
      const work = execution?.leaves.get(effect)?.work;
      const limits = work?.kind === "activity" ? limitsOf(work.effect) : undefined;
      this.#engine.taskSweep.within(Math.min(limits?.scheduleToStart ?? never, limits?.scheduleToClose ?? never));
      this.#engine.taskQueues.arrived(queue);
    } else if (activity.state === "Lost" && isOver(activity))
      for (const mail of endOf(effect, activity)) this.#engine.deliver(identity, mail);
  }

  /** The attempt is recorded when there is a place for it. */
  announce(instance: Instance, fact: AttemptStarted): void {
    const { run } = instance.identity;
    const activity = instance.state.activities.get(fact.effect);
    if (activity === undefined || this.#engine.dispatch.has(run, fact.effect)) return;
    this.#dispatch(instance, fact.effect, activity, () => this.#engine.deliver(instance.identity, { fact }));
  }

  #dispatch(instance: Instance, effect: EffectId, activity: Readonly<OpenActivity>, announce: Attempt["announce"]): void {
    const leaf = instance.execution?.leaves.get(effect);
    if (leaf?.work.kind !== "activity") return;
    const { tenant, run, shard, id, workflow } = instance.identity;
    this.#engine.dispatch.start({
      tenant,
      run,
      shard,
      instanceId: id,
      workflow,
      effect,
      call: leaf.work.effect as ActivityEffect<unknown>,
      activity: { ...activity },
      workflowRetry: instance.definition?.activityRetry,
      runEndsAt: runEndsAt(instance.state),
      report: (fact) => this.#report({ tenant, run, shard }, fact),
      announce,
    });
  }

  /** A run that has ended a process in a turn finds what it is told now when it does so again: what its activities did is not done once more. */
  #report(key: RunAddress & { readonly shard: number }, fact: AttemptOutcome): void {
    const { heldMail, strikes } = this.#engine;
    if (strikes.against(key) === 0) this.#engine.deliver(key, { fact });
    else void heldMail.secured(key, fact).then((mail) => this.#engine.deliver(key, mail));
  }

  /** Whether an outcome is in the inbox of its run, or on its way there. */
  #isKept(run: string, outcome: string): boolean {
    const { revival, heldMail } = this.#engine;
    return revival.expects(run, outcome) || heldMail.isSecuring(run, outcome);
  }

  /** Whether an attempt runs or waits here, or what becomes of it is being decided. */
  #isHere(run: string, effect: EffectId): boolean {
    const { dispatch, stepOutcomes } = this.#engine;
    return dispatch.has(run, effect) || stepOutcomes.has(run, effect);
  }

  /** Whether what attempts told last may be in the store and matters: one that was lost is to be told. */
  mayHaveTold(instance: Instance): boolean {
    for (const [effect, activity] of instance.state.activities) {
      if (activity.state !== "Running" || activity.queue !== undefined) continue;
      if (this.#engine.dispatch.has(instance.identity.run, effect)) continue;
      const leaf = instance.execution?.leaves.get(effect);
      if (leaf?.work.kind === "activity" && limitsOf(leaf.work.effect)?.heartbeat !== undefined) return true;
    }
    return false;
  }

  /** What a run that comes into memory is told of attempts that died with their process. */
  lost(instance: Instance, told: readonly Heartbeat[]): Mail[] {
    const { run } = instance.identity;
    const reported = new Set(instance.mailbox.map((mail) => mailIdentity(mail.fact)));
    const mail: Mail[] = [];
    for (const { effect } of told) this.#engine.heartbeats.found(run, effect);
    for (const [effect, activity] of instance.state.activities) {
      const outcome = `outcome:${effect}:${activity.attempt}`;
      if (reported.has(outcome) || this.#isKept(run, outcome) || this.#isHere(run, effect)) continue;
      const started: AttemptStarted = { type: "AttemptStarted", effect, attempt: activity.attempt };
      const isQueued = activity.queue !== undefined;
      // A worker has it, or it waits for one: the store knows, and says so when it was lost.
      if (isQueued && activity.state === "Running") continue;
      if (activity.state === "Running") mail.push(...lossOf(effect, activity, detailsOf(effect, activity, told)));
      else if (activity.state === "Lost" && isOver(activity)) mail.push(...endOf(effect, activity));
      else if (activity.state === "Retrying" || activity.state === "Paused") continue;
      else if (!isQueued && (activity.losses >= announcedLosses || activity.semantics === "atMostOnce")) this.announce(instance, started);
      else if (activity.state === "Scheduled") mail.push({ fact: started });
    }
    return mail;
  }

  /**
   * This process gives up what it runs, of all shards or of some, in good order: `ran` are the attempts that were stopped for it, with what they told last.
   */
  release(ran: ReadonlyMap<string, Payload | undefined>, shards?: ReadonlySet<number>): void {
    for (const instance of this.#engine.table.values()) {
      const { run, shard } = instance.identity;
      if (shards?.has(shard) === false) continue;
      for (const [effect, activity] of instance.state.activities) {
        if (activity.state !== "Running" || activity.queue !== undefined) continue;
        const key = attemptKey(run, effect);
        const heartbeat = ran.get(key);
        const { attempt, semantics } = activity;
        const fact: Incoming =
          semantics === "atMostOnce" && ran.has(key)
            ? unknownOutcome(effect, activity, "was stopped when its process was shut down", heartbeat)
            : { type: "AttemptLost", effect, attempt, cause: "shutdown", ...(heartbeat !== undefined && { heartbeat }) };
        this.#engine.deliver(instance.identity, { fact });
      }
    }
  }
}

/** When the time of a run is over, where it has an end; milliseconds since the epoch. */
function runEndsAt({ start, timers }: InstanceState): number | undefined {
  if (start?.timeout === undefined) return undefined;
  for (const { purpose, due } of timers.values()) if (purpose === "run" || purpose === "execution") return due;
  return undefined;
}

/** Whether a lost activity is not tried again: what comes of it is about to be recorded. */
const isOver = ({ semantics, losses, queue }: Readonly<OpenActivity>): boolean =>
  semantics === "atMostOnce" || losses >= (queue === undefined ? attemptLossLimit : workerLossLimit);

/** What the present attempt told last. */
function detailsOf(effect: EffectId, { attempt }: Readonly<OpenActivity>, told: readonly Heartbeat[]): Payload | undefined {
  return told.find((heartbeat) => heartbeat.effect === effect && heartbeat.attempt === attempt)?.details;
}

/** A crash took the attempt with it; too many of those, and no further one is made. */
function lossOf(effect: EffectId, activity: Readonly<OpenActivity>, heartbeat: Payload | undefined): Mail[] {
  const { attempt } = activity;
  const fact: Incoming = { type: "AttemptLost", effect, attempt, cause: "crash", ...(heartbeat !== undefined && { heartbeat }) };
  const lost = { ...activity, losses: activity.losses + 1 };
  return isOver(lost) ? [{ fact }, ...endOf(effect, lost)] : [{ fact }];
}

/** What an activity comes to that is not made again after a loss. */
function endOf(effect: EffectId, activity: Readonly<OpenActivity>): Mail[] {
  if (activity.semantics === "atMostOnce")
    return [
      {
        fact: unknownOutcome(
          effect,
          activity,
          activity.queue === undefined
            ? "was lost with its process, or with the lease of its orchestrator while that could not reach the store"
            : "was lost with its worker, which died or was silent for longer than its lease",
          undefined,
        ),
      },
    ];
  const what =
    activity.queue === undefined
      ? `was running ${attemptLossLimit} times when its process died, or lost its lease`
      : `was lost ${workerLossLimit} times with its worker (queue "${activity.queue}"), which died or was silent for longer than its lease`;
  const failure = failureOf(new WovyrError(`Activity "${activity.name}" ${what}; it is not tried again.`, { code: "ATTEMPTS_LOST" }));
  const { attempt } = activity;
  return [{ fact: { type: "ActivityFailed", effect, attempt, failure: { ...failure, kind: "infrastructure" }, noRetry: "attemptsLost" } }];
}

function unknownOutcome(effect: EffectId, activity: Readonly<OpenActivity>, what: string, heartbeat: Payload | undefined): Incoming {
  const failure = { ...failureOf(outcomeUnknown(activity, what)), kind: "infrastructure" as const };
  const { attempt } = activity;
  return { type: "ActivityFailed", effect, attempt, failure, noRetry: "outcomeUnknown", ...(heartbeat !== undefined && { heartbeat }) };
}

/** Why attempts are stopped when their runs go on at another node. */
export const movedAway = (): CancelledError =>
  new CancelledError("the run goes on at another orchestrator; the attempt is made again there");

/** Why attempts are stopped when the orchestrator is. */
export const shuttingDown = (): CancelledError =>
  new CancelledError("the orchestrator is shutting down; the attempt is made again elsewhere");
