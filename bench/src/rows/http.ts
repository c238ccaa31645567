/** The same through HTTP: the orchestrator here, the client in another process. */
import { type ChildProcess, fork } from "node:child_process";
import { join } from "node:path";
import { cpuMeter } from "../cpu.ts";
import type { Family, FamilyContext } from "../family.ts";
import { withPostgres } from "../host.ts";
import type { HttpAnswer, HttpAsk, HttpKind, HttpOrder } from "../http-client.ts";
import { repeat, type Throughput } from "../measure.ts";
import { type Row, throughputRow } from "../row.ts";

const connections = 64;
const inFlight = 256;
const kinds: readonly (readonly [HttpKind, string])[] = [
  ["raw", "raw ?wait= requests"],
  ["sdk", "SDK client"],
];

type Reply = { readonly value: HttpAnswer } | { readonly failure: string };

class ClientProcess {
  readonly #child: ChildProcess;
  #settle: ((reply: Reply) => void) | undefined;

  constructor(order: HttpOrder) {
    this.#child = fork(join(import.meta.dirname, "..", "http-client-process.ts"), [JSON.stringify(order)], {
      execArgv: process.execArgv.filter((argument) => !argument.startsWith("--cpu-prof")),
    });
    this.#child.on("message", (reply: Reply) => this.#settle?.(reply));
    this.#child.once("exit", () => this.#settle?.({ failure: "the client's process ended" }));
  }

  async ask(ask: HttpAsk): Promise<HttpAnswer> {
    const reply = await new Promise<Reply>((resolve) => {
      this.#settle = resolve;
      this.#child.send(ask);
    });
    if ("failure" in reply) throw new Error(reply.failure);
    return reply.value;
  }

  close(): void {
    this.#child.kill("SIGKILL");
  }
}

async function rowsOf(client: ClientProcess, kind: HttpKind, label: string, context: FamilyContext): Promise<Row[]> {
  await client.ask({ kind, what: "throughput" });
  const runs = await repeat(async (): Promise<Throughput & { client: number }> => {
    const cpu = cpuMeter(context);
    const began = performance.now();
    const { value, cpu: clientCpu } = await client.ask({ kind, what: "throughput" });
    const units = (value * (performance.now() - began)) / 1_000;
    const { ours, theirs } = cpu();
    return {
      perSecond: value,
      ours: (ours * 1e6) / units,
      theirs: theirs === undefined ? undefined : (theirs * 1e6) / units,
      client: clientCpu,
    };
  });
  const idle = await repeat(() => client.ask({ kind, what: "latency" }));
  const name = `one-step runs through HTTP, ${label}, ${connections} connections, ${inFlight} in flight`;
  const row = throughputRow(name, "runs/s", runs, { against: "batch", reach: { atLeast: 5_000 } });
  const latency = `one-step run through HTTP, ${label}, idle`;
  return [
    { ...row, note: `${row.note}, ${(runs[0]?.client ?? 0).toFixed(0)} µs in the client` },
    { name: `${latency}, p50`, unit: "ms", values: idle.map(({ value }) => value), against: "insert" },
    { name: `${latency}, p99`, unit: "ms", values: idle.map(({ p99 }) => p99), against: "insert" },
  ];
}

export const httpFamily: Family = {
  name: "http",
  title: "Through HTTP, client in another process, Postgres",
  databases: 1,
  deadline: 180,
  run: (context) =>
    withPostgres(context.databases[0], async (orchestrator) => {
      const url = await orchestrator.listen({ port: 0 });
      const client = new ClientProcess({ url, connections, inFlight, seconds: context.seconds, latencies: context.quick ? 150 : 1_000 });
      try {
        const rows: Row[] = [];
        for (const [kind, label] of kinds) rows.push(...(await rowsOf(client, kind, label, context)));
        return rows;
      } finally {
        client.close();
      }
    }),
};
