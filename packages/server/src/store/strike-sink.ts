/** How the watchdog's thread records that a turn never ended, while the main thread is stuck in it. */
import { appendFileSync } from "node:fs";
import postgres from "postgres";
import type { InstanceKey, StrikeSink } from "../engine/ports/store.ts";

export type Strike = InstanceKey & { readonly tail: number };

/** Records a strike durably; rejects when it cannot. */
export async function recordStrike(sink: StrikeSink, strike: Strike): Promise<void> {
  switch (sink.kind) {
    case "none":
      return;
    case "file":
      appendFileSync(sink.path, `${JSON.stringify({ tenant: strike.tenant, run: strike.run, tail: strike.tail })}\n`, { flush: true });
      return;
    case "postgres": {
      const sql = postgres(sink.url, { max: 1, prepare: false, fetch_types: false, connect_timeout: 4, onnotice: () => {} });
      try {
        await sql`select wovyr.strike_1(${strike.tenant}, ${strike.run}, ${strike.tail})`;
      } finally {
        await sql.end({ timeout: 1 });
      }
    }
  }
}
