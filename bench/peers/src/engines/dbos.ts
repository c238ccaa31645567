/** DBOS Transact: a library in this process over Postgres. Workflows are called as functions, the shortest documented way to a result, and wake by LISTEN/NOTIFY (the default). */
import { DBOS } from "@dbos-inc/dbos-sdk";
import { bounded, type Engine, type EngineOptions, timeOfDay, type WorkloadName } from "../engine.ts";

const connections = 20;
const inFlight = 200;

const step = () => DBOS.runStep(async () => timeOfDay(), { name: "step" });

const sequence = DBOS.registerWorkflow(
  async (steps: number) => {
    const first = await step();
    let last = first;
    for (let done = 1; done < steps; done += 1) last = await step();
    return last - first;
  },
  { name: "sequence" },
);

const fanOut = DBOS.registerWorkflow(async (width: number) => (await Promise.all(Array.from({ length: width }, step))).length, {
  name: "fan-out",
});

const waiting = DBOS.registerWorkflow(
  async () => {
    await DBOS.recv("go", 600);
  },
  { name: "waiting" },
);

const named: Record<WorkloadName, (size: number) => Promise<number>> = { sequence, fanOut };

/** Without the table as its `this`, which would be taken for an instance. */
function run(workload: WorkloadName, size: number): Promise<number> {
  const { [workload]: call } = named;
  return call(size);
}

export async function start({ database, lastStep }: EngineOptions): Promise<Engine> {
  const long = DBOS.registerWorkflow(
    async (steps: number) => {
      for (let done = 0; done < steps; done += 1) await step();
      await DBOS.runStep(lastStep, { name: "last-step" });
    },
    { name: "long" },
  );
  DBOS.setConfig({
    name: "bench-peers",
    systemDatabaseUrl: database,
    systemDatabasePoolSize: connections,
    applicationVersion: "1",
    logLevel: "error",
  });
  await DBOS.launch();
  return {
    run,
    runAll: (workload, size, count) => bounded(inFlight, count, () => run(workload, size)),
    async startWaiting() {
      const handle = await DBOS.startWorkflow(waiting)();
      return {
        async deliver() {
          await Promise.all([DBOS.send(handle.workflowID, "go", "go"), handle.getResult()]);
        },
      };
    },
    async startLong(steps) {
      await DBOS.startWorkflow(long)(steps);
    },
    close: () => DBOS.shutdown(),
  };
}
