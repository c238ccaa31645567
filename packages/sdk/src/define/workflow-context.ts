import type { ContinueAsNewOptions } from "../effects/continue-as-new.ts";
import type { Effect, Flow } from "../effects/effect.ts";
import type { EventDef } from "./event.ts";
import type { Log } from "./log.ts";
import type { Query } from "./query.ts";
import type { Update } from "./update.ts";
import type { Workflow } from "./workflow.ts";

export type AttributeValue = string | number | boolean | Date | string[];
export type Attributes = Record<string, AttributeValue>;

/** What a workflow is told about its run; a helper that takes plain `WorkflowContext` accepts any workflow's. */
export interface WorkflowContext<V = unknown, I = never> {
  readonly id: string;
  readonly runId: string;
  readonly tenant: string;
  readonly correlationId: string;
  /** Which attempt the run is by its workflow's `retry`; counts from 1. */
  readonly attempt: number;
  /** The time of the event that the workflow is handling; a new `Date` on every call. */
  now(): Date;
  /** Seeded by the run: the same numbers on replay. */
  random(): number;
  /** Seeded by the run: the same ids on replay. */
  uuid(): string;
  readonly log: Log;
  /** Changes are recorded with the turn and shown to operators. */
  readonly variables: V;
  /** Searchable; changes are recorded with the turn. */
  readonly attributes: Attributes;
  readonly memo: Readonly<Record<string, unknown>>;
  /** Events in history so far. */
  readonly historyLength: number;
  /** This workflow, for children of its own kind: `yield* child(ctx.self, smaller)`. What it returns is `unknown`; a contract knows more. */
  readonly self: Workflow<I, unknown>;
  /** True when the history has grown so long that a new run should take over: half of the limit, or 4 MB. */
  readonly shouldContinueAsNew: boolean;
  /** Ends this run and begins the next of the same instance, with the events that nobody has taken yet. Yield it in the workflow's own function. */
  continueAsNew(input: I, options?: ContinueAsNewOptions): Effect<never>;
  /** Handles every event of the name that no `awaitEvent` takes, those kept so far included. An effect that it returns is run. What it throws fails the run. */
  on<T>(event: EventDef<T, never>, handler: (payload: T) => Flow<void> | Effect<unknown> | void): void;
  /** Answers a query from the workflow's state, which it must not change. */
  onQuery<A, O>(query: Query<A, O>, handler: (input: A) => NoInfer<O>): void;
  /** Handles an update: `validate` throws what is wrong, before anything is recorded; what `handler` returns is the caller's answer. */
  onUpdate<A, O>(
    update: Update<A, O>,
    handler: { readonly validate?: (input: A) => void; readonly handler: (input: A) => Flow<O> | Effect<O> | O },
  ): void;
  /** Whether no handler is at work. A run that returns cancels those that are. */
  readonly handlersFinished: boolean;
}
