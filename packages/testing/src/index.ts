/** The testing kit: the real engine over a virtual clock, and what makes it stumble. */
export { checkEndOfCase, type EndOfCaseOptions } from "./end-of-case.ts";
export { createTestEnvironment, TestEnvironment, type TestEnvironmentOptions, type TestLimits } from "./environment.ts";
export { ExecutionRecord } from "./execution-record.ts";
export { createFaultyStore, type FaultOptions, type FaultPlace, FaultPlan, type HeldCall } from "./faulty-store.ts";
export { Gate, type GateCall } from "./gate.ts";
export type { LogLine } from "./log-lines.ts";
export { continueHistory, type ReplayedRun, type ReplayOptions, replayHistory } from "./replay.ts";
export { SeededRandom } from "./seeded-random.ts";
export type { StoreCall, StoreMethod } from "./store-calls.ts";
export { VirtualClock } from "./virtual-clock.ts";
