import type { Log } from "./log.ts";

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
}
