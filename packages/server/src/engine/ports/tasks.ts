/**
 * What the engine asks of a store for task queues: attempts of activities that workers in other processes make.
 *
 * 1. A task is a row from the commit that asks for its attempt (`TurnWrite.tasks`) until its outcome lies in the inbox of its run, or its run wants it no
 *    more (`TurnWrite.tasksDone`). There is one of each effect at most.
 * 2. A task that is claimed is leased, under a token that was made for this lease: until the lease ends by the clock of the store, nobody else gets it. Only
 *    the token of the present lease may prolong it, hand the task back or settle it.
 * 3. A lease, or a time limit, that has passed counts when `sweep` finds it: from then on the token means nothing. What is found is found again after a
 *    while, until a turn has seen to it.
 * 4. `settle` moves a task into the inbox of its run in one step: at any moment there is the task, or its outcome, and never both.
 * 5. None of it needs the ownership of a shard: any node serves any worker. A queue is shared by all tenants, and its tasks are given out in turns to them.
 */
import type { InboxMessage, InstanceKey } from "./store.ts";

export type TaskWrite = {
  readonly effect: string;
  readonly queue: string;
  /** Of the activity. */
  readonly name: string;
  readonly attempt: number;
  /** Attempts of the activity that were lost before. */
  readonly losses: number;
  /** 0 comes first. */
  readonly priority: number;
  /** Labels that a worker has to have. */
  readonly requires: readonly string[];
  /** A payload. */
  readonly input: string;
  /** What attempts before have told last, a payload. */
  readonly details?: string | undefined;
  /** What else the worker and the owner of the run are to know: JSON, opaque to the store. */
  readonly about: string;
  /** Time limits, in milliseconds: for the wait, for all attempts (both from now), for this one (from its claim), and between two signs of life. */
  readonly startWithin?: number | undefined;
  readonly closeWithin?: number | undefined;
  readonly runWithin?: number | undefined;
  readonly beatWithin?: number | undefined;
};

export type TaskClaim = {
  readonly queue: string;
  /** Names of activities that the worker has; undefined: whatever is in the queue. */
  readonly activities?: readonly string[] | undefined;
  readonly labels: readonly string[];
  /** As many as tasks are wanted: under which token, a fresh one, each is leased to whom. */
  readonly places: readonly { readonly token: string; readonly worker: string }[];
  /** Milliseconds. */
  readonly lease: number;
  /** The tenant that was served last: the next one comes first. Means nothing among tasks of different priority. */
  readonly afterTenant: string;
};

export type ClaimedTask = InstanceKey &
  Pick<TaskWrite, "effect" | "queue" | "name" | "attempt" | "input" | "about"> & {
    readonly token: string;
    readonly worker: string;
    /** What the attempts before told last, a payload. */
    readonly details?: string;
  };

export type TaskRenewal = {
  readonly token: string;
  /** Milliseconds from now. */
  readonly lease: number;
  /** Whether the attempt itself gave a sign of life, and not only its process. */
  readonly beat: boolean;
  /** What it told, a payload; undefined leaves what it told before. */
  readonly details?: string | undefined;
};

export type TaskSettlement = {
  readonly token: string;
  /** Tells whether another settlement under this token says the same. */
  readonly digest: string;
  /**
   * JSON of the outcome, an object with at least one field and without `effect`, `attempt` and `heartbeat`: the store adds the first two as its first fields,
   * and the third where the attempt told something.
   */
  readonly fact: string;
};

export type TaskSettled =
  /** It lies in the inbox of its run now. */
  | { readonly kind: "settled"; readonly message: InboxMessage }
  /** It was settled by the same before. */
  | { readonly kind: "known" }
  /** The token is not, or no longer, that of a lease; or it was settled otherwise before. */
  | { readonly kind: "refused" };

/** How a task stands. */
export type KnownTask = Pick<TaskWrite, "effect" | "queue" | "requires"> & {
  /** Who has it; undefined while it waits. */
  readonly worker?: string;
};

/** Why a task is nobody's any more. */
export type TaskEnd = "lost" | "scheduleToStart" | "startToClose" | "scheduleToClose" | "heartbeat";

export type OverdueTask = InstanceKey &
  Pick<TaskWrite, "effect" | "name" | "attempt" | "losses" | "about"> & {
    readonly shard: number;
    readonly end: TaskEnd;
    /** Who had it; empty when nobody had. */
    readonly worker: string;
    /** What attempts told last, a payload. */
    readonly details?: string;
  };

export type TaskSweep = {
  readonly overdue: readonly OverdueTask[];
  /** Milliseconds until the next task of the shards has to be looked at; undefined when none has. */
  readonly nextIn?: number;
  /** Whether a task waits, of these shards or of others that are kept with them. */
  readonly waits: boolean;
};

/** What is in a queue. */
export type QueueDepth = {
  readonly queue: string;
  readonly waiting: number;
  readonly leased: number;
  /** Since when the oldest of those that wait does, in milliseconds since the epoch; undefined when none waits. */
  readonly oldestAt?: number;
};

/** A queue in which tasks wait. */
export type WaitingQueue = {
  readonly queue: string;
  /** Of those that have waited for as long as was asked about the one that comes next; undefined when none has, or when it was not asked about. */
  readonly late?: {
    readonly shard: number;
    /** For how long it has waited, in milliseconds. */
    readonly waited: number;
  };
};

/** A worker as it told of itself last. */
export type WorkerRow = {
  readonly id: string;
  /** JSON, opaque to the store. */
  readonly about: string;
  /** From which queues it takes tasks, each once; none when it takes no more. */
  readonly takes: readonly string[];
  /** For how long what it told holds, in milliseconds. */
  readonly within: number;
};

export type KnownWorker = { readonly id: string; readonly about: string; readonly seenAt: number; readonly isOverdue: boolean };

/** How long a task that was found overdue stays so before it is found again, in milliseconds. */
export const sweptFor = 10_000;

export interface TaskStore {
  /** Never more than there are places. By priority, then in turns to tenants, then in the order in which they were asked for. */
  claim(claim: TaskClaim): Promise<readonly ClaimedTask[]>;
  /** Says which tokens hold their lease, each prolonged. */
  renew(renewals: readonly TaskRenewal[]): Promise<ReadonlySet<string>>;
  /** Makes tasks wait again, in their old places; says in which queues. Those that are not leased under these tokens are left alone. */
  release(tokens: readonly string[]): Promise<readonly { readonly token: string; readonly queue: string }[]>;
  /** One answer for each, in order. */
  settle(settlements: readonly TaskSettlement[]): Promise<readonly TaskSettled[]>;
  /** Finds tasks of the shards whose lease or time is over, the longest overdue first, at most `limit`. */
  sweep(shards: readonly number[], limit: number): Promise<TaskSweep>;
  /** How many tasks wait in each queue, since when, and how many are leased. A task waits since it was written, or handed back. Reads every task. */
  depths(): Promise<readonly QueueDepth[]>;
  /**
   * Queues in which tasks wait, by name, at most `limit`. Those that are not in `taken` are asked about tasks that have waited for `longest` milliseconds or
   * more: of a queue that is taken from, however long, one task is read.
   */
  waiting(asked: { readonly taken: readonly string[]; readonly longest: number; readonly limit: number }): Promise<readonly WaitingQueue[]>;
  /** The tasks of a run that wait or are leased, by effect. */
  ofRun(key: InstanceKey): Promise<readonly KnownTask[]>;
  /** Forgets which tokens were settled longer ago than so many milliseconds, and workers that have not told of themselves for so long. */
  expire(age: number): Promise<void>;
  saveWorkers(workers: readonly WorkerRow[]): Promise<void>;
  /** How many workers take tasks from each queue, of those whose word still holds. */
  takers(): Promise<ReadonlyMap<string, number>>;
  /** By id; `after` is the worker after which to go on. */
  listWorkers(page: { readonly after?: string; readonly limit: number }): Promise<readonly KnownWorker[]>;
}
