/** The seam for Wovyr's own packages: no promise of stability. */
export {
  Engine,
  type EngineLimits,
  type EngineOptions,
} from "./engine/engine.ts";
export { EngineHost, type EngineHostOptions } from "./engine/engine-host.ts";
export { defaultJournalLimits } from "./engine/journal.ts";
export { inProcess } from "./engine/ports/activity-executor.ts";
export type { Clock } from "./engine/ports/clock.ts";
export type { Loop } from "./engine/ports/loop.ts";
export type { Random } from "./engine/ports/random.ts";
export * from "./engine/ports/store.ts";
export { Registry } from "./engine/registry.ts";
export { systemClock, systemLoop, systemRandom } from "./platform/system.ts";
