import type { Flow } from "../effects/effect.ts";
import type { EventDef } from "./event.ts";
import type { Log } from "./log.ts";
import type { Query } from "./query.ts";
import type { Update } from "./update.ts";

export type AttributeValue = string | number | boolean | Date | string[];
export type Attributes = Record<string, AttributeValue>;

/** What a workflow is told about its run; a helper that takes plain `WorkflowContext` accepts any workflow's. */
export interface WorkflowContext<V = unknown> {
  readonly id: string;
  readonly runId: string;
  readonly tenant: string;
  readonly correlationId: string;
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
  /** Handles every event of the name that no `awaitEvent` takes, those kept so far included. What it throws fails the run. */
  on<T>(event: EventDef<T, never>, handler: (payload: T) => Flow<void> | void): void;
  /** Answers a query from the workflow's state, which it must not change. */
  onQuery<A, O>(query: Query<A, O>, handler: (input: A) => NoInfer<O>): void;
  /** Handles an update: `validate` throws what is wrong, before anything is recorded; what `handler` returns is the caller's answer. */
  onUpdate<A, O>(
    update: Update<A, O>,
    handler: { readonly validate?: (input: A) => void; readonly handler: (input: A) => Flow<O> | O },
  ): void;
  /** Whether no handler is at work. A run that returns cancels those that are. */
  readonly handlersFinished: boolean;
}
