/** Measures one engine: throughput first, while nothing waits, then latency of the idle engine. */
import { percentile } from "../../src/measure.ts";
import type { Engine, WorkloadName } from "./engine.ts";
import { fanOutWidth, latencySteps, type MeasureName, type Sizes, sequenceSteps } from "./measures.ts";

export type Value = { readonly measure: MeasureName; readonly value: number };
export type Failure = { readonly measure: MeasureName; readonly failure: string };

/** From the start of a run until it surely waits for its event. */
const settleMilliseconds = 50;
const leastLatencies = 5;

export async function measureEngine(engine: Engine, sizes: Sizes, report: (result: Value | Failure) => void): Promise<void> {
  const take = async (measure: MeasureName, work: () => Promise<void>): Promise<void> => {
    try {
      await work();
    } catch (error) {
      report({ measure, failure: error instanceof Error ? error.message : String(error) });
    }
  };
  const throughput = (measure: MeasureName, workload: WorkloadName, size: number, runs: number) =>
    take(measure, async () => {
      await perSecond(sizes.warmUpSeconds, runs * size, () => engine.runAll(workload, size, runs));
      report({ measure, value: await perSecond(sizes.seconds, runs * size, () => engine.runAll(workload, size, runs)) });
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

/** Whole rounds of `units` for about `seconds`. */
async function perSecond(seconds: number, units: number, round: () => Promise<void>): Promise<number> {
  const began = performance.now();
  let rounds = 0;
  do {
    await round();
    rounds += 1;
  } while (performance.now() - began < seconds * 1_000);
  return (rounds * units * 1_000) / (performance.now() - began);
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
