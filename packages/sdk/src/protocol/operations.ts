/**
 * What can be asked of an orchestrator, bound to one tenant. The engine implements it; HTTP carries it: routes turn requests into these calls, and the
 * client turns these calls into requests. So a program reads the same with the orchestrator in its own process or behind a URL.
 *
 * Values (inputs, payloads, outputs) are plain JavaScript values here. Every method rejects with a `WovyrError` whose `code` is in the catalogue.
 */
import type { ExecutionGraph, RunGraph } from "../graph/graph.ts";
import type { DeadLetterDecision, DeadLetterKind } from "../model/dead-letter.ts";
import type { FailureKind } from "../model/failure-kind.ts";
import type { CancelMode, ClosedStatus, CompensationDecision, Status } from "../model/history.ts";
import type { CompensationState } from "../model/open-compensation.ts";
import type { Priority } from "../model/priority.ts";
import type { RunTimeouts } from "../model/run-timeouts.ts";
import type { TaskOperations } from "./task-operations.ts";

/** An error as the API shows it: a `Failure` with its fields decoded. */
export type FailureView = {
  readonly name: string;
  readonly message: string;
  readonly code?: string;
  /** Of the failure of an attempt or of a run. */
  readonly kind?: FailureKind;
  readonly stack?: string;
  readonly cause?: FailureView;
  readonly fields?: unknown;
  /** What was thrown, when it was no error. */
  readonly thrown?: unknown;
};

export type AttributeValue = string | number | boolean | Date | readonly string[];

export type WorkflowInfo = {
  readonly name: string;
  /** Registered versions, the default for new instances last. */
  readonly versions: readonly string[];
  /** JSON schema, or null where the definition has none or it has no JSON form. */
  readonly input: object | null;
  readonly output: object | null;
  /** Events whose publication starts an instance of the newest version. */
  readonly triggers: readonly string[];
};

export type WorkflowDetails = WorkflowInfo & {
  /** What the source of each version says that it does, by version. */
  readonly graph: Readonly<Record<string, ExecutionGraph>>;
};

export type StartRequest = {
  readonly workflow: string;
  readonly input: unknown;
  readonly id?: string;
  readonly version?: string;
  /** Milliseconds since the epoch. */
  readonly startAt?: number;
  /** Milliseconds from now, by the engine's clock; not together with `startAt`. A repeated request says the same delay, and not the same time. */
  readonly delay?: number;
  /** Milliseconds; each goes over what the workflow says. */
  readonly timeout?: RunTimeouts;
  readonly attributes?: Readonly<Record<string, AttributeValue>>;
  readonly memo?: Readonly<Record<string, unknown>>;
  readonly correlationId?: string;
  /** Goes over what the workflow says. */
  readonly priority?: Priority;
  /** What to do when an open instance has this id: refuse (default), or return that one when it is of the same workflow. */
  readonly onConflict?: "fail" | "return";
  readonly idempotencyKey?: string;
  /** Sent to the run with its start; when an open instance has the id, it is sent to that one, which is returned. */
  readonly event?: StartEvent;
  /** Milliseconds to wait for the result; 0 or absent: do not wait. */
  readonly wait?: number;
  /** Ends the wait, and not the run. */
  readonly signal?: AbortSignal;
};

export type StartResponse = {
  readonly id: string;
  readonly runId: string;
  readonly status: Status;
  /** False when an instance that was there already is returned. */
  readonly created: boolean;
  /** True when this answers a request that was answered before (idempotency key). */
  readonly replayed: boolean;
  /** Present when `wait` was given and the run closed in time. */
  readonly result?: ClosedResult;
};

export type BatchItem = { readonly ok: true; readonly value: StartResponse } | { readonly ok: false; readonly error: Error };

export type ClosedResult = {
  readonly id: string;
  readonly runId: string;
  readonly status: ClosedStatus;
  readonly output?: unknown;
  readonly failure?: FailureView;
  /** What was not undone, of a run that ended as `CompensationFailed`. */
  readonly compensation?: FailureView;
};

export type ResultResponse =
  | ClosedResult
  | {
      readonly id: string;
      readonly runId: string;
      readonly status: Exclude<Status, ClosedStatus>;
    };

/** What an attempt waits for: a place in its process, or a limit (`of` is whose: the activity, the scope or the tenant). */
export type AttemptWait =
  | { readonly kind: "place" }
  | { readonly kind: "concurrency" | "rateLimit"; readonly of: string; readonly key?: string };

export type InstanceSummary = {
  readonly id: string;
  readonly runId: string;
  readonly workflow: string;
  readonly version: string;
  readonly status: Status;
  readonly startedAt: Date;
  readonly closedAt?: Date;
  readonly correlationId?: string;
  readonly parent?: { readonly id: string; readonly runId: string };
  /** The run that it was forked from, and the last event that it has of it. */
  readonly forkedFrom?: ForkOrigin;
  /** The run whose place it took, and the last event that it has of it. */
  readonly resetFrom?: ForkOrigin;
  readonly attributes: Readonly<Record<string, string | number | boolean | readonly string[]>>;
};

/** Where a history was taken over; without `at` only the input was. */
export type ForkOrigin = { readonly id: string; readonly runId: string; readonly at?: number };

export type InstanceDescription = InstanceSummary & {
  /** While the run waits for its turn, and its function is not entered. */
  readonly waitingFor?: Extract<AttemptWait, { readonly kind: "concurrency" | "rateLimit" }>;
  readonly memo: Readonly<Record<string, unknown>>;
  readonly variables: Readonly<Record<string, unknown>>;
  /** Number of events in history. */
  readonly historyLength: number;
  readonly activities: readonly {
    readonly effect: string;
    readonly name: string;
    readonly state: string;
    readonly attempt: number;
    readonly lastFailure?: FailureView;
    readonly nextRetryAt?: Date;
    /** While it waits for somebody to decide: by what id. */
    readonly deadLetter?: string;
    /** The task queue from which a worker takes it. */
    readonly queue?: string;
    /** How often its process, or its worker, died while it ran. */
    readonly losses?: number;
    /** What an attempt before the present one told last by `ctx.heartbeat()`. */
    readonly lastHeartbeat?: unknown;
    /** While the circuit of the activity is not closed: attempts are held back until then, or a few find out whether it works again. */
    readonly circuit?: { readonly state: "open" | "halfOpen"; readonly until: Date };
    /** Absent when it is `normal`. */
    readonly priority?: Priority;
    /** While its attempt is due and has not begun, and no circuit holds it back. */
    readonly waitingFor?: AttemptWait;
    /** On a queue: whether the attempt waits for a worker, that has these labels, or which one has it. */
    readonly task?:
      | { readonly state: "waiting"; readonly requires: readonly string[]; readonly since: Date }
      | { readonly state: "leased"; readonly worker: string };
  }[];
  readonly timers: readonly {
    readonly effect: string;
    readonly purpose: string;
    readonly dueAt: Date;
  }[];
  readonly awaitedEvents: readonly {
    readonly effect: string;
    readonly name: string;
    readonly key?: string;
  }[];
  readonly children: readonly {
    readonly effect: string;
    readonly workflow: string;
    readonly id: string;
    readonly runId: string;
  }[];
  /** Effects that wait for a condition. */
  readonly conditions: readonly string[];
  /** What is undone, or was when the run ended badly: all of the run's own, and those of sagas that are at work. */
  readonly compensations: readonly {
    /** Its own id, by which it can be decided on. */
    readonly effect: string;
    /** The effect that it undoes. */
    readonly undoes: string;
    readonly name: string;
    readonly state: CompensationState;
    readonly tries: number;
    readonly failure?: FailureView;
    /** While it is stuck: by what id it is found among the dead letters. */
    readonly deadLetter?: string;
    /** What was said when it was decided on. */
    readonly note?: string;
  }[];
  /** Why the run undoes what it did. */
  readonly compensating?: FailureView;
  /** The run that this one went on from, and the one that goes on from it. */
  readonly continuedFrom?: string;
  readonly continuedTo?: string;
  /** Which attempt it is by its workflow's `retry`, from 1; the run that failed before it, and the one that takes its place. */
  readonly attempt: number;
  readonly retryOf?: string;
  readonly retriedAs?: string;
  /** Events that arrived and that nothing has taken yet. */
  readonly bufferedEvents: readonly {
    readonly name: string;
    readonly key?: string;
    readonly receivedAt: Date;
  }[];
  /** True while it waits for an orchestrator that has its workflow and version registered. */
  readonly unregistered?: true;
  /** `file:line:column` of the yields that the run waits at; empty when it is closed or its code is not loaded. */
  readonly waitingAt: readonly string[];
  readonly output?: unknown;
  readonly failure?: FailureView;
  /** What was not undone, of a run that ended as `CompensationFailed`. */
  readonly compensation?: FailureView;
  /** Why it is parked. */
  readonly parked?: FailureView;
  /** Since when it takes no step because somebody said so, and why. */
  readonly paused?: { readonly at: Date; readonly reason?: string };
  /** The run that took this one's place. */
  readonly resetTo?: string;
};

export type ListRequest = {
  readonly workflow?: string;
  readonly statuses?: readonly Status[];
  readonly attributes?: Readonly<Record<string, string | number | boolean>>;
  readonly startedAfter?: Date;
  readonly startedBefore?: Date;
  readonly cursor?: string;
  /** 1 to 500, default 50. */
  readonly limit?: number;
};

export type Page<T> = {
  readonly items: readonly T[];
  readonly nextCursor?: string;
};

export type HistoryEvent = {
  readonly seq: number;
  /** Number of the first event of the turn that recorded this one: where it equals `seq`, a turn begins. */
  readonly turn: number;
  readonly type: string;
  readonly at: Date;
  /** The event's fields, with payloads decoded. */
  readonly data: Readonly<Record<string, unknown>>;
};

export type HistoryRequest = {
  readonly runId?: string;
  readonly fromSeq?: number /** Events; 1 to 1,000, default 500. */;
  readonly limit?: number;
};
export type HistoryPage = {
  readonly runId: string;
  readonly items: readonly HistoryEvent[];
  readonly nextSeq?: number;
};

export type Delivered = { readonly replayed: boolean };

/** What came of a publication. */
export type Published = {
  /** Its idempotency key, or one that was made for it. */
  readonly id: string;
  /** How many runs waited for it. */
  readonly delivered: number;
  /** The instances that it started. */
  readonly started: readonly { readonly workflow: string; readonly id: string; readonly runId: string }[];
  /** True when this answers a publication that was answered before. */
  readonly replayed: boolean;
};

/**
 * A place in a history at which one turn ends and the next has not begun: the number of its last event, or `"first"` or `"last"` of those after which the run
 * was open and had not begun to undo what it did.
 */
export type Border = number | "first" | "last";

export type ForkRequest = {
  readonly runId?: string;
  /** The last event to keep. Without it a new instance begins, with the same input or another. */
  readonly at?: Border;
  /** Of the new instance; default: a fresh one. */
  readonly id?: string;
  /** Not together with `at`: the code has used its input already. */
  readonly input?: unknown;
  /** Default: that of the origin. */
  readonly version?: string;
  readonly idempotencyKey?: string;
};

export type ResetRequest = {
  readonly runId?: string;
  /** The last event to keep. */
  readonly to: Border;
  readonly reason?: string;
  readonly idempotencyKey?: string;
};

/** A run that an operation began. */
export type NewRun = { readonly id: string; readonly runId: string; readonly status: Status; readonly replayed: boolean };

/** What a batch does to each run, with the options of the call of that name. */
export type BatchOperation =
  | { readonly type: "cancel"; readonly mode?: CancelMode; readonly reason?: string }
  | { readonly type: "terminate"; readonly reason?: string }
  | { readonly type: "pause"; readonly reason?: string }
  | { readonly type: "resume" }
  | { readonly type: "wake" }
  | { readonly type: "send"; readonly event: string; readonly payload?: unknown }
  | { readonly type: "reset"; readonly to: Border; readonly reason?: string }
  | { readonly type: "delete" };

export type BatchFilter = Omit<ListRequest, "cursor" | "limit">;

export type BatchRequest = {
  readonly operation: BatchOperation;
  readonly filter: BatchFilter;
  readonly id?: string;
  readonly idempotencyKey?: string;
};

export type BatchFailure = { readonly id: string; readonly runId: string; readonly code: string; readonly message: string };

export type BatchDescription = {
  readonly id: string;
  readonly status: Status;
  readonly operation: BatchOperation | DeadLetterOperation;
  /** Which runs; empty where it is about dead letters. */
  readonly filter: BatchFilter;
  /** Known when all have been found. */
  readonly total?: number;
  readonly done: number;
  readonly failed: number;
  /** The first of them. */
  readonly failures: readonly BatchFailure[];
  readonly startedAt: Date;
  readonly closedAt?: Date;
};

/** An event that goes with a start: to the run that is started, or to the open one that has its id. */
export type StartEvent = { readonly name: string; readonly payload?: unknown; readonly idempotencyKey?: string };

/** How an update stands: handled, or still at work when the caller's time was over. */
export type UpdateResponse = {
  readonly id: string;
  readonly runId: string;
  /** The idempotency key of the update, or one that was made for it: asking again with it waits on. */
  readonly updateId: string;
  readonly status: "Completed" | "Failed" | "Open";
  readonly output?: unknown;
  readonly failure?: FailureView;
};

export type ImportedRun = { readonly id: string; readonly runId: string; readonly status: Status };

export type DeadLetterRequest = {
  readonly kind?: DeadLetterKind;
  readonly workflow?: string;
  /** Of the activity, workflow or event. */
  readonly name?: string;
  readonly instanceId?: string;
  /** Of its failure, or of what caused that. */
  readonly code?: string;
  /** Given up at this time or later, and before. */
  readonly since?: Date;
  readonly until?: Date;
  readonly cursor?: string;
  /** 1 to 500, default 50. */
  readonly limit?: number;
};

/** Which dead letters: those of these ids, or all that are found. */
export type DeadLetterFilter = Omit<DeadLetterRequest, "cursor" | "limit"> & { readonly ids?: readonly string[] };

/** A decision on many dead letters. */
export type DeadLetterOperation = {
  readonly type: "decide";
  readonly decision: DeadLetterDecision;
  readonly letters: DeadLetterFilter;
  /** What each activity came to, where that is the decision. */
  readonly output?: unknown;
  readonly note?: string;
};

/** Work that was given up. */
export type DeadLetterSummary = {
  readonly id: string;
  readonly kind: DeadLetterKind;
  /** Of the run that the work belongs to. */
  readonly workflow: string;
  readonly instanceId: string;
  readonly runId: string;
  readonly effect: string;
  /** Of the activity, workflow or event. */
  readonly name: string;
  /** Of the activity or the run; how often a compensation was tried. */
  readonly attempts: number;
  readonly failure: FailureView;
  /** When it was given up. */
  readonly at: Date;
  /** What can be decided. */
  readonly decisions: readonly DeadLetterDecision[];
};

export type DeadLetterDetails = DeadLetterSummary & {
  readonly version: string;
  /** What the work was given, and the number of the event that says so; absent for a compensation. */
  readonly input?: unknown;
  readonly seq?: number;
  /** The last failed attempts, at most 20. */
  readonly failures: readonly { readonly attempt: number; readonly at: Date; readonly failure: FailureView }[];
  readonly firstFailedAt: Date;
  readonly lastFailedAt: Date;
};

export type StreamItem = {
  readonly runId: string;
  readonly event: HistoryEvent;
};

/** An orchestrator of a cluster, as the others know it. */
export type ClusterNode = {
  readonly node: string;
  /** Where others reach it; absent while it listens nowhere. */
  readonly url?: string;
  readonly release: string;
  /** What it hosts, as `name@version`. */
  readonly workflows: readonly string[];
  /** `draining`: it hands its shards over and takes no new ones. */
  readonly state: "active" | "draining";
  /** The shards of the group that it owns, numbered from 0. */
  readonly shards: readonly number[];
  /** When its shards are free for others unless it renews its lease. */
  readonly leaseUntil: Date;
};

/** The orchestrators of one group over one database, as the one that was asked knows them. */
export type ClusterDescription = {
  readonly group: string;
  /** The node that was asked. */
  readonly node: string;
  readonly nodes: readonly ClusterNode[];
  /** How many shards the group has. */
  readonly shards: number;
  /** Those that nobody owns at present. */
  readonly unowned: readonly number[];
};

export interface Operations extends TaskOperations {
  listWorkflows(): Promise<readonly WorkflowInfo[]>;
  getWorkflow(name: string): Promise<WorkflowDetails>;

  start(request: StartRequest): Promise<StartResponse>;
  /** Up to 1,000 starts of one workflow; each succeeds or fails by itself. */
  startBatch(requests: readonly StartRequest[]): Promise<readonly BatchItem[]>;

  list(request: ListRequest): Promise<Page<InstanceSummary>>;
  /** The runs of an id, newest first. */
  runs(id: string, request?: { readonly cursor?: string; readonly limit?: number }): Promise<Page<InstanceSummary>>;
  describe(id: string, options?: { readonly runId?: string }): Promise<InstanceDescription>;
  /** Resolves at once for a closed run, else when it closes or after `wait` milliseconds. */
  result(
    id: string,
    options?: {
      readonly runId?: string;
      readonly wait?: number;
      readonly signal?: AbortSignal;
    },
  ): Promise<ResultResponse>;
  history(id: string, request?: HistoryRequest): Promise<HistoryPage>;
  /** What the run did and what it is at, as nodes and edges. */
  graph(id: string, options?: { readonly runId?: string }): Promise<RunGraph>;
  /** History events after `after`, first those that are recorded, then live ones, until the run closes. */
  stream(
    id: string,
    options?: {
      readonly runId?: string;
      readonly after?: { readonly runId: string; readonly seq: number };
      readonly signal?: AbortSignal;
    },
  ): AsyncIterable<StreamItem>;

  sendEvent(
    id: string,
    event: string,
    payload: unknown,
    options?: { readonly runId?: string; readonly idempotencyKey?: string },
  ): Promise<Delivered>;
  /** Tells an event to every run that waits for it, and starts the workflows that it triggers. */
  publish(event: string, payload: unknown, options?: { readonly key?: string; readonly idempotencyKey?: string }): Promise<Published>;
  /** Asks a run, closed or open; its handler reads the workflow's state. */
  query(id: string, query: string, input: unknown, options?: { readonly runId?: string }): Promise<unknown>;
  /** Changes a run and waits for what its handler says, at most `wait` milliseconds. */
  update(
    id: string,
    update: string,
    input: unknown,
    options?: { readonly runId?: string; readonly idempotencyKey?: string; readonly wait?: number; readonly signal?: AbortSignal },
  ): Promise<UpdateResponse>;
  /** Ends the sleeps that a run is in. */
  wake(id: string, options?: { readonly runId?: string; readonly idempotencyKey?: string }): Promise<Delivered>;
  cancel(
    id: string,
    options?: {
      readonly runId?: string;
      readonly mode?: CancelMode;
      readonly reason?: string;
      readonly idempotencyKey?: string;
    },
  ): Promise<Delivered>;
  /** Says what becomes of a compensation that is stuck: tried again, given up, or done by hand. */
  decideCompensation(
    id: string,
    effect: string,
    decision: CompensationDecision,
    options?: { readonly runId?: string; readonly note?: string; readonly idempotencyKey?: string },
  ): Promise<Delivered>;
  /** Newest first. */
  listDeadLetters(request?: DeadLetterRequest): Promise<Page<DeadLetterSummary>>;
  getDeadLetter(id: string): Promise<DeadLetterDetails>;
  /** Says what becomes of work that was given up. */
  decideDeadLetter(
    id: string,
    decision: DeadLetterDecision,
    options?: {
      /** What an activity came to, where that is the decision. */
      readonly output?: unknown;
      readonly note?: string;
      readonly idempotencyKey?: string;
    },
  ): Promise<Delivered>;
  /** Decides on each of many dead letters, as a batch: `getBatchOperation` tells how far it is. */
  decideDeadLetters(
    operation: Omit<DeadLetterOperation, "type">,
    options?: { readonly id?: string; readonly idempotencyKey?: string },
  ): Promise<{ readonly id: string; readonly replayed: boolean }>;
  terminate(
    id: string,
    options?: {
      readonly runId?: string;
      readonly reason?: string;
      readonly idempotencyKey?: string;
    },
  ): Promise<Delivered>;

  /** The run takes no step until `resume`; what arrives is kept. */
  pause(id: string, options?: { readonly runId?: string; readonly reason?: string; readonly idempotencyKey?: string }): Promise<Delivered>;
  /** Ends a pause; a parked run is tried again. */
  resume(id: string, options?: { readonly runId?: string; readonly idempotencyKey?: string }): Promise<Delivered>;
  /** Begins another instance from a place in the history of this one, which is left as it is. */
  fork(id: string, request?: ForkRequest): Promise<NewRun>;
  /** Lets another run of the same id go on from a place in the history of this one, which is terminated. */
  reset(id: string, request: ResetRequest): Promise<NewRun>;
  /** A run as lines of JSON. */
  export(id: string, options?: { readonly runId?: string }): AsyncIterable<string>;
  /** Takes in what `export` gave: all of it, or nothing when anything is wrong with it. */
  import(lines: AsyncIterable<string>): Promise<readonly ImportedRun[]>;
  /** Removes the closed runs of an id, or one of them; resolves with how many there were. */
  delete(id: string, options?: { readonly runId?: string }): Promise<{ readonly deleted: number }>;

  startBatchOperation(request: BatchRequest): Promise<{ readonly id: string; readonly replayed: boolean }>;
  getBatchOperation(id: string): Promise<BatchDescription>;
  cancelBatchOperation(id: string, options?: { readonly idempotencyKey?: string }): Promise<Delivered>;

  /** Who shares the work, and who owns what. */
  cluster(): Promise<ClusterDescription>;
  health(): Promise<{ readonly ready: boolean; readonly reason?: string }>;
}
