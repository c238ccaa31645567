/**
 * The attempts that wait for something here, in the order of the strategy.
 *
 * 1. A strategy that throws, or that does not give back what it was given, is given up: those that wait are taken in the order in which they came from then
 *    on. The engine goes on.
 * 2. One that is not wanted any more stays where it is until its turn comes: whoever takes it passes it over.
 */
import { type Attempt, limitsOf } from "../attempt.ts";
import type { Clock } from "../ports/clock.ts";
import type { EngineLog } from "../ports/log.ts";
import { fifo } from "./fifo.ts";
import type { SchedulingQueue, SchedulingStrategy, WaitingAttempt } from "./strategy.ts";

/** What waits, with its attempt; a strategy sees no more of it than it may. */
class Waiting<T> implements WaitingAttempt {
  readonly #item: T;
  readonly #attempt: Attempt;

  constructor(item: T, attempt: Attempt) {
    this.#item = item;
    this.#attempt = attempt;
  }

  static itemOf<T>(waiting: Waiting<T>): T {
    return waiting.#item;
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

export class WaitingAttempts<T> {
  readonly #options: WaitingOptions;
  readonly #attemptOf: (item: T) => Attempt;
  #strategy: SchedulingStrategy;
  #queue: SchedulingQueue;
  /** All that wait, where the strategy is not sure to give back what it was given. */
  readonly #all: Set<Waiting<T>> | undefined;

  constructor(options: WaitingOptions, attemptOf: (item: T) => Attempt) {
    this.#options = options;
    this.#attemptOf = attemptOf;
    this.#strategy = options.strategy;
    this.#all = options.strategy === fifo() ? undefined : new Set();
    this.#queue = this.#newQueue();
  }

  get size(): number {
    return this.#all?.size ?? this.#queue.size;
  }

  add(item: T): void {
    const waiting = new Waiting(item, this.#attemptOf(item));
    const { clock } = this.#options;
    if (this.#all === undefined) {
      this.#queue.add(waiting, clock.now());
      return;
    }
    this.#all.add(waiting);
    this.#tried(() => this.#queue.add(waiting, clock.now()));
  }

  take(): T | undefined {
    const all = this.#all;
    if (all === undefined) {
      const next = this.#queue.take(this.#options.clock.now());
      return next && Waiting.itemOf(next as Waiting<T>);
    }
    if (all.size === 0) return undefined;
    return Waiting.itemOf(this.#tried(() => this.#taken(all)) ?? this.#taken(all));
  }

  clear(): void {
    this.#all?.clear();
    this.#queue = this.#newQueue();
  }

  #newQueue(): SchedulingQueue {
    return this.#tried(() => this.#strategy.createQueue()) ?? fifo().createQueue();
  }

  #taken(all: Set<Waiting<T>>): Waiting<T> {
    const next = this.#queue.take(this.#options.clock.now()) as Waiting<T> | undefined;
    if (next === undefined || !all.delete(next)) throw new Error("take() did not give one that waits");
    return next;
  }

  /** Undefined when the strategy has been given up over it. */
  #tried<R>(work: () => R): R | undefined {
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
