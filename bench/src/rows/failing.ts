/** Activities that fail again and again: each attempt is recorded with its failure and waits for a durable timer, and none may be lost or made twice. */
import type { Family } from "../family.ts";
import { withPostgres } from "../host.ts";
import { repeat, type Throughput, throughput } from "../measure.ts";
import { throughputRow } from "../row.ts";
import { attempts, failingWorkload } from "../workloads.ts";

const megabyte = 1024 * 1024;

export const failingFamily: Family = {
  name: "failing",
  title: "Activities that fail three times before they succeed, in process, Postgres",
  databases: 1,
  deadline: 240,
  node: ["--expose-gc"],
  run: (context) =>
    withPostgres(context.databases[0], async ({ client }) => {
      const workload = failingWorkload(context.quick ? 20 : 100, 100);
      const heaps: number[] = [];
      const once = async (): Promise<Throughput> => {
        attempts.made = 0;
        // One round: it is as long as it is.
        const options = { inFlight: 1, seconds: 0.05, size: workload.size, meter: context };
        const measured = await throughput(options, () => workload.once(client));
        if (attempts.made !== workload.attempts) throw new Error(`${attempts.made} attempts were made instead of ${workload.attempts}`);
        globalThis.gc?.();
        heaps.push(process.memoryUsage().heapUsed / megabyte);
        return measured;
      };
      await once();
      const runs = await repeat(once);
      const [first = Number.NaN, ...later] = heaps;
      return [
        throughputRow(workload.name, workload.unit, runs, { against: "batch" }),
        {
          name: "heap after a round, beyond that after the first",
          unit: "MB",
          values: later.map((heap) => heap - first),
          reach: { atMost: 16 },
        },
      ];
    }),
};
