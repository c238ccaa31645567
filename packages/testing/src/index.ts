/** The testing kit: the real engine over a virtual clock, and what makes it stumble. */
export { assertCalled, assertNotCalled, type CalledFake } from "./assertions-calls.ts";
export { assertEffects, assertHistory, assertNothingOpen, type EventShape, effectsOf } from "./assertions-history.ts";
export { matches } from "./assertions-match.ts";
export { checkEndOfCase, type EndOfCaseOptions } from "./end-of-case.ts";
export { createTestEnvironment, TestEnvironment, type TestEnvironmentOptions, type TestLimits } from "./environment.ts";
export { ExecutionRecord } from "./execution-record.ts";
export {
  type Delivery,
  delivery,
  type Exploration,
  ExplorationError,
  type ExploredRun,
  type ExploreOptions,
  explore,
} from "./explore.ts";
export { type AwaitedBy, type Fake, type FakeCall, type FakeEventOptions, fake } from "./fake.ts";
export {
  createFaultyStore,
  type FaultOptions,
  type FaultPlace,
  FaultPlan,
  type FaultPlanOptions,
  type FaultRates,
  type FaultyStore,
  type HeldCall,
  type MetFault,
} from "./faulty-store.ts";
export { Gate, type GateCall } from "./gate.ts";
export { type SaveHistoryOptions, saveHistory } from "./history-file.ts";
export type { Histories, LiveHistories } from "./history-source.ts";
export { type HistoryTextOptions, historyText } from "./history-text.ts";
export type { LogLine } from "./log-lines.ts";
export { type CutOptions, cutSessions } from "./postgres-sessions.ts";
export { freeze, thaw } from "./process-control.ts";
export { assertReplays, ReplayAssertionError, type ReplayOptions, replay } from "./replay.ts";
export { continueHistory, type ReplayedRun, type ReplayHistoryOptions, replayHistory } from "./replay-bench.ts";
export type { DivergedRun, Divergence, ReplayProblem, ReplayReport, RunReport } from "./replay-report.ts";
export { SeededRandom } from "./seeded-random.ts";
export type { StoreCall, StoreMethod } from "./store-calls.ts";
export { type ProxyTarget, type TcpProxy, tcpProxy } from "./tcp-proxy.ts";
export { VirtualClock } from "./virtual-clock.ts";
