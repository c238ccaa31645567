/** Latency in process, of an engine that has nothing else to do. */
import type { Client } from "@wovyr/sdk/client";
import type { Family } from "../family.ts";
import { withPostgres } from "../host.ts";
import { latencies, percentile, repeat } from "../measure.ts";
import type { Row } from "../row.ts";
import { oneStep, sequential } from "../workloads.ts";

const steps = 20;

export async function latencyRows(client: Client, quick: boolean): Promise<Row[]> {
  const single = () => client.execute(oneStep, 1);
  const twenty = () => client.execute(sequential, steps);
  const [singles, twenties] = quick ? [200, 20] : [1_500, 150];
  await latencies(singles / 2, single);
  const one = await repeat(() => latencies(singles, single));
  await latencies(twenties / 2, twenty);
  const many = await repeat(() => latencies(twenties, twenty));
  const part = (runs: readonly number[][], share: number, by = 1) => runs.map((run) => percentile(run, share) / by);
  return [
    { name: "one-step workflow, idle engine, p50", unit: "ms", values: part(one, 0.5), against: "insert", reach: { inserts: 5 } },
    { name: "one-step workflow, idle engine, p99", unit: "ms", values: part(one, 0.99), against: "insert" },
    {
      name: `step of a ${steps}-step workflow, p50`,
      unit: "ms",
      values: part(many, 0.5, steps),
      against: "insert",
      reach: { inserts: 2.5 },
    },
    { name: `step of a ${steps}-step workflow, p99 of runs`, unit: "ms", values: part(many, 0.99, steps), against: "insert" },
  ];
}

export const latencyFamily: Family = {
  name: "latency",
  title: "Latency, in process, Postgres",
  databases: 1,
  deadline: 120,
  run: ({ databases, quick }) => withPostgres(databases[0], ({ client }) => latencyRows(client, quick)),
};
