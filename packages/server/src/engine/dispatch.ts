/**
 * Runs the attempts of activities.
 *
 * 1. An attempt begins only after the commit that records it.
 * 2. At most `concurrency` attempts run at once; the others wait in order.
 * 3. An activity whose process was lost twice is suspect: suspects run one at a time, and the attempt of one is recorded only when its turn has come, so
 *    that those that wait are not lost with the one that ends the process.
 * 4. Each attempt reports exactly one outcome, or none when it was stopped or the dispatcher was closed; what arrives later is dropped.
 */
import { ActivityError, NonRetryableError, RetryAfterError, TimeoutError, WovyrError } from "@wovyr/sdk";
import {
  type ActivityContext,
  type ActivityDefinition,
  type ActivityEffect,
  decodePayload,
  type EffectId,
  encodePayload,
  failureOf,
  type Incoming,
  isNonRetryable,
  type Log,
  milliseconds,
  type OpenActivity,
  parse,
  resolveRetry,
  resolveTimeouts,
  retryDelay,
  suspectLosses,
} from "@wovyr/sdk/internal";
import type { ActivityExecutor } from "./ports/activity-executor.ts";
import type { Clock } from "./ports/clock.ts";
import type { EngineLog } from "./ports/log.ts";
import type { Random } from "./ports/random.ts";

export type AttemptOutcome = Extract<Incoming, { type: "ActivityCompleted" | "ActivityFailed" }>;

export type Attempt = {
  readonly tenant: string;
  readonly run: string;
  readonly instanceId: string;
  readonly workflow: string;
  readonly effect: EffectId;
  readonly call: ActivityEffect<unknown>;
  readonly activity: Readonly<OpenActivity>;
  readonly report: (outcome: AttemptOutcome) => void;
};

export type DispatchOptions = {
  readonly executor: ActivityExecutor;
  /** Does what the engine itself is asked for. */
  readonly builtIn: (attempt: Attempt, input: unknown, ctx: ActivityContext) => Promise<unknown>;
  readonly clock: Clock;
  readonly random: Random;
  readonly log: EngineLog;
  readonly concurrency: number;
  readonly payloadLimit: number;
};

/** One that waits to run alone; `begin` leads to `start`. */
export type Suspect = Pick<Attempt, "run" | "effect"> & {
  readonly activity: Pick<OpenActivity, "name" | "losses">;
  readonly begin: () => void;
};

export class Dispatch {
  readonly #options: DispatchOptions;
  readonly #running = new Map<string, RunningAttempt>();
  /** Attempts that run or wait. One that was stopped while it waited is not in it any more. */
  readonly #known = new Set<string>();
  #waiting: Attempt[] = [];
  #head = 0;
  readonly #suspects: Suspect[] = [];
  /** The one whose turn it is, by key: from when it is told so until its attempt has ended. */
  #suspect: string | undefined;
  #closed = false;
  #idleWaiters: (() => void)[] = [];

  constructor(options: DispatchOptions) {
    this.#options = options;
  }

  get running(): number {
    return this.#running.size;
  }

  get waiting(): number {
    return this.#waiting.length - this.#head + this.#suspects.length;
  }

  /** When the next attempt that runs is out of time, in milliseconds since the epoch; undefined when none has a limit. */
  get nextTimeout(): number | undefined {
    let next: number | undefined;
    for (const { endsAt } of this.#running.values()) if (endsAt !== undefined && (next === undefined || endsAt < next)) next = endsAt;
    return next;
  }

  /** Whether an attempt of the effect runs or waits here. */
  has(run: string, effect: EffectId): boolean {
    return this.#known.has(attemptKey(run, effect));
  }

  start(attempt: Attempt): void {
    if (this.#closed) return;
    const key = attemptKey(attempt.run, attempt.effect);
    this.#known.add(key);
    if (key === this.#suspect) {
      this.#runAlone(attempt);
      return;
    }
    if (attempt.activity.losses >= suspectLosses) {
      this.startAlone({ ...attempt, begin: () => this.#runAlone(attempt) });
      return;
    }
    if (this.#running.size < this.#options.concurrency && this.#head >= this.#waiting.length) this.#run(attempt, () => this.#fill());
    else this.#waiting.push(attempt);
  }

  /** Lets a suspect begin when no other one runs. */
  startAlone(suspect: Suspect): void {
    if (this.#closed) return;
    this.#known.add(attemptKey(suspect.run, suspect.effect));
    this.#suspects.push(suspect);
    this.#nextSuspect();
  }

  /** Asks an attempt to stop and forgets it. */
  stop(run: string, effect: EffectId, reason: Error): void {
    const key = attemptKey(run, effect);
    this.#known.delete(key);
    const running = this.#running.get(key);
    if (running !== undefined) running.stop(reason);
    else this.#suspectEnded(key);
  }

  /** Begins no further attempt; resolves when those that run have ended. */
  drain(): Promise<void> {
    this.#closed = true;
    if (this.#running.size === 0) return Promise.resolve();
    return new Promise((resolve) => this.#idleWaiters.push(resolve));
  }

  /** Stops every attempt and begins no further one. */
  abort(reason: Error): void {
    this.#closed = true;
    this.forget(reason);
  }

  /** Stops every attempt, and forgets those that wait. */
  forget(reason: Error): void {
    this.#waiting = [];
    this.#head = 0;
    this.#suspects.length = 0;
    this.#known.clear();
    for (const attempt of [...this.#running.values()]) attempt.stop(reason);
    this.#suspect = undefined;
  }

  #fill(): void {
    while (!this.#closed && this.#running.size < this.#options.concurrency) {
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
      this.#run(next, () => this.#fill());
    }
  }

  #nextSuspect(): void {
    if (this.#suspect !== undefined || this.#closed) return;
    const next = this.#suspects.shift();
    if (next === undefined) return;
    const key = attemptKey(next.run, next.effect);
    if (!this.#known.has(key)) {
      this.#nextSuspect();
      return;
    }
    this.#suspect = key;
    this.#options.log.warn("an activity that lost its process before runs alone", {
      activity: next.activity.name,
      run: next.run,
      losses: next.activity.losses,
    });
    next.begin();
  }

  #runAlone(attempt: Attempt): void {
    this.#run(attempt, () => this.#suspectEnded(attemptKey(attempt.run, attempt.effect)));
  }

  #suspectEnded(key: string): void {
    if (this.#suspect !== key) return;
    this.#suspect = undefined;
    this.#nextSuspect();
  }

  #run(attempt: Attempt, then: () => void): void {
    const key = attemptKey(attempt.run, attempt.effect);
    if (!this.#known.has(key)) {
      then();
      return;
    }
    const running = new RunningAttempt(attempt, this.#options, () => {
      if (this.#running.get(key) === running) {
        this.#running.delete(key);
        this.#known.delete(key);
      }
      then();
      if (this.#running.size > 0) return;
      const waiters = this.#idleWaiters;
      this.#idleWaiters = [];
      for (const tell of waiters) tell();
    });
    this.#running.set(key, running);
    running.begin();
  }
}

const attemptKey = (run: string, effect: EffectId) => `${run}/${effect}`;

class AttemptContext implements ActivityContext {
  readonly idempotencyKey: string;
  readonly attempt: number;
  readonly instanceId: string;
  readonly #running: RunningAttempt;

  constructor(running: RunningAttempt, idempotencyKey: string, attempt: number, instanceId: string) {
    this.#running = running;
    this.idempotencyKey = idempotencyKey;
    this.attempt = attempt;
    this.instanceId = instanceId;
  }

  get signal(): AbortSignal {
    return this.#running.signal;
  }

  get log(): Log {
    return this.#running.log;
  }
}

class RunningAttempt {
  /** When its time is over; undefined when it has no limit. */
  endsAt: number | undefined;
  readonly #attempt: Attempt;
  readonly #options: DispatchOptions;
  readonly #ended: () => void;
  #controller: AbortController | undefined;
  #stopReason: Error | undefined;
  #over = false;
  #cancelTimer: (() => void) | undefined;

  constructor(attempt: Attempt, options: DispatchOptions, ended: () => void) {
    this.#attempt = attempt;
    this.#options = options;
    this.#ended = ended;
  }

  begin(): void {
    try {
      this.#armTimeout();
      const { activity } = this.#attempt;
      const result = this.#options.executor.execute(this.#definition(), decodePayload(activity.input), this.#context());
      if (isPromise(result))
        result.then(
          (value) => this.#completed(value),
          (error) => this.#failed(error),
        );
      else this.#completed(result);
    } catch (error) {
      this.#failed(error);
    }
  }

  stop(reason: Error): void {
    this.#stopReason = reason;
    this.#end(undefined);
    this.#controller?.abort(reason);
  }

  /** Made when it is first asked for: most activities never do. */
  get signal(): AbortSignal {
    this.#controller ??= new AbortController();
    if (this.#stopReason !== undefined && !this.#controller.signal.aborted) this.#controller.abort(this.#stopReason);
    return this.#controller.signal;
  }

  get log(): Log {
    const { run, instanceId, activity, workflow } = this.#attempt;
    const about = { workflow, instance: instanceId, run, activity: activity.name, attempt: activity.attempt };
    const { log } = this.#options;
    return {
      debug: (message, data) => log.debug(message, { ...about, ...data }),
      info: (message, data) => log.info(message, { ...about, ...data }),
      warn: (message, data) => log.warn(message, { ...about, ...data }),
      error: (message, data) => log.error(message, { ...about, ...data }),
    };
  }

  #definition(): ActivityDefinition {
    const { definition } = this.#attempt.call;
    if (definition.builtIn === undefined) return definition;
    return { ...definition, run: (input, ctx) => this.#options.builtIn(this.#attempt, input, ctx) };
  }

  #context(): ActivityContext {
    const { run, effect, instanceId, activity } = this.#attempt;
    return new AttemptContext(this, attemptKey(run, effect), activity.attempt, instanceId);
  }

  #armTimeout(): void {
    const { call, activity } = this.#attempt;
    if (call.definition.timeout === undefined && call.options.timeout === undefined) return;
    const limits = resolveTimeouts(call.definition.timeout, call.options.timeout);
    const now = this.#options.clock.now();
    const ends: { at: number; error: TimeoutError }[] = [];
    if (limits.startToClose !== undefined)
      ends.push({
        at: now + limits.startToClose,
        error: new TimeoutError(
          `attempt ${activity.attempt} of activity "${activity.name}" took longer than startToClose, ${limits.startToClose} ms`,
          "startToClose",
        ),
      });
    if (limits.scheduleToClose !== undefined)
      ends.push({
        at: activity.scheduledAt + limits.scheduleToClose,
        error: new TimeoutError(
          `activity "${activity.name}" took longer than scheduleToClose, ${limits.scheduleToClose} ms over all attempts`,
          "scheduleToClose",
        ),
      });
    ends.sort((a, b) => a.at - b.at);
    const first = ends[0];
    if (first === undefined) return;
    this.endsAt = first.at;
    this.#cancelTimer = this.#options.clock.wakeAt(first.at, () => {
      this.#stopReason = first.error;
      this.#failed(first.error);
      this.#controller?.abort(first.error);
    });
  }

  #completed(value: unknown): void {
    if (this.#over) return;
    const { call, effect, activity } = this.#attempt;
    let output: string;
    try {
      const what = `output of activity "${activity.name}"`;
      output = encodePayload(parse(call.definition.output, value, what, "INVALID_OUTPUT"), { limit: this.#options.payloadLimit, what });
    } catch (error) {
      this.#failed(error);
      return;
    }
    this.#end({
      type: "ActivityCompleted",
      effect,
      attempt: activity.attempt,
      output,
    });
  }

  #failed(error: unknown): void {
    if (this.#over) return;
    const { effect, activity } = this.#attempt;
    const retryAt = this.#retryAt(error);
    this.#end({
      type: "ActivityFailed",
      effect,
      attempt: activity.attempt,
      failure: failureOf(error),
      ...(retryAt !== undefined && { retryAt }),
    });
  }

  /** When the next attempt is due; undefined when this was the last. */
  #retryAt(error: unknown): number | undefined {
    const { call, activity } = this.#attempt;
    const policy = resolveRetry(call.definition.retry, call.options.retry);
    if (activity.attempt >= policy.maxAttempts || isFinal(error)) return undefined;
    const now = this.#options.clock.now();
    const at =
      error instanceof RetryAfterError ? afterOf(error, now) : now + retryDelay(policy, activity.attempt, this.#options.random.fraction());
    const limits = resolveTimeouts(call.definition.timeout, call.options.timeout);
    if (limits.scheduleToClose !== undefined && at >= activity.scheduledAt + limits.scheduleToClose) return undefined;
    return at;
  }

  #end(outcome: AttemptOutcome | undefined): void {
    if (this.#over) return;
    this.#over = true;
    this.#cancelTimer?.();
    this.#ended();
    if (outcome !== undefined) this.#attempt.report(outcome);
  }
}

/** What no further attempt can mend: the author said so, or the value cannot be stored, or the whole time is over. */
function isFinal(error: unknown): boolean {
  if (error instanceof TimeoutError) return error.timeout === "scheduleToClose";
  if (error instanceof NonRetryableError || isNonRetryable(error)) return true;
  if (error instanceof ActivityError) return false;
  return (
    error instanceof WovyrError &&
    (error.code === "PAYLOAD_TOO_LARGE" || error.code === "PAYLOAD_UNSERIALIZABLE" || error.code === "INVALID_OUTPUT")
  );
}

function afterOf(error: RetryAfterError, now: number): number {
  return error.after instanceof Date ? Math.max(now, error.after.getTime()) : now + milliseconds(error.after, "RetryAfterError.after");
}

function isPromise(value: unknown): value is PromiseLike<unknown> {
  return typeof value === "object" && value !== null && "then" in value && typeof value.then === "function";
}
