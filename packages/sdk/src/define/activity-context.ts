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
