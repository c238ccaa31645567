/** The public door of the orchestrator. */

export {
  createOrchestrator,
  type ListenOptions,
  type Orchestrator,
  type OrchestratorOptions,
} from "./create-orchestrator.ts";
export type { TenantLimitOptions } from "./engine/limits/tenant-limits.ts";
export type { EngineLog } from "./engine/ports/log.ts";
export type { Store, StoreProvider } from "./engine/ports/store.ts";
export type { RetentionOptions } from "./engine/removal.ts";
export { type DeadlineFirstOptions, deadlineFirst } from "./engine/scheduling/deadline-first.ts";
export { type FairOptions, fair } from "./engine/scheduling/fair.ts";
export { fifo } from "./engine/scheduling/fifo.ts";
export { type PriorityOptions, priority } from "./engine/scheduling/priority.ts";
export type { SchedulingQueue, SchedulingStrategy, WaitingAttempt } from "./engine/scheduling/strategy.ts";
export { type StaticGraphOptions, staticGraph } from "./graph/static-graph.ts";
export { type ConsoleLevel, consoleLog } from "./platform/console-log.ts";
export { memoryStore } from "./store/memory.ts";
export { pgliteStore } from "./store/pglite.ts";
export type { PostgresTransaction } from "./store/postgres/step-sql.ts";
export { type PostgresStoreOptions, postgresStore } from "./store/postgres.ts";
