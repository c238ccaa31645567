import type { AnyActivity } from "../define/any-activity.ts";
import type { Log } from "../define/log.ts";
import type { Duration } from "../model/duration.ts";
import type { WorkerState } from "../protocol/task-operations.ts";

export type WorkerOptions = {
  /** Where an orchestrator listens, with the prefix that its API is mounted under. Any orchestrator of an installation will do. */
  readonly url: string | URL;
  readonly apiKey?: string | undefined;
  /** What it can do: activities with their code. */
  readonly activities: readonly AnyActivity[];
  /** From which queues it takes tasks; default: those that the activities name. */
  readonly queues?: readonly string[] | undefined;
  /** Tasks that it works on at once; default 10. */
  readonly concurrency?: number | undefined;
  /** What it has to offer: it gets the tasks of activities that require no more. */
  readonly labels?: readonly string[] | undefined;
  /** By what it is known; default: a fresh one. */
  readonly id?: string | undefined;
  /** Of its code, shown beside it. */
  readonly release?: string | undefined;
  /** How long its tasks stay its own when nothing is heard of it, from 1 s to 10 minutes; default 15 s. It tells of itself three times within it. */
  readonly lease?: Duration | undefined;
  /** Default: warnings and errors on standard error. */
  readonly log?: Log | undefined;
  /** Default: on Node its own HTTP client, elsewhere the global `fetch`. */
  readonly fetch?: typeof fetch | undefined;
};

export type StopOptions = {
  /** How long tasks that are at work may go on; then they are handed back. Default 30 s. */
  readonly grace?: Duration | undefined;
};

export interface Worker extends AsyncDisposable {
  readonly id: string;
  readonly state: Exclude<WorkerState, "Lost">;
  /** Tasks that it works on. */
  readonly running: number;
  /** Works until it is stopped; rejects when the server refuses it for good. */
  run(): Promise<void>;
  /** Takes no more tasks, ends those that it has, hands back the rest; resolves then. */
  stop(options?: StopOptions): Promise<void>;
}
