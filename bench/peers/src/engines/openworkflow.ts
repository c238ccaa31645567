/**
 * OpenWorkflow: a library in this process over Postgres.
 *
 * 1. Workers find runs, and clients find results, by asking again: workers after 100 ms to 1 s, clients after 1 s. Neither can be set.
 * 2. Throughput is therefore taken from the counts in the database, not from the client.
 * 3. A run may have 1,000 steps at most, which cannot be set; a longer one is refused here, before it would end as failed.
 * 4. A signal reaches only a run that waits already, so it is sent until it does.
 */
import { OpenWorkflow } from "openworkflow";
import { BackendPostgres } from "openworkflow/postgres";
import { Arrivals } from "../arrivals.ts";
import { type Engine, type EngineOptions, timeOfDay, type WorkloadName } from "../engine.ts";
import { Tally } from "../tally.ts";

/** As in its own benchmark. */
const concurrency = 100;
const sendAgainMilliseconds = 20;
const mostSteps = 1_000;

type Step = { run(config: { readonly name: string }, body: () => number | Promise<void>): Promise<number> };

const stepOf = (step: Step) => step.run({ name: "step" }, timeOfDay);

export async function start({ database, lastStep }: EngineOptions): Promise<Engine> {
  const backend = await BackendPostgres.connect(database);
  const client = new OpenWorkflow({ backend });
  const tally = new Tally();
  const arrivals = new Arrivals();
  const sequence = client.defineWorkflow<number, number>({ name: "sequence" }, async ({ input: steps, step }) => {
    const first = await stepOf(step as Step);
    let last = first;
    for (let done = 1; done < steps; done += 1) last = await stepOf(step as Step);
    tally.add();
    return last - first;
  });
  const fanOut = client.defineWorkflow<number, number>({ name: "fan-out" }, async ({ input: width, step }) => {
    const times = await Promise.all(Array.from({ length: width }, () => stepOf(step as Step)));
    tally.add();
    return times.length;
  });
  const waiting = client.defineWorkflow<string, null>({ name: "waiting" }, async ({ input: signal, step }) => {
    arrivals.arrive(signal);
    await step.waitForSignal({ signal, timeout: "1h" });
    return null;
  });
  const long = client.defineWorkflow<number, null>({ name: "long" }, async ({ input: steps, step }) => {
    for (let done = 0; done < steps; done += 1) await stepOf(step as Step);
    await (step as Step).run({ name: "last-step" }, lastStep);
    return null;
  });
  const named = { sequence, fanOut } satisfies Record<WorkloadName, unknown>;
  const completed = async () => (await backend.countWorkflowRuns()).completed;
  const worker = client.newWorker({ concurrency });
  await worker.start();
  let signals = 0;
  return {
    run: async (workload, size) => (await named[workload].run(size)).result(),
    async runAll(workload, size, count) {
      const before = { returned: tally.returned, completed: await completed() };
      await Promise.all(Array.from({ length: count }, () => named[workload].run(size)));
      await tally.reaches(before.returned, count, async () => (await completed()) - before.completed);
    },
    async startWaiting() {
      signals += 1;
      const signal = `go-${process.pid}-${signals}`;
      const arrival = arrivals.of(signal);
      const handle = await waiting.run(signal);
      await arrival;
      return {
        async deliver() {
          while ((await client.sendSignal({ signal })).workflowRunIds.length === 0)
            await new Promise((resolve) => setTimeout(resolve, sendAgainMilliseconds));
          await handle.result();
        },
      };
    },
    async startLong(steps) {
      if (steps > mostSteps) throw new Error(`a run may have ${mostSteps.toLocaleString("en")} steps at most`);
      await long.run(steps);
    },
    async close() {
      await worker.stop();
      await backend.stop();
    },
  };
}
