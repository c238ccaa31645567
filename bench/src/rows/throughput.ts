/** Throughput in process: the client and the orchestrator share a process, as in a service that hosts its own workflows. */
import type { Client } from "@wovyr/sdk/client";
import type { Family, FamilyContext } from "../family.ts";
import { withPostgres } from "../host.ts";
import { repeat, type Throughput, throughput } from "../measure.ts";
import { type Row, throughputRow } from "../row.ts";
import { fanOutWorkload, oneStepWorkload, sequentialWorkload, type Workload } from "../workloads.ts";

const inFlight = 2_000;

type Measured = { readonly workload: Workload; readonly inFlight: number; readonly reach: number };

export const measured = {
  oneStep: { workload: oneStepWorkload(inFlight), inFlight, reach: 10_000 },
  sequential: { workload: sequentialWorkload(1_000, 10), inFlight: 1, reach: 30_000 },
  fanOut: { workload: fanOutWorkload(100, 100), inFlight: 1, reach: 30_000 },
} satisfies Record<string, Measured>;

/** One run of a workload on a client, or its warm-up. */
export function runOnce(client: Client, { workload, inFlight: going }: Measured, context: FamilyContext, part = 1): Promise<Throughput> {
  const options = { inFlight: going, seconds: context.seconds * part, size: workload.size, meter: context };
  return throughput(options, () => workload.once(client));
}

export async function throughputRows(client: Client, list: readonly Measured[], context: FamilyContext): Promise<Row[]> {
  const rows: Row[] = [];
  for (const each of list) {
    await runOnce(client, each, context, 0.5);
    const runs = await repeat(() => runOnce(client, each, context));
    rows.push(throughputRow(each.workload.name, each.workload.unit, runs, { against: "batch", reach: { atLeast: each.reach } }));
  }
  return rows;
}

const family = (name: string, title: string, list: readonly Measured[]): Family => ({
  name,
  title,
  databases: 1,
  deadline: 180,
  run: (context) => withPostgres(context.databases[0], ({ client }) => throughputRows(client, list, context)),
});

export const oneStepFamily = family("one-step", "Throughput of one-step workflows, in process, Postgres", [measured.oneStep]);
export const sequentialFamily = family("sequential", "Throughput of sequential steps, in process, Postgres", [measured.sequential]);
export const fanOutFamily = family("fan-out", "Throughput of fan-out, in process, Postgres", [measured.fanOut]);
