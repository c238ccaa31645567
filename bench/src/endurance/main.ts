/**
 * `npm run bench:endurance [-- seconds=600] [every=20] [nodes=3] [callers=64] [seed=1] [svg=endurance.svg]`
 *
 * Keeps several orchestrators over one Postgres at work while one of them is killed every `every` seconds, and started again five seconds later.
 *
 * 1. No order may be lost: each is answered, with its own result, and none is open at the end.
 * 2. None may be doubled: the ledger, which the payments write in their own transactions, holds each of them once.
 */
import { writeFileSync } from "node:fs";
import { SeededRandom } from "@wovyr/testing";
import postgres from "postgres";
import { percentile } from "../measure.ts";
import { openPostgres } from "../postgres.ts";
import { machineLines } from "../table.ts";
import { Load } from "./load.ts";
import { type Node, Nodes } from "./nodes.ts";
import { plot } from "./plot.ts";
import { order } from "./workloads.ts";

const asked = Object.fromEntries(process.argv.slice(2).map((argument) => argument.split("=", 2)));
const number = (name: string, usual: number) => {
  const value = Number(asked[name] ?? usual);
  if (!Number.isFinite(value) || value < 0) throw new Error(`${name} must be a number, not "${asked[name]}"`);
  return value;
};
const options = {
  seconds: number("seconds", 600),
  every: number("every", 20),
  nodes: number("nodes", 3),
  callers: number("callers", 64),
  seed: number("seed", 1),
};
const pause = (milliseconds: number) => new Promise((resolve) => setTimeout(resolve, milliseconds));
const down = 5_000;

/** Kills and restarts until `until` seconds have passed. */
async function killAll(nodes: Nodes, load: Load, random: SeededRandom): Promise<{ at: number; node: string }[]> {
  const kills: { at: number; node: string }[] = [];
  for (let next = options.every; next < options.seconds - options.every / 2; next += options.every) {
    await pause(Math.max(0, (next - load.elapsed) * 1_000));
    const node = nodes.all[Math.floor(random.fraction() * nodes.all.length)] as Node;
    kills.push({ at: load.elapsed, node: node.name });
    await nodes.kill(node);
    await pause(down);
    await nodes.restart(node);
  }
  await pause(Math.max(0, (options.seconds - load.elapsed) * 1_000));
  return kills;
}

async function check(database: string, load: Load): Promise<string[]> {
  const sql = postgres(database, { max: 1, onnotice: () => {} });
  try {
    const faults = [...load.wrong];
    const [ledger] = await sql<
      { rows: number; keys: number }[]
    >`select count(*)::int as rows, count(distinct key)::int as keys from ledger`;
    const paid = Math.floor(load.started / 5);
    if (ledger?.rows !== paid || ledger.keys !== paid)
      faults.push(`the ledger holds ${ledger?.rows} rows of ${ledger?.keys} orders; ${paid} were paid`);
    const [runs] = await sql<{ all: number; closed: number }[]>`
      select count(*)::int as all, count(*) filter (where status = 'Completed')::int as closed from wovyr.instances where workflow = ${order.name}`;
    if (runs?.all !== load.started || runs.closed !== load.started)
      faults.push(`${load.started} orders were started; there are ${runs?.all} runs, of which ${runs?.closed} completed`);
    if (load.done !== load.started) faults.push(`${load.started - load.done} orders were never answered`);
    return faults;
  } finally {
    await sql.end();
  }
}

const server = await openPostgres();
const database = await server.create();
const nodes = new Nodes(database);
try {
  console.log(machineLines(server.about).join("\n"));
  console.log(`${JSON.stringify(options)}`);
  const sql = postgres(database, { max: 1 });
  await sql`create table ledger (key text not null)`;
  await sql.end();
  await nodes.start(options.nodes);
  const load = new Load(nodes.all, `e${options.seed}`);
  const answered = load.keepUp(options.callers);
  const kills = await killAll(nodes, load, new SeededRandom(options.seed));
  load.stop();
  await answered;
  const faults = await check(database, load);
  const all = load.seconds.flatMap(({ latencies }) => latencies).sort((a, b) => a - b);
  const quietest = [...load.seconds.slice(0, options.seconds)].sort((a, b) => a.latencies.length - b.latencies.length)[0];
  console.log(`kills: ${kills.map(({ at, node }) => `${node} at ${at.toFixed(1)} s`).join(", ") || "none"}`);
  console.log(
    `${load.done} orders, ${(load.done / load.elapsed).toFixed(0)}/s; p50 ${percentile(all, 0.5).toFixed(1)} ms, p99 ${percentile(all, 0.99).toFixed(0)} ms, longest ${all.at(-1)?.toFixed(0)} ms`,
  );
  console.log(
    `in the quietest second ${quietest?.latencies.length} were completed; ${load.seconds.reduce((sum, { retries }) => sum + retries, 0)} calls were made again`,
  );
  const file = asked.svg ?? "endurance.svg";
  writeFileSync(
    file,
    plot(
      `${options.nodes} orchestrators, one Postgres, one node killed every ${options.every} s`,
      load.seconds,
      kills.map(({ at }) => at),
    ),
  );
  console.log(`drawn in ${file}`);
  console.log(faults.length === 0 ? "Nothing was lost, nothing was doubled." : `FAULTS:\n${faults.slice(0, 20).join("\n")}`);
  if (faults.length > 0) process.exitCode = 1;
} finally {
  await nodes.stop();
  await server.drop(database);
  await server.stop();
}
