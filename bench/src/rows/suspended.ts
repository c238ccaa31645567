/** Memory: workflows that sleep for days, all in one process. */

import { memoryUsage } from "node:process";
import type { Client } from "@wovyr/sdk/client";
import { postgresStore } from "@wovyr/server";
import type { Family } from "../family.ts";
import { withOrchestrator, withPostgres } from "../host.ts";
import type { Row } from "../row.ts";
import { nap } from "../workloads.ts";

const batch = 1_000;
const megabyte = 2 ** 20;
const unlimited = { cachedInstances: 10_000_000, cachedBytes: 64 * 2 ** 30 };

/** Starts so many workflows that sleep, and waits until each sleep is durable. */
export async function suspend(client: Client, count: number): Promise<void> {
  for (let started = 0; started < count; started += batch) {
    const starts = Array.from({ length: Math.min(batch, count - started) }, (_, at) => ({ input: started + at }));
    for (const outcome of await client.startBatch(nap, starts)) if (!outcome.ok) throw outcome.error;
  }
}

/** Bytes on the heap once everything that can go is gone. */
export async function settledHeap(): Promise<number> {
  for (let round = 0; round < 4; round += 1) {
    (globalThis as { gc?: () => void }).gc?.();
    await new Promise((resolve) => setTimeout(resolve, 50));
  }
  return memoryUsage().heapUsed;
}

export const suspendedFamily: Family = {
  name: "suspended",
  title: "Suspended instances, Postgres",
  databases: 2,
  deadline: 240,
  node: ["--expose-gc"],
  async run({ quick, databases: [first, second] }) {
    const count = quick ? 10_000 : 100_000;
    const label = count.toLocaleString("en");
    const rows: Row[] = await withPostgres(first, async ({ client }) => {
      await suspend(client, batch);
      await suspend(client, count - batch);
      const held = memoryUsage().rss / megabyte;
      await settledHeap();
      return [
        {
          name: `RSS with ${label} suspended, default limits`,
          unit: "MB",
          values: [memoryUsage().rss / megabyte],
          reach: { atMost: 500 },
          note: `${held.toFixed(0)} MB before a garbage collection was asked for; the cache may drop idle instances`,
        },
      ];
    });
    const store = postgresStore(second as string);
    const bytes = await withOrchestrator({ store, limits: unlimited }, async ({ client }) => {
      await suspend(client, batch);
      const before = await settledHeap();
      await suspend(client, count);
      return ((await settledHeap()) - before) / count;
    });
    return [...rows, { name: `heap per instance, ${label} kept in memory`, unit: "bytes", values: [bytes] }];
  },
};
