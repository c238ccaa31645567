/** How the watchdog's thread records that a turn never ended, while the main thread is stuck in it. */
import { appendFileSync } from "node:fs";
import postgres from "postgres";
import type { InstanceKey, StrikeSink } from "../engine/ports/store.ts";

export type Strike = InstanceKey & { readonly tail: number; readonly workflow: string };

/** Records a strike durably; rejects when it cannot. */
export async function recordStrike(sink: StrikeSink, strike: Strike): Promise<void> {
  const { tenant, run, tail, workflow } = strike;
  switch (sink.kind) {
    case "none":
      return;
    case "file":
      appendFileSync(sink.path, `${JSON.stringify({ tenant, run, tail, workflow })}\n`, { flush: true });
      return;
    case "postgres": {
      const sql = postgres(sink.url, { max: 1, prepare: false, fetch_types: false, connect_timeout: 4, onnotice: () => {} });
      try {
        await sql`select wovyr.strike_1(${tenant}, ${run}, ${tail}, ${workflow})`;
      } finally {
        await sql.end({ timeout: 1 });
      }
    }
  }
}
