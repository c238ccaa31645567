export type {
  BatchOutcome,
  BatchStart,
  Client,
  Handle,
  ListFilter,
  ResultOptions,
  SendOptions,
  StartOptions,
  StreamEvent,
} from "./client/client.ts";
export type { ClientOptions } from "./client/create-client.ts";
export { createClient } from "./client/create-client.ts";
export type { RetryOptions } from "./client/retry.ts";
export type { AttributeValue, FailureView, HistoryEvent, InstanceDescription, InstanceSummary } from "./protocol/operations.ts";
