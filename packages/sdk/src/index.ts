// Definitions

export { FormatRegistry, Type, TypeRegistry } from "@sinclair/typebox";
export {
  type Activity,
  type ActivityContract,
  type ActivityOptions,
  activity,
} from "./define/activity.ts";
export type { ActivityContext, ActivityTransaction, TransactionalContext } from "./define/activity-context.ts";
export { type EventDef, event } from "./define/event.ts";
export type { Log } from "./define/log.ts";
export { type Query, query } from "./define/query.ts";
export type { InputOf, OutputOf, Schema } from "./define/schema.ts";
export { type Update, update } from "./define/update.ts";
export {
  type AnyWorkflow,
  type Workflow,
  type WorkflowContract,
  type WorkflowOptions,
  workflow,
} from "./define/workflow.ts";
export type {
  Attributes,
  AttributeValue,
  WorkflowContext,
} from "./define/workflow-context.ts";

// Effects
export type { ActivityEffect } from "./effects/activity.ts";
export { all } from "./effects/all.ts";
export { any } from "./effects/any.ts";
export { type AwaitEventOptions, awaitEvent } from "./effects/await-event.ts";
export type { CallOptions } from "./effects/call-options.ts";
export { type ChildOptions, child } from "./effects/child.ts";
export { compensateNow } from "./effects/compensate-now.ts";
export type { CompensateOptions, CompensateWhen } from "./effects/compensation.ts";
export { type ConditionOptions, condition } from "./effects/condition.ts";
export {
  type Branch,
  Effect,
  type Flow,
  type ResultOf,
  type Settled,
  type Winner,
} from "./effects/effect.ts";
export {
  type MapOptions,
  map,
  type TolerantMapOptions,
} from "./effects/map.ts";
export { patched } from "./effects/patched.ts";
export { type PublishOptions, publish } from "./effects/publish.ts";
export { race } from "./effects/race.ts";
export { saga } from "./effects/saga.ts";
export { select } from "./effects/select.ts";
export { send } from "./effects/send.ts";
export { settled } from "./effects/settled.ts";
export { shield } from "./effects/shield.ts";
export { sideEffect } from "./effects/side-effect.ts";
export { sleep, sleepUntil } from "./effects/sleep.ts";
export { spawn } from "./effects/spawn.ts";
export { step } from "./effects/step.ts";
export { Task } from "./effects/task.ts";
export { timeout } from "./effects/timeout.ts";

// Values
export type { ActivityTimeouts } from "./model/activity-timeouts.ts";
export type { CircuitBreakerOptions } from "./model/circuit-breaker.ts";
export type {
  CompensateOn,
  CompensationFailurePolicy,
  CompensationOptions,
  CompensationOrder,
  SagaOptions,
} from "./model/compensation-policy.ts";
export type { ConcurrencyOptions, OnLimit } from "./model/concurrency.ts";
export type { DebounceOptions } from "./model/debounce.ts";
export { type Duration, duration } from "./model/duration.ts";
// Errors
export {
  ActivityError,
  ApiError,
  AuthoringError,
  CancelledError,
  CompensationError,
  DeterminismError,
  type ErrorClass,
  type ErrorCode,
  NonRetryableError,
  OutcomeUnknownError,
  PayloadError,
  RetryAfterError,
  TimeoutError,
  type TimeoutKind,
  ValidationError,
  type Violation,
  WorkflowError,
  type WorkflowOutcome,
  WovyrError,
} from "./model/errors.ts";
export type { OnExhausted } from "./model/exhaustion.ts";
export type { Classifier, FailureKind } from "./model/failure-kind.ts";
export type { PayloadCodec } from "./model/payload.ts";
export type { Priority } from "./model/priority.ts";
export type { RateLimitOptions } from "./model/rate-limit.ts";
export type { BackoffContext, BackoffFunction, RetryPolicy } from "./model/retry-policy.ts";
export type { ErrorMatcher, RetryRule } from "./model/retry-rules.ts";
export type { WorkflowTimeout } from "./model/run-timeouts.ts";
export type { CallSemantics, Semantics } from "./model/semantics.ts";
export type { OnSingletonConflict, SingletonOptions } from "./model/singleton.ts";
