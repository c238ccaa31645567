/** The testing kit: the real engine over a virtual clock, and what makes it stumble. */

// Every crash, many orders
export { delivery } from "@wovyr/sdk/client";
// What happened
export { assertCalled, assertNotCalled, type CalledFake } from "./assertions/calls.ts";
export { checkEndOfCase, type EndOfCaseOptions } from "./assertions/end-of-case.ts";
export { assertEffects, assertHistory, assertNothingOpen, type EventShape, effectsOf } from "./assertions/history.ts";
export { matches } from "./assertions/match.ts";
// The environment
export { createTestEnvironment, TestEnvironment } from "./environment/environment.ts";
export type { TestEnvironmentOptions, TestLimits } from "./environment/environment-options.ts";
export { ExecutionRecord } from "./environment/execution-record.ts";
export type { LogLine } from "./environment/log-lines.ts";
export { SeededRandom } from "./environment/seeded-random.ts";
export { VirtualClock } from "./environment/virtual-clock.ts";
export type { FrozenEngine } from "./environment/zombies.ts";
export {
  type Exploration,
  ExplorationError,
  type ExploredRun,
  type ExploreOptions,
  explore,
} from "./explore/explore.ts";
export { type ExploredEvent, publication } from "./explore/publication.ts";
// Stand-ins
export { type AwaitedBy, type Fake, type FakeCall, type FakeEventOptions, fake } from "./fakes/fake.ts";
export { Gate, type GateCall } from "./fakes/gate.ts";
// Stores, networks and processes that fail
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
} from "./faults/faulty-store.ts";
export { type CutOptions, cutSessions } from "./faults/postgres-sessions.ts";
export { freeze, thaw } from "./faults/process-control.ts";
export type { StoreCall, StoreMethod } from "./faults/store-calls.ts";
export { type ProxyTarget, type TcpProxy, tcpProxy } from "./faults/tcp-proxy.ts";
export { type HistoryTextOptions, historyText } from "./history/history-text.ts";
// New code against old histories
export { type SaveHistoryOptions, saveHistory } from "./replay/history-file.ts";
export type { Histories, LiveHistories } from "./replay/history-source.ts";
export { assertReplays, ReplayAssertionError, type ReplayOptions, replay } from "./replay/replay.ts";
export { continueHistory, type ReplayedRun, type ReplayHistoryOptions, replayHistory } from "./replay/replay-bench.ts";
export type { DivergedRun, Divergence, ReplayProblem, ReplayReport, RunReport } from "./replay/replay-report.ts";
