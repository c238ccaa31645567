import type { CompensationPolicy } from "../model/compensation-policy.ts";
import type { Concurrency } from "../model/concurrency.ts";
import type { Debounce } from "../model/debounce.ts";
import type { ErrorClass } from "../model/errors.ts";
import type { OnExhausted } from "../model/exhaustion.ts";
import type { Priority } from "../model/priority.ts";
import type { RetryPolicy } from "../model/retry-policy.ts";
import type { RunTimeouts } from "../model/run-timeouts.ts";
import type { Singleton } from "../model/singleton.ts";
import type { EventDef } from "./event.ts";
import type { Schema } from "./schema.ts";
import type { WorkflowContext } from "./workflow-context.ts";

/** A workflow as the runtime sees it. */
export type WorkflowDefinition = {
  readonly name: string;
  readonly version: string;
  readonly input?: Schema;
  readonly output?: Schema;
  /** Makes the initial `ctx.variables`. */
  readonly variables?: () => object;
  readonly errors?: readonly ErrorClass[];
  /** Of its runs. */
  readonly retry?: RetryPolicy;
  /** Of the activities that it calls. */
  readonly activityRetry?: RetryPolicy;
  /** Retries of activities in one run. */
  readonly retryBudget?: number;
  /** Of the activities that it calls, but for what undoes. */
  readonly onExhausted?: OnExhausted;
  /** Whether a run that failed is kept as a dead letter. */
  readonly deadLetter?: boolean;
  readonly timeout?: RunTimeouts;
  /** Of its runs, unless their start says another. */
  readonly priority?: Priority;
  /** Of its runs. */
  readonly concurrency?: Concurrency;
  readonly singleton?: Singleton;
  readonly debounce?: Debounce;
  /** Events that it takes, for checking payloads when they arrive. */
  readonly events?: readonly EventDef<unknown, never>[];
  /** Events whose publication starts an instance, with the payload as input. */
  readonly triggers?: readonly EventDef<unknown, never>[];
  /** When and how its runs undo what they did; absent: `defaultCompensation`. */
  readonly compensation?: CompensationPolicy;
  /** Absent on a contract that nobody in this process implements. */
  readonly run?: (input: unknown, ctx: WorkflowContext<object>) => AsyncGenerator<unknown, unknown, unknown>;
};
