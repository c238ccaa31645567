/**
 * One task that a worker works on, from when it was given until its outcome was taken.
 *
 * 1. Its lease counts from when the last accepted sign of life was sent. Shortly before it ends, or when the server says that the task is not the worker's any
 *    more, the activity is asked to stop, and nothing is said of the task any more.
 * 2. What the activity tells by `ctx.heartbeat()` is sent at most so often; the last of it always, and before a failure is.
 * 3. An outcome is said again until it is answered, for as long as a lease lasts; what the server can never take is said as a failure instead. What cannot be
 *    said at all is left: the lease ends, and the attempt counts as lost.
 */
import { delayAfter, pause } from "../client/retry.ts";
import type { ActivityContext } from "../define/activity-context.ts";
import type { ActivityDefinition } from "../define/activity-definition.ts";
import type { Log } from "../define/log.ts";
import { checkWorks } from "../define/schema.ts";
import { ApiError, CancelledError, OutcomeUnknownError, PayloadError } from "../model/errors.ts";
import { failureOf } from "../model/failure.ts";
import { classify } from "../model/failure-kind.ts";
import { encodePayload } from "../model/payload.ts";
import { viewOfFailure } from "../protocol/failure-view.ts";
import type { ActivityTask, TaskOperations } from "../protocol/task-operations.ts";

export type HeldTaskOptions = {
  readonly task: ActivityTask;
  readonly definition: ActivityDefinition;
  readonly operations: TaskOperations;
  /** Milliseconds. */
  readonly lease: number;
  /** When the request was sent that brought it, by `performance.now()`. */
  readonly since: number;
  readonly log: Log;
};

/** Milliseconds between two signs of life of an activity, at least and at most. */
const shortestBeat = 100;
const longestBeat = 1_000;
/** How long before the end of a lease it is given up: a tenth of it, and a second at most. */
const marginOf = (lease: number): number => Math.min(1_000, lease / 10);
const reportRetry = { maxAttempts: 1_000, maxDuration: 0, initialDelay: 100, maxDelay: 5_000 };

type Report = () => Promise<unknown>;

export class HeldTask {
  readonly task: ActivityTask;
  readonly #options: HeldTaskOptions;
  readonly #controller = new AbortController();
  /** Ends what is said of the task. */
  readonly #over = new AbortController();
  #leaseTimer: NodeJS.Timeout | undefined;
  #beatTimer: NodeJS.Timeout | undefined;
  #untold: { readonly details: unknown } | undefined;
  #beating: Promise<void> = Promise.resolve();
  #beatAt = Number.NEGATIVE_INFINITY;

  constructor(options: HeldTaskOptions) {
    this.#options = options;
    this.task = options.task;
    this.renewed(options.since, options.lease);
  }

  get signal(): AbortSignal {
    return this.#controller.signal;
  }

  /** Whether nothing is to be said of it any more. */
  get isOver(): boolean {
    return this.#over.signal.aborted;
  }

  /** A sign of life that was sent then was accepted. */
  renewed(sentAt: number, lease: number): void {
    if (this.isOver) return;
    clearTimeout(this.#leaseTimer);
    const left = sentAt + lease - marginOf(lease) - performance.now();
    const end = () => this.lost("its lease ended, because no sign of life reached the server in time");
    this.#leaseTimer = setTimeout(end, Math.max(0, left));
  }

  /** It is not the worker's any more. */
  lost(why: string): void {
    if (this.isOver) return;
    const { activity, attempt, runId } = this.task;
    this.#options.log.warn(`a task is given up: ${why}`, { activity, attempt, run: runId });
    this.#end();
    this.#controller.abort(new CancelledError(`attempt ${attempt} of activity "${activity}" is not wanted any more: ${why}`));
  }

  /** Resolves when its outcome was taken, or when nothing is to be said of it any more. */
  async run(): Promise<void> {
    const { task, operations, definition } = this.#options;
    try {
      const output = await this.#stoppable(definition);
      if (this.isOver) return;
      await this.#completed(output);
    } catch (error) {
      if (this.isOver) return;
      await this.#tellRest();
      await this.#report(() => operations.failTask(task.token, this.#failure(error)));
    } finally {
      this.#end();
    }
  }

  /** The worker stops: another one is to have the task. What may be done once at most may have been done. */
  async handBack(): Promise<void> {
    if (this.isOver) return;
    const { task, operations, log } = this.#options;
    const { token, semantics, activity, attempt } = task;
    await this.#tellRest();
    const unknown = new OutcomeUnknownError(
      `attempt ${attempt} of activity "${activity}" was stopped when its worker was; it may have done its work. It runs once at most, so it is not made again: find out what came of it.`,
    );
    const say = semantics === "atMostOnce" ? operations.failTask(token, this.#failure(unknown)) : operations.releaseTask(token);
    await say.catch((error) => log.warn("a task could not be handed back; it waits for the end of its lease", { activity, error }));
    this.#end();
    this.#controller.abort(new CancelledError("the worker is shutting down; the attempt is made again elsewhere"));
  }

  /** The outcome of the function; resolves as well when the task is over, for a function that does not listen. */
  #stoppable(definition: ActivityDefinition): Promise<unknown> {
    return new Promise((resolve, reject) => {
      this.#over.signal.addEventListener("abort", () => resolve(undefined), { once: true });
      Promise.resolve()
        .then(() => {
          checkWorks(definition.output, `output of activity "${definition.name}"`);
          return definition.run?.(this.task.input, this.#context());
        })
        .then(resolve, reject);
    });
  }

  async #completed(output: unknown): Promise<void> {
    const { task, operations } = this.#options;
    const refusal = await this.#report(() => operations.completeTask(task.token, output));
    if (refusal === undefined || this.isOver) return;
    await this.#tellRest();
    await this.#report(() => operations.failTask(task.token, { ...this.#failure(refusal), kind: "permanent" }));
  }

  /** Says it until it is answered; resolves with the error when the server can never take it. */
  async #report(say: Report): Promise<Error | undefined> {
    const { lease, log, task } = this.#options;
    const until = performance.now() + lease;
    for (let tries = 1; !this.isOver; tries += 1) {
      try {
        await say();
        return undefined;
      } catch (error) {
        if (this.isOver) return undefined;
        if (error instanceof ApiError && error.code === "TASK_NOT_HELD") {
          this.lost("the server takes no outcome of it any more");
          return undefined;
        }
        if (isRefused(error)) return error as Error;
        if (performance.now() >= until) {
          log.error("the outcome of a task could not be told; its attempt counts as lost", { activity: task.activity, error });
          return undefined;
        }
        const after = error instanceof ApiError ? error.retryAfter : undefined;
        await pause(delayAfter(reportRetry, tries, after), this.#over.signal).catch(() => undefined);
      }
    }
    return undefined;
  }

  #failure(error: unknown) {
    const { definition } = this.#options;
    const kind = classify(error, [definition.classify], (cause) =>
      this.#options.log.error(`\`classify\` of activity "${definition.name}" does not work and was passed over`, { error: cause }),
    );
    return { ...viewOfFailure(failureOf(error)), kind };
  }

  #end(): void {
    clearTimeout(this.#leaseTimer);
    clearTimeout(this.#beatTimer);
    this.#over.abort();
  }

  // ── signs of life ──────────────────────────────────────────────────────────────────────────────────────

  #heartbeat(details: unknown): void {
    if (this.isOver) return;
    // What cannot be stored is told to its author, at once.
    if (details !== undefined) encodePayload(details, { what: `the heartbeat of activity "${this.task.activity}"` });
    this.#untold = { details: details ?? this.#untold?.details };
    const timeout = this.task.timeout?.heartbeat ?? longestBeat * 3;
    const interval = Math.max(shortestBeat, Math.min(longestBeat, timeout / 3));
    this.#beatTimer ??= setTimeout(() => void this.#tell(), Math.max(0, this.#beatAt + interval - performance.now()));
  }

  async #tell(): Promise<void> {
    this.#beatTimer = undefined;
    const untold = this.#untold;
    if (untold === undefined || this.isOver) return;
    this.#untold = undefined;
    this.#beatAt = performance.now();
    this.#beating = this.#send(untold.details);
    await this.#beating;
  }

  async #send(details: unknown): Promise<void> {
    const { task, operations, lease, log } = this.#options;
    const sentAt = performance.now();
    try {
      await operations.heartbeatTask(task.token, { ...(details !== undefined && { details }), lease });
      this.renewed(sentAt, lease);
    } catch (error) {
      if (error instanceof ApiError && error.code === "TASK_NOT_HELD")
        this.lost("its run does not wait for it any more, or its time is over");
      else log.debug("a heartbeat did not reach the server", { activity: task.activity, error });
    }
  }

  /** What the activity told last reaches the server before its failure does. */
  async #tellRest(): Promise<void> {
    clearTimeout(this.#beatTimer);
    this.#beatTimer = undefined;
    await this.#beating;
    await this.#tell();
  }

  #context(): ActivityContext {
    const { task } = this;
    const about = { activity: task.activity, attempt: task.attempt, instance: task.instanceId, run: task.runId };
    const { log } = this.#options;
    return {
      idempotencyKey: task.idempotencyKey,
      attempt: task.attempt,
      instanceId: task.instanceId,
      signal: this.signal,
      log: {
        debug: (message, data) => log.debug(message, { ...about, ...data }),
        info: (message, data) => log.info(message, { ...about, ...data }),
        warn: (message, data) => log.warn(message, { ...about, ...data }),
        error: (message, data) => log.error(message, { ...about, ...data }),
      },
      heartbeat: (details) => this.#heartbeat(details),
      lastHeartbeat: task.lastHeartbeat,
    };
  }
}

/** What the server would never take, however often it is said. */
function isRefused(error: unknown): boolean {
  if (error instanceof PayloadError) return true;
  return error instanceof ApiError ? error.status < 500 && !error.retryable : false;
}
