/** Callers that keep starting workflows over HTTP with idempotency keys, through whatever happens to the server. */
import assert from "node:assert/strict";
import { type Client, createClient } from "@wovyr/sdk/client";
import { mixed } from "./workflows.ts";

/** Tries for as long as a test lasts. */
export function patientClient(url: string): Client {
  return createClient({
    url,
    requestTimeout: 5_000,
    retry: { maxAttempts: 10_000, maxDuration: 120_000, initialDelay: 20, maxDelay: 300 },
  });
}

export type Load = {
  /** Starts that were acknowledged so far. */
  readonly acknowledged: number;
  readonly completed: number;
  /** Begins no further run; resolves when all have ended as they should. */
  stop(): Promise<number>;
};

/** `callers` at a time, who ask any of the servers; each starts a run, waits for its result, and goes on with the next. */
export function startLoad(urls: string | readonly string[], callers: number, most = Number.POSITIVE_INFINITY): Load {
  const clients = (typeof urls === "string" ? [urls] : urls).map(patientClient);
  let stopping = false;
  let next = 0;
  let acknowledged = 0;
  let completed = 0;
  const caller = async () => {
    while (!stopping && next < most) {
      const n = next++;
      const kind = mixed[n % mixed.length] as (typeof mixed)[number];
      const client = clients[n % clients.length] as Client;
      const handle = await client.start(kind.workflow, n, { id: `load-${n}`, idempotencyKey: `load-${n}` });
      acknowledged += 1;
      assert.equal(await handle.result(), kind.expected(n), `${kind.workflow.name}(${n})`);
      completed += 1;
    }
  };
  const all = Promise.all(Array.from({ length: callers }, caller));
  all.catch(() => {
    stopping = true;
  });
  return {
    get acknowledged() {
      return acknowledged;
    },
    get completed() {
      return completed;
    },
    async stop() {
      stopping = true;
      await all;
      return next;
    },
  };
}
