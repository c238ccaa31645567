/** What programs see of an orchestrator, in their own process or behind a URL. */
import type { EventDef } from "../define/event.ts";
import type { Args } from "../define/signature.ts";
import type { AnyWorkflow, Workflow } from "../define/workflow.ts";
import type { Duration } from "../model/duration.ts";
import type { CancelMode, Status } from "../model/history.ts";
import type { AttributeValue, HistoryEvent, InstanceDescription, InstanceSummary } from "../protocol/operations.ts";

export type StartOptions = {
  /** Default: a random one. */
  readonly id?: string | undefined;
  /** The same start with the same key is done once. */
  readonly idempotencyKey?: string | undefined;
  /** Default: the version that was registered last. */
  readonly version?: string | undefined;
  readonly startAt?: Date | string | undefined;
  readonly delay?: Duration | undefined;
  readonly attributes?: Readonly<Record<string, AttributeValue>> | undefined;
  readonly memo?: Readonly<Record<string, unknown>> | undefined;
  readonly correlationId?: string | undefined;
  /** When an open instance has this id: refuse with INSTANCE_EXISTS (default), or return that one. */
  readonly onConflict?: "fail" | "return" | undefined;
};

export type SendOptions = { readonly idempotencyKey?: string | undefined };

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

export interface Handle<out O> {
  readonly id: string;
  /** The run that was started or returned; an empty text on a handle made from an id, which stands for the newest run. */
  readonly runId: string;
  /** Resolves with the output; rejects with `WorkflowError` for a run that did not complete, with `TimeoutError` when `timeout` passes first. */
  result(options?: ResultOptions): Promise<O>;
  describe(): Promise<InstanceDescription>;
  history(): AsyncIterable<HistoryEvent>;
  /** Events that are recorded, then live ones, until the run closes. */
  stream(options?: { readonly signal?: AbortSignal | undefined }): AsyncIterable<StreamEvent>;
  /** Delivers an event; it is kept until the workflow awaits it. */
  send<P>(event: EventDef<unknown, P>, ...args: Args<P, SendOptions>): Promise<void>;
  cancel(options?: { readonly mode?: CancelMode | undefined; readonly reason?: string | undefined }): Promise<void>;
  terminate(options?: { readonly reason?: string | undefined }): Promise<void>;
}

type Input<I> = undefined extends I ? { readonly input?: I } : { readonly input: I };
export type BatchStart<I> = StartOptions & Input<I>;

export type BatchOutcome<O> = { readonly ok: true; readonly handle: Handle<O> } | { readonly ok: false; readonly error: Error };

export interface Client {
  start<I, O>(workflow: Workflow<I, O>, ...args: Args<I, StartOptions>): Promise<Handle<O>>;
  /** Starts and awaits the result. */
  execute<I, O>(workflow: Workflow<I, O>, ...args: Args<I, StartOptions>): Promise<O>;
  /** Starts many instances; each succeeds or fails by itself. */
  startBatch<I, O>(workflow: Workflow<I, O>, starts: readonly BatchStart<NoInfer<I>>[]): Promise<BatchOutcome<O>[]>;
  handle<O>(workflow: Workflow<never, O>, id: string): Handle<O>;
  handle(id: string): Handle<unknown>;
  /** Newest first. */
  list(filter?: ListFilter): AsyncIterable<InstanceSummary>;
}
