/** Callers behind a load balancer that knows nothing: every request goes to some node, also to one that is dead or frozen. */
import assert from "node:assert/strict";
import { type Client, createClient } from "@wovyr/sdk/client";
import { mixed } from "../recovery/workflows.ts";

export type Random = { fraction(): number };

/** `urls` is asked anew for every request. */
export function balancedClient(urls: () => readonly string[], random: Random): Client {
  const anyOf = () => {
    const all = urls();
    return all[Math.floor(random.fraction() * all.length)] ?? "";
  };
  return createClient({
    url: "http://balancer",
    fetch: (input, init) => fetch(String(input).replace("http://balancer", anyOf()), init),
    requestTimeout: 8_000,
    retry: { maxAttempts: 10_000, maxDuration: 120_000, initialDelay: 20, maxDelay: 200 },
  });
}

export type BalancedLoad = {
  readonly completed: number;
  /** Longest time between a start and its result, in milliseconds, so far. */
  readonly slowest: number;
  /** Begins no further run; resolves with how many there were, when all have ended as they should. */
  stop(): Promise<number>;
};

/** `callers` at a time; each starts a run, waits for its result, and goes on with the next. */
export function balancedLoad(client: Client, callers: number): BalancedLoad {
  let stopping = false;
  let next = 0;
  let completed = 0;
  let slowest = 0;
  const caller = async () => {
    while (!stopping) {
      const n = next++;
      const kind = mixed[n % mixed.length] as (typeof mixed)[number];
      const began = performance.now();
      const id = `load-${n}`;
      // Half of them have ids of their own, and so owners that the balancer does not hit.
      const handle = await client.start(kind.workflow, n, { ...(n % 2 === 0 && { id }), idempotencyKey: id });
      assert.equal(await handle.result(), kind.expected(n), `${kind.workflow.name}(${n})`);
      slowest = Math.max(slowest, performance.now() - began);
      completed += 1;
    }
  };
  const all = Promise.all(Array.from({ length: callers }, caller));
  all.catch(() => {
    stopping = true;
  });
  return {
    get completed() {
      return completed;
    },
    get slowest() {
      return slowest;
    },
    async stop() {
      stopping = true;
      await all;
      return next;
    },
  };
}
