import type { ActivityTimeouts } from "../model/activity-timeouts.ts";
import type { CircuitBreakerOptions } from "../model/circuit-breaker.ts";
import type { Concurrency } from "../model/concurrency.ts";
import type { ErrorClass } from "../model/errors.ts";
import type { OnExhausted } from "../model/exhaustion.ts";
import type { Classifier } from "../model/failure-kind.ts";
import type { Priority } from "../model/priority.ts";
import type { RateLimit } from "../model/rate-limit.ts";
import type { RetryPolicy } from "../model/retry-policy.ts";
import type { Semantics } from "../model/semantics.ts";
import type { ActivityContext } from "./activity-context.ts";
import type { Schema } from "./schema.ts";

/** What the engine does itself: sends an event; finds runs and operates on them, for a batch. */
export type BuiltIn = "send" | "publish" | "findRuns" | "findDeadLetters" | "operateOnRuns";

/** An activity as the runtime and the worker see it. */
export type ActivityDefinition = {
  readonly name: string;
  readonly input?: Schema;
  readonly output?: Schema;
  readonly retry?: RetryPolicy;
  readonly timeout?: ActivityTimeouts;
  readonly semantics?: Semantics;
  readonly onExhausted?: OnExhausted;
  readonly classify?: Classifier;
  readonly circuitBreaker?: CircuitBreakerOptions;
  readonly priority?: Priority;
  readonly concurrency?: Concurrency;
  readonly rateLimit?: RateLimit;
  readonly queue?: string;
  readonly requires?: readonly string[];
  readonly errors?: readonly ErrorClass[];
  /** What the engine does itself, instead of a function. */
  readonly builtIn?: BuiltIn;
  /** Absent on a contract that nobody in this process implements. */
  readonly run?: (input: unknown, ctx: ActivityContext) => unknown;
};
