/** What is measured, and what is to be reached. */
export type MeasureName =
  | "oneStep"
  | "sequence"
  | "fanOut"
  | "oneStepCpu"
  | "sequenceCpu"
  | "fanOutCpu"
  | "latency"
  | "latencyHigh"
  | "stepLatency"
  | "eventLatency"
  | "recovery"
  | "recoveryStart";

export type Measure = {
  readonly name: MeasureName;
  readonly title: string;
  readonly unit: string;
  readonly better: "more" | "less";
  readonly reach?: Reach;
};

export type Reach =
  /** So many times as good as one peer, and as the best of them. */
  | { readonly times: number; readonly thanBest: true }
  | { readonly times: number; readonly than: string; readonly timesBest: number }
  /** In the measure's unit. */
  | { readonly atMost: number };

export const sequenceSteps = 10;
export const latencySteps = 20;
export const fanOutWidth = 100;
export const longSteps = 2_000;

const throughput = { than: "dbos", times: 10, timesBest: 5 } as const;
const half = { times: 2, thanBest: true } as const;

export const measures: readonly Measure[] = [
  { name: "oneStep", title: "Workflows of 1 step", unit: "workflows/s", better: "more", reach: throughput },
  { name: "sequence", title: `Workflows of ${sequenceSteps} steps`, unit: "steps/s", better: "more", reach: throughput },
  { name: "fanOut", title: `Fan-out of ${fanOutWidth} steps`, unit: "steps/s", better: "more", reach: throughput },
  { name: "oneStepCpu", title: "Processor time of a workflow of 1 step", unit: "µs", better: "less" },
  { name: "sequenceCpu", title: `Processor time of a step of ${sequenceSteps}`, unit: "µs", better: "less" },
  { name: "fanOutCpu", title: `Processor time of a step of a fan-out of ${fanOutWidth}`, unit: "µs", better: "less" },
  { name: "latency", title: "1-step workflow, idle engine, p50", unit: "ms", better: "less", reach: half },
  { name: "latencyHigh", title: "1-step workflow, idle engine, p99", unit: "ms", better: "less" },
  { name: "stepLatency", title: `From step to step of ${latencySteps}, idle engine, p50`, unit: "ms", better: "less", reach: half },
  { name: "eventLatency", title: "From an event to the result, idle engine, p50", unit: "ms", better: "less", reach: half },
  {
    name: "recovery",
    title: `Recovery of a run of ${longSteps.toLocaleString("en")} steps, from the start of the process`,
    unit: "s",
    better: "less",
    reach: { atMost: 0.3 },
  },
  { name: "recoveryStart", title: "The same, from the start of the engine in it", unit: "s", better: "less" },
];

export type Sizes = {
  /** Of one throughput measurement, and of its warm-up. */
  readonly seconds: number;
  readonly warmUpSeconds: number;
  /** Runs started at once. */
  readonly oneStepRuns: number;
  readonly sequenceRuns: number;
  readonly fanOutRuns: number;
  /** At most, of each latency; a measurement ends after `latencySeconds` as well. */
  readonly latencies: number;
  readonly latencySeconds: number;
};

export const fullSizes: Sizes = {
  seconds: 4,
  warmUpSeconds: 1.5,
  oneStepRuns: 1_000,
  sequenceRuns: 200,
  fanOutRuns: 20,
  latencies: 500,
  latencySeconds: 8,
};

export const quickSizes: Sizes = {
  seconds: 0.5,
  warmUpSeconds: 0.2,
  oneStepRuns: 100,
  sequenceRuns: 20,
  fanOutRuns: 2,
  latencies: 50,
  latencySeconds: 3,
};
