/**
 * What workers say of the tasks that they have: that they are at work, what came of them, that they hand them back.
 *
 * 1. The store judges the token; what it refuses is answered with TASK_NOT_HELD, whatever the reason: the worker stops working on it.
 * 2. An outcome is durable before its worker is answered, and the run is told then. Said again, it is acknowledged again.
 * 3. What many workers say at once goes to the store together.
 */
import {
  ApiError,
  digest,
  encodePayload,
  type Failure,
  type FailureView,
  failureOf,
  failureOfView,
  type Incoming,
  type Payload,
  WovyrError,
} from "@wovyr/sdk/internal";
import type { Engine } from "./engine.ts";
import { Gathered } from "./gathered.ts";
import type { TaskRenewal, TaskSettled, TaskSettlement } from "./ports/tasks.ts";

/** How long a lease lasts where the worker says nothing, the shortest and the longest, in milliseconds. */
export const defaultLease = 30_000;
const shortestLease = 1_000;
const longestLease = 600_000;
/** Items of one call of the store. */
const batch = 500;

/** Throws INVALID_OPTION. */
export function leaseOf(lease: number = defaultLease): number {
  if (lease >= shortestLease && lease <= longestLease) return Math.round(lease);
  throw new WovyrError(`lease must be from ${shortestLease} to ${longestLease} milliseconds, not ${lease}`, { code: "INVALID_OPTION" });
}

type Outcome =
  | { readonly type: "ActivityCompleted"; readonly output: Payload }
  | { readonly type: "ActivityFailed"; readonly failure: Failure };

export class TaskLeases {
  readonly #engine: Engine;
  readonly #renewals: Gathered<TaskRenewal, boolean>;
  readonly #settlements: Gathered<TaskSettlement, TaskSettled>;

  constructor(engine: Engine) {
    this.#engine = engine;
    const { tasks } = engine.options.store;
    this.#renewals = new Gathered(async (renewals) => {
      const held = await tasks.renew(renewals);
      return renewals.map(({ token }) => held.has(token));
    }, batch);
    this.#settlements = new Gathered((settlements) => tasks.settle(settlements), batch);
  }

  /** The attempt gives a sign of life; resolves with how long its lease lasts from now on. */
  async heartbeat(token: string, details: unknown, asked?: number): Promise<{ readonly lease: number }> {
    const lease = leaseOf(asked);
    const told = details === undefined ? undefined : await this.#engine.rows.seal(this.#encoded(details, "the details of a heartbeat"));
    if (!(await this.#renewals.add({ token, lease, beat: true, ...(told !== undefined && { details: told }) }))) throw notHeld();
    return { lease };
  }

  /** The process of the worker is alive: says which of its tasks it does not have any more. */
  async keepAlive(tokens: readonly string[], asked?: number): Promise<readonly string[]> {
    const lease = leaseOf(asked);
    const held = await Promise.all(tokens.map((token) => this.#renewals.add({ token, lease, beat: false })));
    return tokens.filter((_, index) => held[index] !== true);
  }

  async complete(token: string, output: unknown): Promise<{ readonly replayed: boolean }> {
    return this.#settle(token, { type: "ActivityCompleted", output: this.#encoded(output, "the output of an activity") });
  }

  async fail(token: string, error: unknown): Promise<{ readonly replayed: boolean }> {
    return this.#settle(token, { type: "ActivityFailed", failure: failureOf(error) });
  }

  async failAs(token: string, view: FailureView): Promise<{ readonly replayed: boolean }> {
    return this.#settle(token, { type: "ActivityFailed", failure: failureOfView(view) });
  }

  /** Makes tasks wait for other workers; those that are not held are left alone. */
  async release(tokens: readonly string[]): Promise<void> {
    for (const { queue } of await this.#engine.options.store.tasks.release(tokens)) this.#engine.taskQueues.arrived(queue);
  }

  async releaseOne(token: string): Promise<void> {
    const released = await this.#engine.options.store.tasks.release([token]);
    if (released.length === 0) throw notHeld();
    for (const { queue } of released) this.#engine.taskQueues.arrived(queue);
  }

  #encoded(value: unknown, what: string): Payload {
    return encodePayload(value, { limit: this.#engine.options.limits.execution.payload, what });
  }

  async #settle(token: string, outcome: Outcome): Promise<{ readonly replayed: boolean }> {
    const { rows, options } = this.#engine;
    // The store knows the effect and the attempt.
    const fact = await rows.encodeFact(outcome as Incoming);
    const settled = await this.#settlements.add({ token, digest: digest(JSON.stringify(outcome)), fact });
    if (settled.kind === "refused") throw notHeld();
    if (settled.kind === "settled")
      this.#engine
        .deliverOwned(settled.message)
        .catch((error) => options.log.warn("the outcome of a task waits in the inbox of its run", { error }));
    return { replayed: settled.kind === "known" };
  }
}

const notHeld = () =>
  new ApiError(
    "The task is not this worker's: its run does not wait for it any more, its time or its lease is over, it was handed back, or another outcome was taken. Stop working on it.",
    { code: "TASK_NOT_HELD" },
  );
