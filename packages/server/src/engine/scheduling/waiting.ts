/**
 * The attempts that wait for something here, in the order of the strategy.
 *
 * 1. A strategy that throws, or that does not give back what it was given, is given up: those that wait are taken in the order in which they came from then
 *    on. The engine goes on.
 */
import { type Attempt, limitsOf } from "../attempt.ts";
import type { Clock } from "../ports/clock.ts";
import type { EngineLog } from "../ports/log.ts";
import { fifo } from "./fifo.ts";
import type { SchedulingQueue, SchedulingStrategy, WaitingAttempt } from "./strategy.ts";

/** An attempt that waits; a strategy sees no more of it than it may. */
class Waiting implements WaitingAttempt {
  readonly #attempt: Attempt;

  constructor(attempt: Attempt) {
    this.#attempt = attempt;
  }

  static attemptOf(waiting: Waiting): Attempt {
    return waiting.#attempt;
  }

  get tenant() {
    return this.#attempt.tenant;
  }

  get workflow() {
    return this.#attempt.workflow;
  }

  get instanceId() {
    return this.#attempt.instanceId;
  }

  get activity() {
    return this.#attempt.activity.name;
  }

  get priority() {
    return this.#attempt.activity.priority ?? "normal";
  }

  get since() {
    const { state, retryAt, attemptAt, scheduledAt } = this.#attempt.activity;
    return (state === "Retrying" ? retryAt : attemptAt) ?? scheduledAt;
  }

  get deadline() {
    const { call, activity, runEndsAt } = this.#attempt;
    const scheduleToClose = limitsOf(call)?.scheduleToClose;
    const ofActivity = scheduleToClose === undefined ? undefined : activity.scheduledAt + scheduleToClose;
    if (ofActivity === undefined || runEndsAt === undefined) return ofActivity ?? runEndsAt;
    return Math.min(ofActivity, runEndsAt);
  }
}

export type WaitingOptions = { readonly strategy: SchedulingStrategy; readonly clock: Clock; readonly log: EngineLog };

export class WaitingAttempts {
  readonly #options: WaitingOptions;
  #strategy: SchedulingStrategy;
  #queue: SchedulingQueue;
  /** All that wait, where the strategy is not sure to give back what it was given. */
  readonly #all: Set<Waiting> | undefined;

  constructor(options: WaitingOptions) {
    this.#options = options;
    this.#strategy = options.strategy;
    this.#all = options.strategy === fifo() ? undefined : new Set();
    this.#queue = this.#tried(() => this.#strategy.createQueue()) ?? fifo().createQueue();
  }

  get size(): number {
    return this.#all?.size ?? this.#queue.size;
  }

  add(attempt: Attempt): void {
    const waiting = new Waiting(attempt);
    if (this.#all === undefined) {
      this.#queue.add(waiting, this.#options.clock.now());
      return;
    }
    this.#all.add(waiting);
    this.#tried(() => this.#queue.add(waiting, this.#options.clock.now()));
  }

  take(): Attempt | undefined {
    const all = this.#all;
    if (all === undefined) {
      const next = this.#queue.take(this.#options.clock.now());
      return next && Waiting.attemptOf(next as Waiting);
    }
    if (all.size === 0) return undefined;
    return Waiting.attemptOf(this.#tried(() => this.#taken(all)) ?? this.#taken(all));
  }

  clear(): void {
    this.#all?.clear();
    this.#queue = this.#tried(() => this.#strategy.createQueue()) ?? fifo().createQueue();
  }

  #taken(all: Set<Waiting>): Waiting {
    const next = this.#queue.take(this.#options.clock.now()) as Waiting | undefined;
    if (next === undefined || !all.delete(next)) throw new Error("take() did not give one that waits");
    return next;
  }

  /** Undefined when the strategy has been given up over it. */
  #tried<T>(work: () => T): T | undefined {
    try {
      return work();
    } catch (error) {
      this.#giveUp(error);
      return undefined;
    }
  }

  #giveUp(error: unknown): void {
    const { clock, log } = this.#options;
    log.error(`scheduling strategy "${this.#strategy.name}" does not work: first in, first out from now on`, { error });
    this.#strategy = fifo();
    this.#queue = this.#strategy.createQueue();
    for (const waiting of this.#all ?? []) this.#queue.add(waiting, clock.now());
  }
}
