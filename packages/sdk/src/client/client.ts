/** What programs see of an orchestrator, in their own process or behind a URL. */
import type { EventDef } from "../define/event.ts";
import type { Query } from "../define/query.ts";
import type { Args } from "../define/signature.ts";
import type { Update } from "../define/update.ts";
import type { AnyWorkflow, Workflow } from "../define/workflow.ts";
import type { PublishOptions } from "../effects/publish.ts";
import type { RunGraph } from "../graph/graph.ts";
import type { DeadLetterDecision, DeadLetterKind } from "../model/dead-letter.ts";
import type { Duration } from "../model/duration.ts";
import type { CancelMode, Status } from "../model/history.ts";
import type { Priority } from "../model/priority.ts";
import type { WorkflowTimeout } from "../model/run-timeouts.ts";
import type {
  AttributeValue,
  BatchDescription,
  BatchOperation,
  Border,
  ClusterDescription,
  DeadLetterDetails,
  DeadLetterSummary,
  HistoryEvent,
  ImportedRun,
  InstanceDescription,
  InstanceSummary,
  Published,
  StartEvent,
} from "../protocol/operations.ts";
import type { QueueInfo, WorkerInfo } from "../protocol/task-operations.ts";

export type StartOptions = {
  /** Default: a random one. */
  readonly id?: string | undefined;
  /** The same start with the same key is done once. */
  readonly idempotencyKey?: string | undefined;
  /** Default: that of the workflow that is given, or where it is not registered the one that was registered last. */
  readonly version?: string | undefined;
  readonly startAt?: Date | string | undefined;
  readonly delay?: Duration | undefined;
  /** How long it may take; goes over what the workflow says. A duration alone is that of all runs that the start leads to. */
  readonly timeout?: WorkflowTimeout | undefined;
  readonly attributes?: Readonly<Record<string, AttributeValue>> | undefined;
  readonly memo?: Readonly<Record<string, unknown>> | undefined;
  readonly correlationId?: string | undefined;
  /** Who is next when attempts wait; goes over what the workflow says. */
  readonly priority?: Priority | undefined;
  /** When an open instance has this id: refuse with INSTANCE_EXISTS (default), or return that one. */
  readonly onConflict?: "fail" | "return" | undefined;
  /** Sent with the start, or to the open instance that has the id, which is returned then: made by `delivery`. */
  readonly event?: StartEvent | undefined;
};

/** An event for `start`'s `event`. */
export function delivery<P>(event: EventDef<unknown, P>, ...[payload, options]: Args<P, SendOptions>): StartEvent {
  return {
    name: event.name,
    ...(payload !== undefined && { payload }),
    ...(options?.idempotencyKey !== undefined && { idempotencyKey: options.idempotencyKey }),
  };
}

export type SendOptions = { readonly idempotencyKey?: string | undefined };

export type UpdateOptions = SendOptions & { readonly signal?: AbortSignal | undefined };

export type ResultOptions = {
  readonly signal?: AbortSignal | undefined;
  /** Default: no limit. */
  readonly timeout?: Duration | undefined;
};

export type ListFilter = {
  readonly workflow?: AnyWorkflow | string | undefined;
  readonly status?: Status | readonly Status[] | undefined;
  readonly attributes?: Readonly<Record<string, string | number | boolean>> | undefined;
  readonly startedAfter?: Date | string | undefined;
  readonly startedBefore?: Date | string | undefined;
};

/** An event of a run as a stream shows it: `id` is `<runId>:<seq>`. */
export type StreamEvent = HistoryEvent & { readonly id: string; readonly runId: string };

export type DecisionOptions = {
  /** Why; kept in history. */
  readonly note?: string | undefined;
  readonly idempotencyKey?: string | undefined;
};

export interface Handle<out O> {
  readonly id: string;
  /** The run that was started or returned; an empty text on a handle made from an id, which stands for the newest run. */
  readonly runId: string;
  /** Resolves with the output; rejects with `WorkflowError` for a run that did not complete, with `TimeoutError` when `timeout` passes first. */
  result(options?: ResultOptions): Promise<O>;
  describe(): Promise<InstanceDescription>;
  /** The runs of this id, newest first. */
  runs(): AsyncIterable<InstanceSummary>;
  /** The events of the newest run, or of the given one. */
  history(options?: { readonly runId?: string | undefined }): AsyncIterable<HistoryEvent>;
  /** What the run did and what it is at, as nodes and edges; `toMermaid` makes a picture of it. */
  graph(): Promise<RunGraph>;
  /** Events that are recorded, then live ones, until the run closes. */
  stream(options?: { readonly signal?: AbortSignal | undefined }): AsyncIterable<StreamEvent>;
  /** Delivers an event; it is kept until the workflow awaits it. */
  send<P>(event: EventDef<unknown, P>, ...args: Args<P, SendOptions>): Promise<void>;
  /** Asks the workflow's live state; a closed run answers as well. */
  query<A, R>(query: Query<A, R>, ...args: Args<A, { readonly signal?: AbortSignal | undefined }>): Promise<R>;
  /** Changes the run; resolves with what its handler returns. Rejects with UPDATE_REJECTED, or UPDATE_FAILED, whose `cause` is the handler's error. */
  update<A, R>(update: Update<A, R>, ...args: Args<A, UpdateOptions>): Promise<R>;
  /** Ends the sleeps that the run is in. */
  wake(): Promise<void>;
  cancel(options?: { readonly mode?: CancelMode | undefined; readonly reason?: string | undefined }): Promise<void>;
  /** Tries a compensation that is stuck once more; `effect` is its id in `describe()` (`~2`). */
  retryCompensation(effect: string, options?: DecisionOptions): Promise<void>;
  /** Gives a compensation that is stuck up: the run ends as `CompensationFailed`. */
  skipCompensation(effect: string, options?: DecisionOptions): Promise<void>;
  /** Says that what a stuck compensation was to do has been done by hand. */
  resolveCompensation(effect: string, options?: DecisionOptions): Promise<void>;
  terminate(options?: { readonly reason?: string | undefined }): Promise<void>;
  /** The run takes no step until `resume`; what arrives for it is kept. */
  pause(options?: { readonly reason?: string | undefined }): Promise<void>;
  /** Ends a pause; a parked run is tried again. */
  resume(): Promise<void>;
  /** Begins another instance: from a place in the history of this one, or anew with its input or another. This one is left as it is. */
  fork(options?: ForkOptions): Promise<Handle<O>>;
  /** Lets another run of this id go on from a place in the history of the newest one, or of the given one, which is terminated if it is open. */
  reset(options: ResetOptions): Promise<Handle<O>>;
  /** The newest run, or the given one, as lines of JSON that `client.import` takes. */
  export(options?: { readonly runId?: string | undefined }): AsyncIterable<string>;
  /** Removes every run of this id, or the given one; refused while one of them is open. Resolves with how many there were. */
  delete(options?: { readonly runId?: string | undefined }): Promise<number>;
}

export type ForkOptions = {
  /** The last event to keep: the number of one that ends a turn, or `"first"` or `"last"` of those after which the run was open and did not undo itself. */
  readonly at?: Border | undefined;
  /** Default: a random one. */
  readonly id?: string | undefined;
  /** Not together with `at`. */
  readonly input?: unknown;
  /** Default: that of the origin. */
  readonly version?: string | undefined;
  readonly runId?: string | undefined;
  readonly idempotencyKey?: string | undefined;
};

export type ResetOptions = {
  /** The last event to keep, as with `fork`. */
  readonly to: Border;
  readonly reason?: string | undefined;
  readonly runId?: string | undefined;
  readonly idempotencyKey?: string | undefined;
};

/** What a batch does to each run: the call of this name, with its options. */
export type BatchAction =
  | Exclude<BatchOperation, { readonly type: "send" }>
  | { readonly type: "send"; readonly event: EventDef<unknown, never> | string; readonly payload?: unknown };

export type BatchOptions = {
  readonly operation: BatchAction;
  /** Which runs, as `list` takes it; `{}` means all. */
  readonly filter: ListFilter;
  /** Default: a random one. */
  readonly id?: string | undefined;
  readonly idempotencyKey?: string | undefined;
};

export interface Batches {
  /** Begins to do something to every run that is there now and that the filter finds; resolves with the batch's id. */
  start(options: BatchOptions): Promise<string>;
  get(id: string): Promise<BatchDescription>;
  /** What is done stays done. */
  cancel(id: string): Promise<void>;
}

type Input<I> = undefined extends I ? { readonly input?: I } : { readonly input: I };
export type BatchStart<I> = StartOptions & Input<I>;

export type BatchOutcome<O> = { readonly ok: true; readonly handle: Handle<O> } | { readonly ok: false; readonly error: Error };

export type DeadLetterQuery = {
  readonly kind?: DeadLetterKind | undefined;
  readonly workflow?: AnyWorkflow | string | undefined;
  /** Of the activity, workflow or event. */
  readonly name?: string | undefined;
  readonly instanceId?: string | undefined;
  /** Of the failure, or of what caused it. */
  readonly code?: string | undefined;
  readonly since?: Date | string | undefined;
  readonly until?: Date | string | undefined;
};

/** At most 1,000 of them; then the rest of the query does not count. */
export type DeadLetterIds = { readonly ids?: readonly string[] | undefined };

export type DecideAllOptions = DecisionOptions & {
  /** What each activity came to, where that is the decision. */
  readonly output?: unknown;
  /** Of the batch; default: a random one. */
  readonly id?: string | undefined;
};

/** Work that was given up and waits for a person. */
export interface DeadLetters {
  /** Newest first. */
  list(query?: DeadLetterQuery): AsyncIterable<DeadLetterSummary>;
  /** With its input and its failed attempts. */
  get(id: string): Promise<DeadLetterDetails>;
  /** It is done anew: an activity with fresh attempts, a run as a new one of its id, an event by being sent again. */
  retry(id: string, options?: DecisionOptions): Promise<void>;
  /** The activity came to this; or, of a compensation: it was undone by hand. */
  resolve(id: string, options?: DecisionOptions & { readonly output?: unknown }): Promise<void>;
  /** The activity failed, and its workflow gets the failure; a compensation is given up. */
  fail(id: string, options?: DecisionOptions): Promise<void>;
  /** Nobody wants the run or the event any more. */
  discard(id: string, options?: DecisionOptions): Promise<void>;
  /** Begins to decide on many of them alike; resolves with the id of a batch, of which `batches.get` tells how far it is. */
  decideAll(decision: DeadLetterDecision, letters: DeadLetterQuery & DeadLetterIds, options?: DecideAllOptions): Promise<string>;
}

export interface Client {
  start<I, O>(workflow: Workflow<I, O>, ...args: Args<I, StartOptions>): Promise<Handle<O>>;
  /** Starts and awaits the result. */
  execute<I, O>(workflow: Workflow<I, O>, ...args: Args<I, StartOptions>): Promise<O>;
  /** Starts many instances; each succeeds or fails by itself. */
  startBatch<I, O>(workflow: Workflow<I, O>, starts: readonly BatchStart<NoInfer<I>>[]): Promise<BatchOutcome<O>[]>;
  handle<O>(workflow: Workflow<never, O>, id: string): Handle<O>;
  handle(id: string): Handle<unknown>;
  /** Tells an event to every run that waits for it, and starts the workflows that it triggers. */
  publish<P>(event: EventDef<unknown, P>, ...args: Args<P, PublishOptions>): Promise<Published>;
  /** Work that was given up and waits for a person. */
  readonly deadLetters: DeadLetters;
  /** Newest first. */
  list(filter?: ListFilter): AsyncIterable<InstanceSummary>;
  /** Takes in what exports gave, as text or line by line: all of it, or nothing. */
  import(lines: string | Iterable<string> | AsyncIterable<string>): Promise<readonly ImportedRun[]>;
  /** Operations over many runs. */
  readonly batches: Batches;
  /** The orchestrators that share the work, as the one that is asked knows them. */
  cluster(): Promise<ClusterDescription>;
  /** Workers of task queues, as they told of themselves last, by id. */
  workers(): AsyncIterable<WorkerInfo>;
  /** Queues in which tasks are, by name. */
  queues(): Promise<readonly QueueInfo[]>;
}
