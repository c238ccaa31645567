/** A thundering herd: timers of a whole outage that are due at once when an orchestrator starts, and new work that comes meanwhile. */
import { sleepUntil, workflow } from "@wovyr/sdk";
import type { Client } from "@wovyr/sdk/client";
import { createOrchestrator, postgresStore } from "@wovyr/server";
import type { Family } from "../family.ts";
import { withPostgres } from "../host.ts";
import { latencies, percentile } from "../measure.ts";
import type { Row } from "../row.ts";
import { oneStep, workflows } from "../workloads.ts";
import { settledHeap } from "./suspended.ts";

const batch = 1_000;
const megabyte = 2 ** 20;

let awake = 0;
const late = workflow("bench-late", async function* (due: Date) {
  yield* sleepUntil(due);
  awake += 1;
});

const open = (url: string) => createOrchestrator({ workflows: [...workflows, late], store: postgresStore(url) });

async function gather(client: Client, count: number, due: Date): Promise<void> {
  for (let started = 0; started < count; started += batch)
    for (const outcome of await client.startBatch(
      late,
      Array.from({ length: Math.min(batch, count - started) }, () => ({ input: due })),
    ))
      if (!outcome.ok) throw outcome.error;
}

async function herd(url: string, count: number): Promise<{ seconds: number; alone: number[]; meanwhile: number[]; heap: number }> {
  const first = await open(url);
  const alone = await latencies(200, () => first.client.execute(oneStep, 1));
  const due = new Date(Date.now() + 5_000 + count / 5);
  await gather(first.client, count, due);
  await first.close();
  await new Promise((resolve) => setTimeout(resolve, due.getTime() + 1_000 - Date.now()));
  awake = 0;
  const before = await settledHeap();
  const began = performance.now();
  const second = await open(url);
  const meanwhile: number[] = [];
  let heap = 0;
  try {
    while (awake < count) {
      meanwhile.push(...(await latencies(1, () => second.client.execute(oneStep, 1))));
      heap = Math.max(heap, process.memoryUsage().heapUsed - before);
    }
    return { seconds: (performance.now() - began) / 1_000, alone, meanwhile: meanwhile.sort((a, b) => a - b), heap };
  } finally {
    await second.close();
  }
}

export const herdFamily: Family = {
  name: "herd",
  title: "A thundering herd after a restart, Postgres",
  databases: 2,
  deadline: 240,
  node: ["--expose-gc"],
  async run({ quick, databases: [warm, url] }) {
    await withPostgres(warm, async ({ client }) => void (await latencies(500, () => client.execute(oneStep, 1))));
    const count = quick ? 5_000 : 100_000;
    const { seconds, alone, meanwhile, heap } = await herd(url as string, count);
    const rows: Row[] = [
      { name: `${count.toLocaleString("en")} timers due at the start: until all have fired`, unit: "s", values: [seconds] },
      { name: "new one-step workflow before, p99", unit: "ms", values: [percentile(alone, 0.99)], against: "insert" },
      { name: "new one-step workflow meanwhile, p50", unit: "ms", values: [percentile(meanwhile, 0.5)], against: "insert" },
      {
        name: "new one-step workflow meanwhile, p99",
        unit: "ms",
        values: [percentile(meanwhile, 0.99)],
        against: "insert",
        reach: { atMost: 1_000 },
        note: `${meanwhile.length} of them, the longest ${meanwhile.at(-1)?.toFixed(0)} ms`,
      },
      { name: "heap that it took, garbage included", unit: "MB", values: [heap / megabyte], reach: { atMost: 400 } },
    ];
    return rows;
  },
};
