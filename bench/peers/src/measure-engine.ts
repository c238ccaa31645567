/**
 * Measures one engine: throughput first, while nothing waits, then latency of the idle engine.
 *
 * Processor time is that of this process and its children (Restate's server) and of the database's processes, during the measurement of throughput.
 */
import { familySeconds } from "../../src/cpu.ts";
import { percentile } from "../../src/measure.ts";
import type { Engine, WorkloadName } from "./engine.ts";
import { fanOutWidth, latencySteps, type MeasureName, type Sizes, sequenceSteps } from "./measures.ts";

export type Value = { readonly measure: MeasureName; readonly value: number };
export type Failure = { readonly measure: MeasureName; readonly failure: string };

/** From the start of a run until it surely waits for its event. */
const settleMilliseconds = 50;
const leastLatencies = 5;

export type MeasureOptions = {
  readonly sizes: Sizes;
  /** The database server's first process, when its processor time can be read. */
  readonly postmaster: number | undefined;
  readonly report: (result: Value | Failure) => void;
};

export async function measureEngine(engine: Engine, { sizes, postmaster, report }: MeasureOptions): Promise<void> {
  const take = async (measure: MeasureName, work: () => Promise<void>): Promise<void> => {
    try {
      await work();
    } catch (error) {
      report({ measure, failure: error instanceof Error ? error.message : String(error) });
    }
  };
  const throughput = (measure: "oneStep" | "sequence" | "fanOut", workload: WorkloadName, size: number, runs: number) =>
    take(measure, async () => {
      const round = () => engine.runAll(workload, size, runs);
      await repeat(sizes.warmUpSeconds, round);
      const cpuBefore = cpuSeconds(postmaster);
      const { rounds, seconds } = await repeat(sizes.seconds, round);
      const cpuAfter = cpuSeconds(postmaster);
      const units = rounds * runs * size;
      report({ measure, value: units / seconds });
      if (cpuBefore === undefined || cpuAfter === undefined) report({ measure: `${measure}Cpu`, failure: "it cannot be read here" });
      else report({ measure: `${measure}Cpu`, value: ((cpuAfter - cpuBefore) * 1e6) / units });
    });
  await throughput("oneStep", "sequence", 1, sizes.oneStepRuns);
  await throughput("sequence", "sequence", sequenceSteps, sizes.sequenceRuns);
  await throughput("fanOut", "fanOut", fanOutWidth, sizes.fanOutRuns);
  await take("latency", async () => {
    const values = await latencies(sizes, () => timed(() => engine.run("sequence", 1)));
    report({ measure: "latency", value: percentile(values, 0.5) });
    report({ measure: "latencyHigh", value: percentile(values, 0.99) });
  });
  await take("stepLatency", async () => {
    const values = await latencies(sizes, async () => (await engine.run("sequence", latencySteps)) / (latencySteps - 1));
    report({ measure: "stepLatency", value: percentile(values, 0.5) });
  });
  await take("eventLatency", async () => {
    const values = await latencies(sizes, async () => {
      const run = await engine.startWaiting();
      await new Promise((resolve) => setTimeout(resolve, settleMilliseconds));
      return timed(() => run.deliver());
    });
    report({ measure: "eventLatency", value: percentile(values, 0.5) });
  });
}

/** Whole rounds for about so many seconds. */
async function repeat(seconds: number, round: () => Promise<void>): Promise<{ rounds: number; seconds: number }> {
  const began = performance.now();
  let rounds = 0;
  do {
    await round();
    rounds += 1;
  } while (performance.now() - began < seconds * 1_000);
  return { rounds, seconds: (performance.now() - began) / 1_000 };
}

function cpuSeconds(postmaster: number | undefined): number | undefined {
  const here = familySeconds(process.pid);
  const there = postmaster === undefined ? undefined : familySeconds(postmaster);
  return here === undefined || there === undefined ? undefined : here + there;
}

/** Sorted; the first tenth is the warm-up and left out. */
async function latencies({ latencies: most, latencySeconds }: Sizes, once: () => Promise<number>): Promise<number[]> {
  const values: number[] = [];
  const end = performance.now() + latencySeconds * 1_000;
  while (values.length < most && (values.length < leastLatencies || performance.now() < end)) values.push(await once());
  return values.slice(Math.floor(values.length / 10)).sort((a, b) => a - b);
}

async function timed(work: () => Promise<unknown>): Promise<number> {
  const began = performance.now();
  await work();
  return performance.now() - began;
}
