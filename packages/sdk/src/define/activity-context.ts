import type { Semantics } from "../model/semantics.ts";
import type { Log } from "./log.ts";

/** What an activity is told about the attempt that it is. */
export interface ActivityContext {
  /** The same on every attempt of this call: hand it to services that deduplicate. */
  readonly idempotencyKey: string;
  /** Aborted when the attempt runs out of time or is no longer wanted. */
  readonly signal: AbortSignal;
  /** Counts from 1. */
  readonly attempt: number;
  readonly instanceId: string;
  readonly log: Log;
  /**
   * Says that the attempt is at work, within the `heartbeat` timeout again and again. The next attempt finds `details` in `lastHeartbeat`; throws a
   * `PayloadError` when they cannot be stored.
   */
  heartbeat(details?: unknown): void;
  /** What an attempt before this one said last; undefined when none did. */
  readonly lastHeartbeat: unknown;
}

/**
 * What a transactional activity gets as `ctx.tx`. Empty here: the package of a store says by declaration merging what it hands out (`@wovyr/server`: the
 * transaction of postgres.js).
 */
// biome-ignore lint/suspicious/noEmptyInterface: declarations of other packages are merged into it
export interface ActivityTransaction {}

/** What a transactional activity is told. */
export interface TransactionalContext extends ActivityContext {
  /** The transaction in which the outcome of the attempt becomes durable too. It ends with the function, and must not be ended by it. */
  readonly tx: ActivityTransaction;
}

export type ContextOf<S extends Semantics> = S extends "transactional" ? TransactionalContext : ActivityContext;
