/** One, two and four orchestrators as processes over one database: what a workflow costs all of them and Postgres together, in process and through HTTP. */
import { setTimeout as sleep } from "node:timers/promises";
import postgres from "postgres";
import { familySeconds } from "../cpu.ts";
import type { Family, FamilyContext } from "../family.ts";
import { evenlySpread, LoadProcess } from "../load-processes.ts";
import { repeat } from "../measure.ts";
import type { Row } from "../row.ts";

const counts = [1, 2, 4];
/** Of each node. */
const inFlight = 1_000;
const connections = 32;
const callsInFlight = 128;
/** What each process has run before it is measured: its code is compiled by how often it ran, not by how long. */
const warmUp = { direct: 20_000, called: 10_000 };

type Cost = { readonly perSecond: number; readonly microseconds: number };

/** Until each process has done so many. */
async function warm(calls: number, work: () => Promise<readonly number[]>): Promise<void> {
  let done: readonly number[] = [];
  while (done.length === 0 || Math.min(...done) < calls) {
    const more = await work();
    done = more.map((count, at) => count + (done[at] ?? 0));
  }
}

async function costOf(context: FamilyContext, work: () => Promise<readonly number[]>): Promise<Cost> {
  const processor = () =>
    (familySeconds(process.pid) ?? Number.NaN) + (context.postmaster === undefined ? 0 : (familySeconds(context.postmaster) ?? 0));
  const before = processor();
  const began = performance.now();
  const done = (await work()).reduce((sum, each) => sum + each, 0);
  const took = Math.max(context.seconds, (performance.now() - began) / 1_000);
  return { perSecond: done / took, microseconds: ((processor() - before) * 1e6) / done };
}

/** Statements a second that an idle node sends, by the database's own count of transactions. */
async function idleStatements(database: string, nodes: number, { quick }: FamilyContext): Promise<number> {
  const sql = postgres(database, { max: 1, fetch_types: false, onnotice: () => {} });
  try {
    const count = async () => {
      const [row] = await sql<{ count: number }[]>`
        select (xact_commit + xact_rollback)::float8 as count from pg_stat_database where datname = current_database()`;
      return row?.count ?? Number.NaN;
    };
    // Connections report what they did with a delay, so what was done while the nodes came is let go by.
    await sleep(quick ? 2_000 : 12_000);
    const before = await count();
    const began = performance.now();
    await sleep(quick ? 3_000 : 20_000);
    return ((await count()) - before) / ((performance.now() - began) / 1_000) / nodes;
  } finally {
    await sql.end();
  }
}

async function measure(database: string, count: number, context: FamilyContext): Promise<Row[]> {
  const nodes: LoadProcess[] = [];
  const callers: LoadProcess[] = [];
  try {
    for (let at = 0; at < count; at += 1) nodes.push(await LoadProcess.start(database));
    for (let at = 0; at < count; at += 1) callers.push(await LoadProcess.start(undefined));
    await evenlySpread(count, () => Promise.all(nodes.map((node) => node.ask({ what: "shards" }))));
    const idle = await idleStatements(database, count, context);
    const { seconds } = context;
    const inProcess = () => Promise.all(nodes.map((node) => node.ask({ what: "run", inFlight, seconds })));
    const http = () =>
      Promise.all(
        callers.map((caller, at) => caller.ask({ what: "call", url: nodes[at]?.url ?? "", connections, inFlight: callsInFlight, seconds })),
      );
    await warm(context.quick ? warmUp.direct / 10 : warmUp.direct, inProcess);
    const direct = await repeat(() => costOf(context, inProcess));
    await warm(context.quick ? warmUp.called / 10 : warmUp.called, http);
    const called = await repeat(() => costOf(context, http));
    const many = `${count} ${count === 1 ? "orchestrator" : "orchestrators"}`;
    const rows = (name: string, costs: readonly Cost[]): Row[] => [
      { name: `${many}, ${name}`, unit: "workflows/s", values: costs.map(({ perSecond }) => perSecond), against: "batch" },
      { name: `${many}, ${name}, processor time of all processes`, unit: "µs", values: costs.map(({ microseconds }) => microseconds) },
    ];
    return [
      ...rows("in process", direct),
      ...rows("through HTTP, callers included", called),
      {
        name: `${many}, idle: statements of each`,
        unit: "/s",
        values: [idle],
        reach: { atMost: 5 },
      },
    ];
  } finally {
    await Promise.all([...nodes, ...callers].map((each) => each.stop()));
  }
}

export const nodesFamily: Family = {
  name: "nodes",
  title: "One-step workflows on several orchestrators, each a process, over one Postgres; all on these cores",
  databases: counts.length,
  deadline: 600,
  async run(context) {
    const rows: Row[] = [];
    for (const [at, count] of counts.entries()) rows.push(...(await measure(context.databases[at] as string, count, context)));
    return rows;
  },
};
