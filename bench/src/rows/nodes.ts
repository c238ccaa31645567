/** One, two and four orchestrators as processes over one database: what a workflow costs all of them and Postgres together, in process and through HTTP. */
import { setTimeout as sleep } from "node:timers/promises";
import postgres from "postgres";
import { familySeconds } from "../cpu.ts";
import type { Family, FamilyContext } from "../family.ts";
import { evenlySpread, LoadProcess } from "../load-processes.ts";
import type { Row } from "../row.ts";

const counts = [1, 2, 4];
/** Of all nodes together. */
const inFlight = 2_000;
const connections = 64;

type Cost = { readonly perSecond: number; readonly microseconds: number };

async function costOf(seconds: number, context: FamilyContext, work: () => Promise<readonly number[]>): Promise<Cost> {
  const processor = () =>
    (familySeconds(process.pid) ?? Number.NaN) + (context.postmaster === undefined ? 0 : (familySeconds(context.postmaster) ?? 0));
  const before = processor();
  const began = performance.now();
  const done = (await work()).reduce((sum, each) => sum + each, 0);
  const took = Math.max(seconds, (performance.now() - began) / 1_000);
  return { perSecond: done / took, microseconds: ((processor() - before) * 1e6) / done };
}

/** Statements a second that an idle node sends, by the database's own count of transactions. */
async function idleStatements(database: string, nodes: number, seconds: number): Promise<number> {
  const sql = postgres(database, { max: 1, fetch_types: false, onnotice: () => {} });
  try {
    const count = async () => {
      const [row] = await sql<{ count: number }[]>`
        select (xact_commit + xact_rollback)::float8 as count from pg_stat_database where datname = current_database()`;
      return row?.count ?? Number.NaN;
    };
    await sleep(2_000);
    const before = await count();
    const began = performance.now();
    await sleep(seconds * 1_000);
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
    const share = { inFlight: Math.ceil(inFlight / count), seconds: context.seconds };
    const inProcess = () => costOf(share.seconds, context, () => Promise.all(nodes.map((node) => node.ask({ what: "run", ...share }))));
    const http = () =>
      costOf(share.seconds, context, () =>
        Promise.all(
          callers.map((caller, at) =>
            caller.ask({
              what: "call",
              url: nodes[at]?.url ?? "",
              connections: Math.ceil(connections / count),
              inFlight: 256 / count,
              seconds: context.seconds,
            }),
          ),
        ),
      );
    for (let warmUp = 0; warmUp < 2; warmUp += 1) await inProcess();
    const direct = [await inProcess(), await inProcess(), await inProcess()];
    await http();
    const called = [await http(), await http(), await http()];
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
        values: [await idleStatements(database, count, context.quick ? 3 : 15)],
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
