/**
 * One attempt of an activity, from its begin to its outcome.
 *
 * 1. It reports exactly one outcome, or none when it was stopped. What comes later is dropped; a result that comes after the attempt was out of time is
 *    logged.
 * 2. Its time counts from when it begins, that of all attempts from when the activity was scheduled, as recorded.
 * 3. A transactional one gets its transaction here, and its output is checked and encoded before the commit: what is wrong with it rolls back.
 * 4. Whatever is wrong with its policy, its classifier or what it throws: it has an outcome.
 */
import { OutcomeUnknownError, TimeoutError, type TimeoutKind } from "@wovyr/sdk";
import {
  type ActivityContext,
  type ActivityDefinition,
  type ActivityEffect,
  type ActivityTransaction,
  type Classifier,
  checkWorks,
  classify,
  decodePayload,
  type EffectId,
  encodePayload,
  errorOf,
  type FailureKind,
  failureOf,
  type Incoming,
  type Log,
  type NoRetry,
  type OpenActivity,
  type Payload,
  parse,
  type ResolvedTimeouts,
  type RetryPolicy,
  resolveTimeouts,
  type TransactionalContext,
} from "@wovyr/sdk/internal";
import { retryOf } from "./attempt-retry.ts";
import type { Heartbeats } from "./heartbeats.ts";
import { type ActivityExecutor, inProcess } from "./ports/activity-executor.ts";
import type { Clock } from "./ports/clock.ts";
import type { EngineLog } from "./ports/log.ts";
import type { Random } from "./ports/random.ts";

export type AttemptOutcome = Extract<Incoming, { type: "ActivityCompleted" | "ActivityFailed" }>;

export type Attempt = {
  readonly tenant: string;
  readonly run: string;
  readonly shard: number;
  readonly instanceId: string;
  readonly workflow: string;
  readonly effect: EffectId;
  readonly call: ActivityEffect<unknown>;
  readonly activity: Readonly<OpenActivity>;
  /** What the workflow says of the activities that it calls. */
  readonly workflowRetry: RetryPolicy | undefined;
  /** When the time of its run is over; milliseconds since the epoch. */
  readonly runEndsAt: number | undefined;
  readonly report: (outcome: AttemptOutcome) => void;
  /** Given when it is to be recorded before it begins: called when there is a place for it, which is kept until the recorded one is started. */
  readonly announce: (() => void) | undefined;
};

export type AttemptSurroundings = {
  readonly executor: ActivityExecutor;
  /** Does what the engine itself is asked for. */
  readonly builtIn: (attempt: Attempt, input: unknown, ctx: ActivityContext) => Promise<unknown>;
  /** Runs the work of a transactional one, and resolves with its outcome. */
  readonly transaction: (attempt: Attempt, signal: AbortSignal, work: (tx: ActivityTransaction) => Promise<Payload>) => Promise<Payload>;
  readonly clock: Clock;
  readonly random: Random;
  readonly log: EngineLog;
  readonly heartbeats: Heartbeats;
  readonly payloadLimit: number;
  /** For what neither the workflow nor the activity says. */
  readonly retry: RetryPolicy | undefined;
  readonly classify: Classifier | undefined;
};

/** What an attempt came to: of what kind its failure was, that it completed, or (undefined) that it was stopped. */
export type AttemptEnd = FailureKind | "completed" | undefined;

export const attemptKey = (run: string, effect: EffectId) => `${run}/${effect}`;

/** The limits of a call; undefined when it has none. */
export function limitsOf({ definition, options }: ActivityEffect<unknown>): Readonly<ResolvedTimeouts> | undefined {
  if (definition.timeout === undefined && options.timeout === undefined) return undefined;
  return resolveTimeouts(definition.timeout, options.timeout);
}

/** What an attempt that is out of time fails with; where the time of all attempts is over, the last failure before is its cause. */
export function outOfTime(
  { name, attempt, lastFailure }: Pick<OpenActivity, "name" | "attempt" | "lastFailure">,
  timeout: TimeoutKind,
  limit: number,
): TimeoutError {
  const what = `attempt ${attempt} of activity "${name}"`;
  switch (timeout) {
    case "startToClose":
      return new TimeoutError(`${what} took longer than startToClose, ${limit} ms`, timeout, limit);
    case "heartbeat":
      return new TimeoutError(`${what} gave no sign of life within its heartbeat timeout, ${limit} ms`, timeout, limit);
    case "scheduleToStart":
      return new TimeoutError(
        `activity "${name}" waited longer than scheduleToStart, ${limit} ms, for its attempt to begin`,
        timeout,
        limit,
      );
    default:
      return new TimeoutError(
        `activity "${name}" took longer than scheduleToClose, ${limit} ms over all attempts`,
        timeout,
        limit,
        lastFailure && { cause: errorOf(lastFailure) },
      );
  }
}

type Limit = { readonly timeout: TimeoutKind; readonly at: number; readonly length: number };

export class RunningAttempt {
  readonly attempt: Attempt;
  readonly #surroundings: AttemptSurroundings;
  readonly #ended: (end: AttemptEnd) => void;
  #controller: AbortController | undefined;
  #stopReason: Error | undefined;
  #begun = false;
  #over = false;
  #expired: TimeoutError | undefined;
  #limits: Readonly<ResolvedTimeouts> | undefined;
  /** The limit that no heartbeat moves. */
  #fixed: Limit | undefined;
  #cancelTimer: (() => void) | undefined;
  #beatAt = 0;
  #details: Payload | undefined;

  constructor(attempt: Attempt, surroundings: AttemptSurroundings, ended: (end: AttemptEnd) => void) {
    this.attempt = attempt;
    this.#surroundings = surroundings;
    this.#ended = ended;
  }

  /** When its time is over, unless it gives a sign of life before; undefined when it has no limit. */
  get endsAt(): number | undefined {
    return this.#nextLimit()?.at;
  }

  /** What it told last. */
  get details(): Payload | undefined {
    return this.#details;
  }

  begin(): void {
    try {
      this.#limits = limitsOf(this.attempt.call);
      if (this.#limits !== undefined && this.#startClocks(this.#limits)) return;
      const { activity, call } = this.attempt;
      checkWorks(call.definition.output, `output of activity "${activity.name}"`);
      this.#begun = true;
      const result = this.#surroundings.executor.execute(this.#definition(), decodePayload(activity.input), this.#context());
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
    this.#end(undefined, undefined);
    this.#controller?.abort(reason);
  }

  /** Made when it is first asked for: most activities never do. */
  get signal(): AbortSignal {
    this.#controller ??= new AbortController();
    if (this.#stopReason !== undefined && !this.#controller.signal.aborted) this.#controller.abort(this.#stopReason);
    return this.#controller.signal;
  }

  get log(): Log {
    const about = this.#about();
    const { log } = this.#surroundings;
    return {
      debug: (message, data) => log.debug(message, { ...about, ...data }),
      info: (message, data) => log.info(message, { ...about, ...data }),
      warn: (message, data) => log.warn(message, { ...about, ...data }),
      error: (message, data) => log.error(message, { ...about, ...data }),
    };
  }

  #about(): object {
    const { run, instanceId, activity, workflow } = this.attempt;
    return { workflow, instance: instanceId, run, activity: activity.name, attempt: activity.attempt };
  }

  #definition(): ActivityDefinition {
    const { definition } = this.attempt.call;
    if (definition.semantics === "transactional") return { ...definition, run: (input) => this.#inTransaction(definition, input) };
    if (definition.builtIn === undefined) return definition;
    return { ...definition, run: (input, ctx) => this.#surroundings.builtIn(this.attempt, input, ctx) };
  }

  async #inTransaction(definition: ActivityDefinition, input: unknown): Promise<Committed> {
    const output = await this.#surroundings.transaction(this.attempt, this.signal, async (tx) => {
      return this.#encoded(await inProcess.execute(definition, input, new TransactionalAttemptContext(this, tx)));
    });
    return new Committed(output);
  }

  /** Throws when the value does not fit the schema of the output, or cannot be stored. */
  #encoded(value: unknown): Payload {
    const { call, activity } = this.attempt;
    const what = `output of activity "${activity.name}"`;
    return encodePayload(parse(call.definition.output, value, what, "INVALID_OUTPUT"), { limit: this.#surroundings.payloadLimit, what });
  }

  #context(): ActivityContext {
    return new AttemptContext(this);
  }

  // ── time ───────────────────────────────────────────────────────────────────────────────────────────────

  /** True when the time of all attempts is over before this one begins. */
  #startClocks({ startToClose, scheduleToClose, heartbeat }: Readonly<ResolvedTimeouts>): boolean {
    const { clock } = this.#surroundings;
    const now = clock.now();
    this.#beatAt = now;
    const ofAttempt = startToClose === undefined ? undefined : limit("startToClose", now, startToClose);
    const ofAll = scheduleToClose === undefined ? undefined : limit("scheduleToClose", this.attempt.activity.scheduledAt, scheduleToClose);
    this.#fixed = earlier(ofAll, ofAttempt);
    if (ofAll !== undefined && ofAll.at <= now) {
      this.#expire(ofAll);
      return true;
    }
    if (this.#fixed !== undefined || heartbeat !== undefined) this.#awaitLimit();
    return false;
  }

  #nextLimit(): Limit | undefined {
    const heartbeat = this.#limits?.heartbeat;
    return earlier(this.#fixed, heartbeat === undefined ? undefined : limit("heartbeat", this.#beatAt, heartbeat));
  }

  /** A heartbeat leaves the timer alone: when it comes, what is due then is awaited. */
  #awaitLimit(): void {
    const next = this.#nextLimit();
    if (next === undefined) return;
    this.#cancelTimer = this.#surroundings.clock.wakeAt(next.at, () => {
      const now = this.#nextLimit();
      if (now === undefined || now.at > this.#surroundings.clock.now()) this.#awaitLimit();
      else this.#expire(now);
    });
  }

  #expire({ timeout, length }: Limit): void {
    if (this.#over) return;
    const error = outOfTime(this.attempt.activity, timeout, length);
    this.#expired = error;
    this.#stopReason = error;
    this.#failed(error);
    this.#controller?.abort(error);
  }

  heartbeat(details: unknown): void {
    if (this.#over) return;
    if (details !== undefined) {
      const what = `the heartbeat of activity "${this.attempt.activity.name}"`;
      this.#details = encodePayload(details, { limit: this.#surroundings.payloadLimit, what });
    }
    const timeout = this.#limits?.heartbeat;
    if (timeout === undefined) return;
    this.#beatAt = this.#surroundings.clock.now();
    if (this.#details !== undefined) this.#surroundings.heartbeats.beat(this.attempt, this.#details, timeout);
  }

  // ── outcomes ───────────────────────────────────────────────────────────────────────────────────────────

  #completed(value: unknown): void {
    if (this.#over) {
      // What is committed counts, whenever it comes: it is found when the step is given up, or tried again.
      if (!(value instanceof Committed)) this.#late();
      return;
    }
    const { effect, activity } = this.attempt;
    let output: Payload;
    try {
      output = value instanceof Committed ? value.output : this.#encoded(value);
    } catch (error) {
      this.#failed(error);
      return;
    }
    this.#end({ type: "ActivityCompleted", effect, attempt: activity.attempt, output }, "completed");
  }

  /** Nobody waits for it any more; after a timeout its author should know that the work was done. */
  #late(): void {
    if (this.#expired === undefined) return;
    const { timeout, limit: milliseconds } = this.#expired;
    this.#surroundings.log.warn("the result of an activity came after its attempt had run out of time, and is refused", {
      ...this.#about(),
      timeout,
      limit: milliseconds,
    });
  }

  #failed(error: unknown): void {
    if (this.#over) return;
    const { effect, activity } = this.attempt;
    const kind = this.#kindOf(error);
    const { noRetry, retryAt, failure } = this.#judged(error, kind);
    // What it asked for cannot be done: that is what is wrong with it.
    const isInstead = failure !== error && noRetry === "permanent";
    const details = this.#details;
    this.#end(
      {
        type: "ActivityFailed",
        effect,
        attempt: activity.attempt,
        failure: { ...failureOf(failure), kind: isInstead ? "permanent" : kind },
        ...(retryAt !== undefined && { retryAt }),
        ...(noRetry !== undefined && { noRetry }),
        ...(details !== undefined && { heartbeat: details }),
      },
      kind,
    );
  }

  #kindOf(error: unknown): FailureKind {
    if (this.#expired !== undefined) return "timeout";
    const classifiers = [this.attempt.call.definition.classify, this.#surroundings.classify];
    return classify(error, classifiers, (cause) => this.#broken("`classify`", cause));
  }

  /** What follows a failure, and what is recorded of it. */
  #judged(error: unknown, kind: FailureKind): { readonly failure: unknown; readonly retryAt?: number; readonly noRetry?: NoRetry } {
    const { activity } = this.attempt;
    if (this.#expired !== undefined && activity.semantics === "atMostOnce" && this.#begun)
      return { failure: outcomeUnknown(activity, "ran out of time", this.#expired), noRetry: "outcomeUnknown" };
    if (this.#expired?.timeout === "scheduleToClose") return { failure: error, noRetry: "scheduleToClose" };
    const { retry, clock, random } = this.#surroundings;
    const scheduleToClose = this.#limits?.scheduleToClose;
    const broken = (what: string, cause: unknown) => this.#broken(what, cause);
    const decision = retryOf(this.attempt, error, kind, { retry, clock, random, scheduleToClose, broken });
    return "retryAt" in decision ? { failure: error, ...decision } : { failure: decision.instead ?? error, noRetry: decision.noRetry };
  }

  #broken(what: string, cause: unknown): void {
    this.#surroundings.log.error(`${what} of activity "${this.attempt.activity.name}" does not work and was passed over`, {
      ...this.#about(),
      error: cause,
    });
  }

  #end(outcome: AttemptOutcome | undefined, end: AttemptEnd): void {
    if (this.#over) return;
    this.#over = true;
    this.#cancelTimer?.();
    this.#ended(end);
    if (outcome !== undefined) this.attempt.report(outcome);
  }
}

/** What a transactional activity came to: encoded, and durable. */
class Committed {
  readonly output: Payload;

  constructor(output: Payload) {
    this.output = output;
  }
}

/** What an activity fails with that was to do its work once at most, when nobody knows whether it did. */
export function outcomeUnknown(
  { name, attempt }: Pick<OpenActivity, "name" | "attempt">,
  what: string,
  cause?: Error,
): OutcomeUnknownError {
  return new OutcomeUnknownError(
    `attempt ${attempt} of activity "${name}" ${what}; it may have done its work. It runs once at most, so it is not made again: find out what came of it.`,
    cause === undefined ? {} : { cause },
  );
}

class AttemptContext implements ActivityContext {
  readonly #running: RunningAttempt;

  constructor(running: RunningAttempt) {
    this.#running = running;
  }

  get idempotencyKey(): string {
    const { run, effect } = this.#running.attempt;
    return attemptKey(run, effect);
  }

  get attempt(): number {
    return this.#running.attempt.activity.attempt;
  }

  get instanceId(): string {
    return this.#running.attempt.instanceId;
  }

  get signal(): AbortSignal {
    return this.#running.signal;
  }

  get log(): Log {
    return this.#running.log;
  }

  // A function of its own, so that `const { heartbeat } = ctx` works.
  get heartbeat(): (details?: unknown) => void {
    const running = this.#running;
    return (details) => running.heartbeat(details);
  }

  get lastHeartbeat(): unknown {
    const { heartbeat } = this.#running.attempt.activity;
    return heartbeat === undefined ? undefined : decodePayload(heartbeat);
  }
}

class TransactionalAttemptContext extends AttemptContext implements TransactionalContext {
  readonly tx: ActivityTransaction;

  constructor(running: RunningAttempt, tx: ActivityTransaction) {
    super(running);
    this.tx = tx;
  }
}

const limit = (timeout: TimeoutKind, since: number, length: number): Limit => ({ timeout, at: since + length, length });

/** Of two that end together the first. */
function earlier(one: Limit | undefined, other: Limit | undefined): Limit | undefined {
  if (one === undefined || other === undefined) return one ?? other;
  return other.at < one.at ? other : one;
}

function isPromise(value: unknown): value is PromiseLike<unknown> {
  return typeof value === "object" && value !== null && "then" in value && typeof value.then === "function";
}
