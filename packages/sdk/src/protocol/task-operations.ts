/** What workers ask of an orchestrator, in whatever process and language they are. Any orchestrator of an installation serves any worker. */
import type { ResolvedTimeouts } from "../model/activity-timeouts.ts";
import type { Delivered, FailureView, Page } from "./operations.ts";

/** `Starting`: it has not asked for a task yet. `Draining`: it ends what it has. `Lost`: it was silent for longer than what it told holds. */
export const workerStates = ["Starting", "Idle", "Busy", "Draining", "Stopped", "Lost"] as const;

export type WorkerState = (typeof workerStates)[number];

export type TaskPoll = {
  /** From which tasks are taken; each gets its share. */
  readonly queues: readonly string[];
  /** Who asks. */
  readonly worker: string;
  /** Names of activities that it has; default: whatever is in the queues. */
  readonly activities?: readonly string[];
  /** What it has to offer: it gets tasks of activities that require no more. */
  readonly labels?: readonly string[];
  /** Tasks at most; 1 to 1,000, default 1. */
  readonly max?: number;
  /** How long a task is the worker's without a sign of life, in milliseconds; default 30,000. */
  readonly lease?: number;
  /** Milliseconds to wait for a task; 0 or absent: do not wait. */
  readonly wait?: number;
  /** Ends the wait; what comes too late for it goes back to its queue. */
  readonly signal?: AbortSignal;
  /** Whether the worker tells of itself by `heartbeatWorker`; else this tells of it. */
  readonly registered?: boolean;
};

/** An attempt of an activity, for a worker to make. */
export type ActivityTask = {
  /** Names the lease: whatever is said of the task is said with it. */
  readonly token: string;
  readonly queue: string;
  readonly activity: string;
  readonly input: unknown;
  /** Counts from 1. */
  readonly attempt: number;
  /** The same on every attempt of this call. */
  readonly idempotencyKey: string;
  readonly instanceId: string;
  readonly runId: string;
  readonly workflow: string;
  /** What an attempt before this one told last. */
  readonly lastHeartbeat?: unknown;
  readonly semantics?: "atMostOnce";
  /** Its time limits, in milliseconds; the orchestrator sees to them. */
  readonly timeout?: Readonly<ResolvedTimeouts>;
};

/** What a worker tells of itself. */
export type WorkerReport = {
  readonly state: Exclude<WorkerState, "Lost">;
  readonly queues: readonly string[];
  readonly activities?: readonly string[];
  readonly labels?: readonly string[];
  /** Of the code that it runs. */
  readonly release?: string;
  /** Tasks that it works on at once at most. */
  readonly concurrency?: number;
  /** Tasks that it works on. */
  readonly running?: number;
  /** Of these tasks: their leases are prolonged. */
  readonly tokens?: readonly string[];
  /** For how long, and for how long what it tells holds, in milliseconds; default 30,000. */
  readonly lease?: number;
};

export type WorkerInfo = Omit<WorkerReport, "tokens" | "lease" | "state"> & {
  readonly id: string;
  readonly state: WorkerState;
  readonly labels: readonly string[];
  readonly running: number;
  readonly lastSeenAt: Date;
};

export type QueueInfo = {
  readonly name: string;
  /** Tasks that wait for a worker, and those that one has. */
  readonly waiting: number;
  readonly leased: number;
  /** Since when the oldest of those that wait does; a task that was handed back waits anew. Absent when none waits. */
  readonly oldestAt?: Date;
  /** Workers that take tasks from it, as they told of themselves last: neither Draining, nor Stopped, nor Lost. */
  readonly workers: number;
};

export interface TaskOperations {
  /** Tasks for a worker; none when there are none in time. */
  pollTasks(poll: TaskPoll): Promise<readonly ActivityTask[]>;
  /** The attempt is at work: prolongs its lease. Rejects with TASK_NOT_HELD when it is to stop. */
  heartbeatTask(token: string, options?: { readonly details?: unknown; readonly lease?: number }): Promise<{ readonly lease: number }>;
  completeTask(token: string, output?: unknown): Promise<Delivered>;
  failTask(token: string, failure: FailureView): Promise<Delivered>;
  /** Hands a task back: another worker gets it. */
  releaseTask(token: string): Promise<void>;
  /** Tells of a worker and prolongs the leases of its tasks; resolves with those that are not its any more. */
  heartbeatWorker(id: string, report: WorkerReport): Promise<{ readonly lost: readonly string[] }>;
  /** By id. */
  listWorkers(request?: { readonly cursor?: string; readonly limit?: number }): Promise<Page<WorkerInfo>>;
  /** Queues in which tasks are, by name. */
  listQueues(): Promise<readonly QueueInfo[]>;
}
