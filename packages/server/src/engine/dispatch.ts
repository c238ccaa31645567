/**
 * Gives the attempts of activities their places.
 *
 * 1. An attempt begins only after the commit that records it.
 * 2. At most `concurrency` attempts run at once; the others wait in the order of the scheduling strategy (scheduling/).
 * 3. An attempt that is to be recorded before it begins is announced when there is a place for it; the place is kept until the recorded one is started.
 * 4. An activity that was lost with its process after its begin had been recorded is suspect (attempts.ts): suspects run one at a time (suspects.ts).
 * 5. While an activity's circuit is open its attempts are held back and take no place (circuits.ts).
 * 6. Whatever makes an attempt begin (a place, a permit, a circuit, time), it does so only while this node may act on its shard: when the node's lease has run
 *    out, the run may be another node's. Nor does one of a shard that is being handed over (hand-over.ts). Either goes on waiting when the shard stays.
 * 7. What is limited passes its limits first (limits/), then its circuit, then it takes a place. It holds its permits until it has ended.
 * 8. The time of an attempt that waits goes on: when it is out of time it fails without having begun.
 */
import type { TimeoutKind, WovyrError } from "@wovyr/sdk";
import { type AttemptWait, CancelledError, type EffectId, failureOf, type NoRetry, type Payload, suspectLosses } from "@wovyr/sdk/internal";
import {
  type Attempt,
  type AttemptEnd,
  type AttemptSurroundings,
  attemptKey,
  limitsOf,
  outcomeUnknown,
  outOfTime,
  RunningAttempt,
} from "./attempt.ts";
import { Circuits, type CircuitTicket } from "./circuits.ts";
import { Limits } from "./limits/limits.ts";
import type { TenantLimits } from "./limits/limits-of.ts";
import type { Ownership } from "./ownership.ts";
import type { Store } from "./ports/store.ts";
import type { SchedulingStrategy } from "./scheduling/strategy.ts";
import { WaitingAttempts } from "./scheduling/waiting.ts";
import { Suspects } from "./suspects.ts";

export type DispatchOptions = AttemptSurroundings & {
  readonly concurrency: number;
  readonly scheduling: SchedulingStrategy;
  readonly tenantLimits: TenantLimits | undefined;
  readonly ownership: Pick<Ownership, "holds" | "owns">;
  readonly store: Store;
  readonly group: string;
  readonly node: string;
  /** Of permits, in milliseconds. */
  readonly lease: number;
  /** Which nodes are known to be dead. */
  readonly deadOwners: (owners: readonly string[]) => readonly string[];
};

/** A place that is kept for an attempt that was announced. */
type Kept = { readonly ticket: CircuitTicket | undefined; readonly then: () => void };

/** When an attempt that waits is out of time. */
type Expiry = { readonly at: number; readonly cancel: () => void };

export class Dispatch {
  readonly #options: DispatchOptions;
  readonly #running = new Map<string, RunningAttempt>();
  /** Attempts that run or wait. One that was stopped while it waited is not in it any more. */
  readonly #known = new Map<string, Attempt>();
  readonly #kept = new Map<string, Kept>();
  readonly #expiries = new Map<Attempt, Expiry>();
  readonly #circuits: Circuits;
  readonly #limits: Limits;
  readonly #waiting: WaitingAttempts<Attempt>;
  readonly #suspects: Suspects;
  /** Shards of which nothing begins for now, and the attempts that would have begun, for this or because the lease had run out. */
  readonly #heldShards = new Set<number>();
  #heldBack: Attempt[] = [];
  #closed = false;
  #idleWaiters: (() => void)[] = [];

  constructor(options: DispatchOptions) {
    this.#options = options;
    const { clock, log, scheduling } = options;
    this.#circuits = new Circuits({ clock, log, release: (attempts) => this.#goOn(attempts) });
    this.#suspects = new Suspects(clock, () => this.#nextSuspect());
    this.#waiting = new WaitingAttempts({ strategy: scheduling, clock, log }, (attempt) => attempt);
    this.#limits = new Limits({
      ...options,
      room: () => Math.max(0, options.concurrency - this.#running.size - this.#kept.size - this.#waiting.size),
      admitted: (attempt) => this.#admitted(attempt),
      refused: (attempt, error) => this.#refuse(attempt, error),
      lapsed: (attempt) => this.#lapsed(attempt),
    });
  }

  get running(): number {
    return this.#running.size;
  }

  /** Attempts that wait for a place. */
  get waiting(): number {
    return this.#waiting.size + this.#suspects.size;
  }

  /** Attempts that wait for a circuit, or for a limit. */
  get held(): number {
    return this.#circuits.held + this.#limits.waiting;
  }

  /** When time alone changes something here: an attempt is out of it, or a circuit lets one through. Milliseconds since the epoch. */
  get nextDue(): number | undefined {
    let next = this.#circuits.nextDue;
    const consider = (at: number | undefined) => {
      if (at !== undefined && (next === undefined || at < next)) next = at;
    };
    consider(this.#limits.nextDue);
    consider(this.#suspects.nextDue);
    for (const { endsAt } of this.#running.values()) consider(endsAt);
    for (const { at } of this.#expiries.values()) consider(at);
    return next;
  }

  /** Whether an attempt of the effect runs or waits here. */
  has(run: string, effect: EffectId): boolean {
    return this.#known.has(attemptKey(run, effect));
  }

  /** How the circuit of an activity stands, when it is not closed. */
  circuitOf(tenant: string, activity: string): ReturnType<Circuits["stateOf"]> {
    return this.#circuits.stateOf(tenant, activity);
  }

  /** What an attempt waits for; undefined when it runs, or waits for its circuit. */
  waitOf(run: string, effect: EffectId): AttemptWait | undefined {
    const key = attemptKey(run, effect);
    if (this.#running.has(key)) return undefined;
    const attempt = this.#known.get(key);
    if (attempt === undefined) return undefined;
    return this.#limits.waitOf(key) ?? (this.#circuits.holds(attempt) ? undefined : { kind: "place" });
  }

  start(attempt: Attempt): void {
    if (this.#closed) return;
    const key = attemptKey(attempt.run, attempt.effect);
    this.#known.set(key, attempt);
    if (this.#holdsBack(attempt)) return;
    const kept = this.#kept.get(key);
    if (kept !== undefined) {
      this.#kept.delete(key);
      this.#runKept(attempt, kept);
      return;
    }
    if (attempt.activity.losses >= suspectLosses) {
      this.#awaitExpiry(attempt);
      this.#suspects.add(attempt);
      return;
    }
    this.#enter(attempt);
  }

  /** Asks an attempt to stop and forgets it. */
  stop(run: string, effect: EffectId, reason: Error): void {
    const key = attemptKey(run, effect);
    const running = this.#running.get(key);
    const attempt = this.#known.get(key);
    this.#known.delete(key);
    if (running !== undefined) running.stop(reason);
    else if (attempt !== undefined) this.#gone(key, attempt);
  }

  /** Begins no further attempt; resolves when those that run have ended. */
  drain(): Promise<void> {
    this.#closed = true;
    return this.#ends(() => this.#running.size === 0);
  }

  /** Begins no further attempt of these shards; resolves when those that run have ended. */
  hold(shards: ReadonlySet<number>): Promise<void> {
    for (const shard of shards) this.#heldShards.add(shard);
    return this.#ends(() => this.runningIn(shards).length === 0);
  }

  /** Attempts of these shards begin again, those that were held back first. */
  resume(shards: ReadonlySet<number>): void {
    for (const shard of shards) this.#heldShards.delete(shard);
    this.leaseRenewed();
  }

  /** What was held back begins, unless its shard is held still. */
  leaseRenewed(): void {
    const waiting = this.#heldBack;
    this.#heldBack = [];
    for (const attempt of waiting) if (this.#isWanted(attempt)) this.start(attempt);
    this.#nextSuspect();
  }

  /** The attempts of these shards that run, with what they told last. */
  runningIn(shards: ReadonlySet<number>): readonly RunningAttempt[] {
    return [...this.#running.values()].filter(({ attempt }) => shards.has(attempt.shard));
  }

  /** The attempts of these shards that run or wait. */
  knownIn(shards: ReadonlySet<number>): readonly Attempt[] {
    return [...this.#known.values()].filter(({ shard }) => shards.has(shard));
  }

  /** Stops every attempt of these shards; returns those that ran, by key, with what they told last. None begins before `resume`. */
  stopIn(shards: ReadonlySet<number>, reason: Error): ReadonlyMap<string, Payload | undefined> {
    const ran = new Map(this.runningIn(shards).map(({ attempt: { run, effect }, details }) => [attemptKey(run, effect), details]));
    for (const { run, effect } of this.knownIn(shards)) this.stop(run, effect, reason);
    return ran;
  }

  /** Stops every attempt of these shards, and forgets those that wait. */
  forgetShards(shards: ReadonlySet<number>, reason: Error): void {
    this.stopIn(shards, reason);
    for (const shard of shards) this.#heldShards.delete(shard);
    this.#heldBack = this.#heldBack.filter((attempt) => this.#isWanted(attempt));
  }

  #ends(over: () => boolean): Promise<void> {
    if (over()) return Promise.resolve();
    return new Promise((resolve) => {
      const look = () => (over() ? resolve() : void this.#idleWaiters.push(look));
      this.#idleWaiters.push(look);
    });
  }

  #holdsBack(attempt: Attempt): boolean {
    if (!this.#heldShards.has(attempt.shard) && this.#mayAct(attempt.shard)) return false;
    this.#heldBack.push(attempt);
    this.#awaitExpiry(attempt);
    return true;
  }

  #mayAct(shard: number): boolean {
    const { ownership } = this.#options;
    return ownership.holds && ownership.owns(shard);
  }

  /** Stops every attempt and begins no further one. Returns those that ran, with what they told last. */
  abort(reason: Error): ReadonlyMap<string, Payload | undefined> {
    this.#closed = true;
    const ran = new Map([...this.#running].map(([key, { details }]) => [key, details]));
    this.forget(reason);
    return ran;
  }

  /** Gives up the permits of this node, when nothing runs any more. */
  release(): Promise<void> {
    return this.#limits.release();
  }

  /** Stops every attempt, and forgets those that wait. */
  forget(reason: Error): void {
    this.#heldBack = [];
    this.#heldShards.clear();
    this.#waiting.clear();
    this.#limits.forget();
    this.#suspects.forget();
    this.#known.clear();
    this.#kept.clear();
    for (const { cancel } of this.#expiries.values()) cancel();
    this.#expiries.clear();
    this.#circuits.forget();
    for (const attempt of [...this.#running.values()]) attempt.stop(reason);
  }

  // ── places ─────────────────────────────────────────────────────────────────────────────────────────────

  get #hasPlace(): boolean {
    return this.#running.size + this.#kept.size < this.#options.concurrency;
  }

  #isWanted(attempt: Attempt): boolean {
    return this.#known.get(attemptKey(attempt.run, attempt.effect)) === attempt;
  }

  /** It is to pass its limits, and waits for a place then. */
  #enter(attempt: Attempt): void {
    if (!this.#limits.applyTo(attempt)) {
      this.#queue(attempt);
      return;
    }
    this.#awaitExpiry(attempt);
    this.#limits.admit(attempt);
  }

  #queue(attempt: Attempt): void {
    if (this.#hasPlace && this.#waiting.size === 0) {
      this.#admit(attempt);
      return;
    }
    this.#waiting.add(attempt);
    this.#awaitExpiry(attempt);
  }

  readonly #fill = (): void => {
    while (!this.#closed && this.#hasPlace) {
      const next = this.#waiting.take();
      if (next === undefined) {
        this.#limits.roomMade();
        return;
      }
      if (this.#isWanted(next)) this.#admit(next);
    }
  };

  /** It has passed its limits. */
  #admitted(attempt: Attempt): void {
    if (this.#closed || !this.#isWanted(attempt)) return;
    const key = attemptKey(attempt.run, attempt.effect);
    if (!this.#suspects.isAlone(key)) this.#queue(attempt);
    else if (!this.#holdsBack(attempt)) this.#place(attempt, noTicket, () => this.#suspects.ended(key));
    else {
      this.#limits.ended(key);
      this.#suspects.ended(key);
    }
  }

  /** A limit, or what is wrong with one, is the end of an attempt, whether or not it runs. */
  #refuse(attempt: Attempt, error: WovyrError): void {
    const noRetry: NoRetry = error.code === "CONCURRENCY_LIMIT" ? "concurrencyLimit" : "permanent";
    // One that was announced may have been recorded meanwhile.
    const { run, effect, activity, report } = this.#known.get(attemptKey(attempt.run, attempt.effect)) ?? attempt;
    this.stop(run, effect, error);
    const failure = { ...failureOf(error), kind: "permanent" as const };
    report({ type: "ActivityFailed", effect, attempt: activity.attempt, failure, noRetry });
  }

  /** Its permit is not certain any more: what runs with it is stopped. It asks for another one, unless it is to run once at most. */
  #lapsed({ run, effect }: Attempt): void {
    const key = attemptKey(run, effect);
    const attempt = this.#known.get(key);
    if (attempt === undefined || !this.#running.has(key)) {
      this.#limits.ended(key);
      // One that was announced asks when it has been recorded.
      if (attempt !== undefined && !this.#kept.has(key)) this.#enter(attempt);
      return;
    }
    const { activity } = attempt;
    this.stop(run, effect, lapsedPermit());
    if (activity.semantics !== "atMostOnce") {
      this.start(attempt);
      return;
    }
    const failure = { ...failureOf(outcomeUnknown(activity, "was stopped when its permit lapsed")), kind: "infrastructure" as const };
    attempt.report({ type: "ActivityFailed", effect, attempt: activity.attempt, failure, noRetry: "outcomeUnknown" });
  }

  /** What was announced has been recorded: it runs in the place that was kept for it, unless its permits are gone. */
  #runKept(attempt: Attempt, kept: Kept): void {
    const key = attemptKey(attempt.run, attempt.effect);
    if (!this.#limits.applyTo(attempt) || this.#limits.knows(key)) {
      this.#run(attempt, kept);
      return;
    }
    if (kept.ticket !== undefined) this.#circuits.ended(kept.ticket, attempt, undefined);
    this.#enter(attempt);
    kept.then();
  }

  /** Gives an attempt a place, unless its circuit holds it back. */
  #admit(attempt: Attempt): void {
    if (this.#holdsBack(attempt)) {
      this.#limits.ended(attemptKey(attempt.run, attempt.effect));
      return;
    }
    if (attempt.call.definition.circuitBreaker === undefined) {
      this.#place(attempt, noTicket, this.#fill);
      return;
    }
    const ticket = this.#circuits.admit(attempt);
    if (ticket !== undefined) {
      this.#place(attempt, ticket, this.#fill);
      return;
    }
    this.#awaitExpiry(attempt);
    // Permits are not held for what does not work, and tokens are not saved up for when it does again.
    this.#limits.ended(attemptKey(attempt.run, attempt.effect));
  }

  /** What circuits let go on queues anew. */
  #goOn(attempts: readonly Attempt[]): void {
    if (this.#closed) return;
    for (const attempt of attempts) {
      if (!this.#isWanted(attempt)) continue;
      if (this.#limits.applyTo(attempt)) this.#limits.admit(attempt);
      else this.#waiting.add(attempt);
    }
    this.#fill();
  }

  #place(attempt: Attempt, ticket: CircuitTicket | undefined, then: () => void): void {
    this.#endExpiry(attempt);
    if (attempt.announce === undefined) {
      this.#run(attempt, { ticket, then });
      return;
    }
    this.#kept.set(attemptKey(attempt.run, attempt.effect), { ticket, then });
    attempt.announce();
  }

  /** An attempt that did not run is not to begin any more: what was kept for it is free. */
  #gone(key: string, attempt: Attempt): void {
    this.#endExpiry(attempt);
    const kept = this.#kept.get(key);
    this.#kept.delete(key);
    if (kept?.ticket !== undefined) this.#circuits.ended(kept.ticket, attempt, undefined);
    else if (attempt.call.definition.circuitBreaker !== undefined) this.#circuits.gone(attempt);
    this.#limits.ended(key);
    kept?.then();
    if (kept === undefined) this.#suspects.ended(key);
  }

  #run(attempt: Attempt, { ticket, then }: Kept): void {
    const key = attemptKey(attempt.run, attempt.effect);
    const running = new RunningAttempt(attempt, this.#options, (end) => {
      if (this.#running.get(key) === running) {
        this.#running.delete(key);
        this.#known.delete(key);
      }
      this.#ended(attempt, ticket, end);
      this.#limits.ended(key);
      then();
      if (this.#idleWaiters.length === 0) return;
      const waiters = this.#idleWaiters;
      this.#idleWaiters = [];
      for (const tell of waiters) tell();
    });
    this.#running.set(key, running);
    running.begin();
  }

  #ended(attempt: Attempt, ticket: CircuitTicket | undefined, end: AttemptEnd): void {
    if (ticket !== undefined) this.#circuits.ended(ticket, attempt, end);
    if (attempt.call.definition.timeout?.heartbeat !== undefined || attempt.call.options.timeout?.heartbeat !== undefined)
      this.#options.heartbeats.ended(attempt.run, attempt.effect);
  }

  // ── suspects ───────────────────────────────────────────────────────────────────────────────────────────

  /** More runs that were at work are about to be looked at. */
  recovering(): void {
    this.#suspects.recovering();
  }

  /** All runs that were at work have been looked at. */
  recovered(): void {
    this.#suspects.recovered();
  }

  #nextSuspect(): void {
    if (this.#closed) return;
    const next = this.#suspects.take((attempt) => this.#isWanted(attempt) && !this.#holdsBack(attempt));
    if (next === undefined) return;
    const key = attemptKey(next.run, next.effect);
    this.#options.log.warn("an activity that lost its process before runs alone", {
      activity: next.activity.name,
      run: next.run,
      losses: next.activity.losses,
    });
    if (this.#limits.applyTo(next)) this.#limits.admit(next);
    else this.#place(next, noTicket, () => this.#suspects.ended(key));
  }

  // ── time ───────────────────────────────────────────────────────────────────────────────────────────────

  /** From now on the attempt waits. */
  #awaitExpiry(attempt: Attempt): void {
    const limits = limitsOf(attempt.call);
    if (limits === undefined || this.#expiries.has(attempt)) return;
    const { activity } = attempt;
    const { scheduleToStart, scheduleToClose } = limits;
    const due = activity.state === "Retrying" ? activity.retryAt : activity.attemptAt;
    const toStart = scheduleToStart === undefined ? Number.POSITIVE_INFINITY : (due ?? activity.scheduledAt) + scheduleToStart;
    const toClose = scheduleToClose === undefined ? Number.POSITIVE_INFINITY : activity.scheduledAt + scheduleToClose;
    const at = Math.min(toStart, toClose);
    if (at === Number.POSITIVE_INFINITY) return;
    const expire = () =>
      toStart < toClose
        ? this.#expire(attempt, "scheduleToStart", scheduleToStart as number)
        : this.#expire(attempt, "scheduleToClose", scheduleToClose as number);
    this.#expiries.set(attempt, { at, cancel: this.#options.clock.wakeAt(at, expire) });
  }

  #endExpiry(attempt: Attempt): void {
    if (this.#expiries.size === 0) return;
    this.#expiries.get(attempt)?.cancel();
    this.#expiries.delete(attempt);
  }

  #expire(attempt: Attempt, timeout: TimeoutKind & ("scheduleToStart" | "scheduleToClose"), limit: number): void {
    if (!this.#isWanted(attempt)) return;
    const key = attemptKey(attempt.run, attempt.effect);
    this.#known.delete(key);
    this.#gone(key, attempt);
    const { effect, activity } = attempt;
    const failure = { ...failureOf(outOfTime(activity, timeout, limit)), kind: "timeout" as const };
    attempt.report({ type: "ActivityFailed", effect, attempt: activity.attempt, failure, noRetry: timeout });
  }
}

/** Why an attempt is stopped whose permit is gone. */
const lapsedPermit = (): CancelledError =>
  new CancelledError("the permit that the attempt ran with could not be renewed in time; it is made again");

/** For what no circuit watches. */
const noTicket: CircuitTicket | undefined = undefined;
