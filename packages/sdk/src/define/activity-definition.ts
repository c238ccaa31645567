import type { ActivityTimeouts } from "../model/activity-timeouts.ts";
import type { ErrorClass } from "../model/errors.ts";
import type { RetryPolicy } from "../model/retry-policy.ts";
import type { ActivityContext } from "./activity-context.ts";
import type { Schema } from "./schema.ts";

/** An activity as the runtime and the worker see it. */
export type ActivityDefinition = {
  readonly name: string;
  readonly input?: Schema;
  readonly output?: Schema;
  readonly retry?: RetryPolicy;
  readonly timeout?: ActivityTimeouts;
  readonly errors?: readonly ErrorClass[];
  /** What the engine does itself, instead of a function. */
  readonly builtIn?: "send" | "publish";
  /** Absent on a contract that nobody in this process implements. */
  readonly run?: (input: unknown, ctx: ActivityContext) => unknown;
};
