/** The first rows again in a database that holds many finished instances, in turn with an empty one, before and after ANALYZE. */
import { type Orchestrator, postgresStore } from "@wovyr/server";
import type { Family, FamilyContext } from "../family.ts";
import { analyze, fillFinished } from "../finished-instances.ts";
import { withOrchestrator, withPostgres } from "../host.ts";
import { latencies, median, percentile, repeat } from "../measure.ts";
import type { Row } from "../row.ts";
import { oneStep } from "../workloads.ts";
import { measured, runOnce } from "./throughput.ts";

const allowed = 0.2;

type Sample = { readonly oneStep: number; readonly sequential: number; readonly latency: number };

async function sample({ client }: Orchestrator, context: FamilyContext): Promise<Sample> {
  const count = context.quick ? 60 : 500;
  await runOnce(client, measured.oneStep, context, 0.5);
  return {
    oneStep: (await runOnce(client, measured.oneStep, context)).perSecond,
    sequential: (await runOnce(client, measured.sequential, context)).perSecond,
    latency: percentile(await latencies(count, () => client.execute(oneStep, 1)), 0.5),
  };
}

/** Alternates between the two databases, so that both see the same moods of the machine. */
async function compare(empty: string, full: string, label: string, context: FamilyContext): Promise<Row[]> {
  const pairs = await repeat(async () => ({
    empty: await withPostgres(empty, (orchestrator) => sample(orchestrator, context)),
    full: await withPostgres(full, (orchestrator) => sample(orchestrator, context)),
  }));
  const row = (name: string, unit: string, key: keyof Sample, better: "more" | "less"): Row => {
    const values = pairs.map((pair) => pair.full[key]);
    const before = median(pairs.map((pair) => pair.empty[key]));
    const change = (median(values) / before - 1) * 100;
    return {
      name: `${name}, ${label}`,
      unit,
      values,
      reach: better === "more" ? { atLeast: before * (1 - allowed) } : { atMost: before * (1 + allowed) },
      note: `empty tables: ${before.toPrecision(4)} ${unit}; change ${change > 0 ? "+" : ""}${change.toFixed(0)} %`,
    };
  };
  return [
    row(measured.oneStep.workload.name, "workflows/s", "oneStep", "more"),
    row(measured.sequential.workload.name, "steps/s", "sequential", "more"),
    row("one-step latency p50", "ms", "latency", "less"),
  ];
}

export const millionFamily: Family = {
  name: "million",
  title: "With many finished instances in the database, against empty tables, Postgres",
  databases: 2,
  deadline: 600,
  async run(context) {
    const [empty, full] = context.databases as [string, string];
    const count = context.quick ? 20_000 : 1_000_000;
    const label = count.toLocaleString("en");
    await withOrchestrator({ store: postgresStore(full) }, async () => {});
    await fillFinished(full, count);
    const rows = await compare(empty, full, `${label} finished, no statistics`, context);
    await analyze(full);
    return [...rows, ...(await compare(empty, full, `${label} finished, after ANALYZE`, context))];
  },
};
