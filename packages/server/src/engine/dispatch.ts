/**
 * Gives the attempts of activities their places.
 *
 * 1. An attempt begins only after the commit that records it.
 * 2. At most `concurrency` attempts run at once; the others wait in order.
 * 3. An attempt that is to be recorded before it begins is announced when there is a place for it; the place is kept until the recorded one is started.
 * 4. An activity whose process was lost twice is suspect: suspects run one at a time, and the attempt of one is recorded only when its turn has come, so
 *    that those that wait are not lost with the one that ends the process. Those that were lost least come first, of all that a recovery finds: a process
 *    that dies again and again does not take the same one with it.
 * 5. While an activity's circuit is open its attempts are held back and take no place (circuits.ts).
 * 6. Attempts of a shard that is being handed over do not begin (hand-over.ts): they go on waiting when it stays after all.
 * 7. The time of an attempt that waits goes on: when it is out of time it fails without having begun.
 */
import type { TimeoutKind } from "@wovyr/sdk";
import { type EffectId, failureOf, type Payload, suspectLosses } from "@wovyr/sdk/internal";
import { type Attempt, type AttemptEnd, type AttemptSurroundings, attemptKey, limitsOf, outOfTime, RunningAttempt } from "./attempt.ts";
import { Circuits, type CircuitTicket } from "./circuits.ts";

export type DispatchOptions = AttemptSurroundings & { readonly concurrency: number };

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
  #waiting: Attempt[] = [];
  #head = 0;
  readonly #suspects: Attempt[] = [];
  /** Whether all that are to run alone have been found. */
  #suspectsAreKnown = false;
  /** The one whose turn it is, by key: from when it is told so until its attempt has ended. */
  #suspect: string | undefined;
  /** Shards of which nothing begins for now, and the attempts that would have begun. */
  readonly #heldShards = new Set<number>();
  #heldBack: Attempt[] = [];
  #closed = false;
  #idleWaiters: (() => void)[] = [];

  constructor(options: DispatchOptions) {
    this.#options = options;
    const { clock, log } = options;
    this.#circuits = new Circuits({ clock, log, release: (attempts) => this.#goOn(attempts) });
  }

  get running(): number {
    return this.#running.size;
  }

  /** Attempts that wait for a place. */
  get waiting(): number {
    return this.#waiting.length - this.#head + this.#suspects.length;
  }

  /** Attempts that wait for a circuit. */
  get held(): number {
    return this.#circuits.held;
  }

  /** When time alone changes something here: an attempt is out of it, or a circuit lets one through. Milliseconds since the epoch. */
  get nextDue(): number | undefined {
    let next = this.#circuits.nextDue;
    const consider = (at: number | undefined) => {
      if (at !== undefined && (next === undefined || at < next)) next = at;
    };
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

  start(attempt: Attempt): void {
    if (this.#closed) return;
    const key = attemptKey(attempt.run, attempt.effect);
    this.#known.set(key, attempt);
    if (this.#holdsBack(attempt)) return;
    const kept = this.#kept.get(key);
    if (kept !== undefined) {
      this.#kept.delete(key);
      this.#run(attempt, kept);
      return;
    }
    if (attempt.activity.losses >= suspectLosses) {
      this.#enqueueSuspect(attempt);
      this.#awaitExpiry(attempt);
      this.#nextSuspect();
      return;
    }
    if (this.#hasPlace && this.#head >= this.#waiting.length) this.#admit(attempt);
    else this.#enqueue(attempt);
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
    if (!this.#heldShards.has(attempt.shard)) return false;
    this.#heldBack.push(attempt);
    return true;
  }

  /** Stops every attempt and begins no further one. Returns those that ran, with what they told last. */
  abort(reason: Error): ReadonlyMap<string, Payload | undefined> {
    this.#closed = true;
    const ran = new Map([...this.#running].map(([key, { details }]) => [key, details]));
    this.forget(reason);
    return ran;
  }

  /** Stops every attempt, and forgets those that wait. */
  forget(reason: Error): void {
    this.#waiting = [];
    this.#head = 0;
    this.#heldBack = [];
    this.#heldShards.clear();
    this.#suspects.length = 0;
    this.#suspectsAreKnown = false;
    this.#known.clear();
    this.#kept.clear();
    for (const { cancel } of this.#expiries.values()) cancel();
    this.#expiries.clear();
    this.#circuits.forget();
    for (const attempt of [...this.#running.values()]) attempt.stop(reason);
    this.#suspect = undefined;
  }

  // ── places ─────────────────────────────────────────────────────────────────────────────────────────────

  get #hasPlace(): boolean {
    return this.#running.size + this.#kept.size < this.#options.concurrency;
  }

  #isWanted(attempt: Attempt): boolean {
    return this.#known.get(attemptKey(attempt.run, attempt.effect)) === attempt;
  }

  #enqueue(attempt: Attempt): void {
    this.#waiting.push(attempt);
    this.#awaitExpiry(attempt);
  }

  readonly #fill = (): void => {
    while (!this.#closed && this.#hasPlace) {
      const next = this.#waiting[this.#head];
      if (next === undefined) {
        this.#waiting = [];
        this.#head = 0;
        return;
      }
      this.#head += 1;
      if (this.#head > 4_096 && this.#head * 2 > this.#waiting.length) {
        this.#waiting = this.#waiting.slice(this.#head);
        this.#head = 0;
      }
      if (this.#isWanted(next)) this.#admit(next);
    }
  };

  /** Gives an attempt a place, unless its circuit holds it back. */
  #admit(attempt: Attempt): void {
    if (this.#holdsBack(attempt)) return;
    if (attempt.call.definition.circuitBreaker === undefined) {
      this.#place(attempt, noTicket, this.#fill);
      return;
    }
    const ticket = this.#circuits.admit(attempt);
    if (ticket === undefined) this.#awaitExpiry(attempt);
    else this.#place(attempt, ticket, this.#fill);
  }

  /** What circuits let go on queues anew. */
  #goOn(attempts: readonly Attempt[]): void {
    if (this.#closed) return;
    for (const attempt of attempts) if (this.#isWanted(attempt)) this.#waiting.push(attempt);
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
    kept?.then();
  }

  #run(attempt: Attempt, { ticket, then }: Kept): void {
    const key = attemptKey(attempt.run, attempt.effect);
    const running = new RunningAttempt(attempt, this.#options, (end) => {
      if (this.#running.get(key) === running) {
        this.#running.delete(key);
        this.#known.delete(key);
      }
      this.#ended(attempt, ticket, end);
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
    this.#suspectsAreKnown = false;
  }

  /** All runs that were at work have been looked at. */
  recovered(): void {
    this.#suspectsAreKnown = true;
    this.#nextSuspect();
  }

  #enqueueSuspect(attempt: Attempt): void {
    const { losses } = attempt.activity;
    const before = this.#suspects.findLastIndex((other) => other.activity.losses <= losses);
    this.#suspects.splice(before + 1, 0, attempt);
  }

  #nextSuspect(): void {
    if (this.#suspect !== undefined || this.#closed || !this.#suspectsAreKnown) return;
    const next = this.#suspects.shift();
    if (next === undefined) return;
    if (!this.#isWanted(next) || this.#holdsBack(next)) {
      this.#nextSuspect();
      return;
    }
    const key = attemptKey(next.run, next.effect);
    this.#suspect = key;
    this.#options.log.warn("an activity that lost its process before runs alone", {
      activity: next.activity.name,
      run: next.run,
      losses: next.activity.losses,
    });
    this.#place(next, noTicket, () => this.#suspectEnded(key));
  }

  #suspectEnded(key: string): void {
    if (this.#suspect !== key) return;
    this.#suspect = undefined;
    this.#nextSuspect();
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

/** For what no circuit watches. */
const noTicket: CircuitTicket | undefined = undefined;
