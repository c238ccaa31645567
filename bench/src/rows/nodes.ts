/** One, two and four orchestrators as processes over one database: what a workflow costs all of them and Postgres together, in process and through HTTP. */
import { type ChildProcess, fork } from "node:child_process";
import { once } from "node:events";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import postgres from "postgres";
import { familySeconds } from "../cpu.ts";
import type { Family, FamilyContext } from "../family.ts";
import type { Row } from "../row.ts";

const counts = [1, 2, 4];
const startLimit = 60_000;
/** Of all nodes together. */
const inFlight = 2_000;
const connections = 64;
const spreadLimit = 30_000;

export type NodeAsk =
  | { readonly what: "shards" }
  | { readonly what: "run"; readonly inFlight: number; readonly seconds: number }
  | { readonly what: "call"; readonly url: string; readonly connections: number; readonly inFlight: number; readonly seconds: number };
export type NodeAnswer = { readonly value: number; readonly failure?: string };

/** A process with an orchestrator, or with none (`undefined`): a caller. */
class LoadProcess {
  readonly #child: ChildProcess;
  url = "";

  private constructor(child: ChildProcess) {
    this.#child = child;
  }

  static async start(database: string | undefined): Promise<LoadProcess> {
    const child = fork(join(import.meta.dirname, "..", "load-process.ts"), database === undefined ? [] : [database], {
      execArgv: [...process.execArgv.filter((argument) => !argument.startsWith("--cpu-prof"))],
      stdio: ["ignore", "inherit", "inherit", "ipc"],
    });
    const started = new LoadProcess(child);
    const [message] = (await once(child, "message", { signal: AbortSignal.timeout(startLimit) })) as [{ url: string }];
    started.url = message.url;
    return started;
  }

  async ask(ask: NodeAsk): Promise<number> {
    const answered = once(this.#child, "message", { signal: AbortSignal.timeout(startLimit) }) as Promise<[NodeAnswer]>;
    this.#child.send(ask);
    const [{ value, failure }] = await answered;
    if (failure !== undefined) throw new Error(failure);
    return value;
  }

  async stop(): Promise<void> {
    const gone = once(this.#child, "exit");
    this.#child.kill("SIGTERM");
    await gone;
  }
}

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

async function evenlySpread(nodes: readonly LoadProcess[]): Promise<void> {
  const end = performance.now() + spreadLimit;
  for (;;) {
    const shards = await Promise.all(nodes.map((node) => node.ask({ what: "shards" })));
    if (Math.min(...shards) >= Math.floor(256 / nodes.length)) return;
    if (performance.now() > end) throw new Error(`the shards are not spread: ${shards.join(", ")}`);
    await sleep(100);
  }
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
    await evenlySpread(nodes);
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
    await inProcess();
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
        reach: { atMost: 10 },
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
