/** The seam for Wovyr's own packages: no promise of stability. */
export { defaultAdmissionLimits } from "./engine/admission.ts";
export {
  Engine,
  type EngineLimits,
  type EngineOptions,
} from "./engine/engine.ts";
export { EngineHost, type EngineHostOptions } from "./engine/engine-host.ts";
export { HistoryRows } from "./engine/history-row.ts";
export { Instance, type InstanceHost, type InstanceIdentity, type OpenTurn } from "./engine/instance.ts";
export { defaultJournalLimits } from "./engine/journal.ts";
export type { TenantLimits } from "./engine/limits/limits-of.ts";
export { resolveTenantLimits, type TenantLimitOptions } from "./engine/limits/tenant-limits.ts";
export { type ActivityExecutor, inProcess } from "./engine/ports/activity-executor.ts";
export type { Clock } from "./engine/ports/clock.ts";
export type { EngineLog } from "./engine/ports/log.ts";
export type { Loop } from "./engine/ports/loop.ts";
export type { Random } from "./engine/ports/random.ts";
export * from "./engine/ports/store.ts";
export { defaultPublicationRetention } from "./engine/publishing.ts";
export { Registry } from "./engine/registry.ts";
export { type RetentionOptions, type RetentionTimes, retentionTimes } from "./engine/removal.ts";
export { Replay } from "./engine/replay.ts";
export { checkStrategy, type SchedulingStrategy } from "./engine/scheduling/strategy.ts";
export { retryTimer } from "./engine/turn-plan.ts";
export { Turns } from "./engine/turns.ts";
export { type DeterminismGuard, determinismGuard, type Guard } from "./platform/determinism-guard.ts";
export { isStatementAt } from "./platform/statement-at.ts";
export { systemClock, systemLoop, systemRandom } from "./platform/system.ts";
export { severalDatabases } from "./store/databases/databases.ts";
export { memoryStore } from "./store/memory.ts";
