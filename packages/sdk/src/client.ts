export {
  type BatchAction,
  type Batches,
  type BatchOptions,
  type BatchOutcome,
  type BatchStart,
  type Client,
  type DeadLetterIds,
  type DeadLetterQuery,
  type DeadLetters,
  type DecideAllOptions,
  type DecisionOptions,
  delivery,
  type ForkOptions,
  type Handle,
  type ListFilter,
  type ResetOptions,
  type ResultOptions,
  type SendOptions,
  type StartOptions,
  type StreamEvent,
  type UpdateOptions,
} from "./client/client.ts";
export type { ClientOptions } from "./client/create-client.ts";
export { createClient } from "./client/create-client.ts";
export type { RetryOptions } from "./client/retry.ts";
export type {
  EdgeKind,
  ExecutionGraph,
  GraphAttempt,
  GraphEdge,
  GraphFailure,
  GraphNode,
  NodeKind,
  NodeState,
  RunGraph,
} from "./graph/graph.ts";
export { type GraphOptions, graphOf } from "./graph/graph-of.ts";
export { type MermaidDirection, type MermaidOptions, toMermaid } from "./graph/mermaid.ts";
export type { DeadLetterDecision, DeadLetterKind } from "./model/dead-letter.ts";
export type {
  AttributeValue,
  ClusterDescription,
  ClusterNode,
  DeadLetterDetails,
  DeadLetterSummary,
  FailureView,
  HistoryEvent,
  InstanceDescription,
  InstanceSummary,
  Published,
  StartEvent,
} from "./protocol/operations.ts";
export type { QueueInfo, WorkerInfo, WorkerState } from "./protocol/task-operations.ts";
