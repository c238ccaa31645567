/** The client of the HTTP rows, in a process of its own: does what its parent asks, one thing after another. */
import { createClient } from "@wovyr/sdk/client";
import type { HttpAnswer, HttpAsk, HttpOrder } from "./http-client.ts";
import { latencies, percentile, throughput } from "./measure.ts";
import { RawConnection, startRequest } from "./raw-http.ts";
import { oneStep } from "./workloads.ts";

const order = JSON.parse(process.argv[2] ?? "") as HttpOrder;
const port = Number(new URL(order.url).port);

/** A call of which at most `limit` are under way, and so connections. */
function bounded<T>(limit: number, call: () => Promise<T>): () => Promise<T> {
  let going = 0;
  const waiting: (() => void)[] = [];
  return async () => {
    if (going >= limit) await new Promise<void>((resolve) => waiting.push(resolve));
    else going += 1;
    try {
      return await call();
    } finally {
      const next = waiting.shift();
      if (next === undefined) going -= 1;
      else next();
    }
  };
}

const client = createClient({ url: order.url });
const connections = Array.from({ length: order.connections }, () => new RawConnection(port));
const request = startRequest(port, oneStep.name, 1);
let turn = 0;

async function raw(): Promise<void> {
  turn = (turn + 1) % connections.length;
  const status = await (connections[turn] as RawConnection).send(request);
  if (status !== 201) throw new Error(`the server answered ${status}`);
}

const calls = { sdk: bounded(order.connections, () => client.execute(oneStep, 1)), raw };

async function answer({ kind, what }: HttpAsk): Promise<HttpAnswer> {
  const once = calls[kind];
  if (what === "latency") {
    const sorted = await latencies(order.latencies, once);
    return { value: percentile(sorted, 0.5), p99: percentile(sorted, 0.99), cpu: 0 };
  }
  const { inFlight, seconds } = order;
  const { perSecond, ours } = await throughput({ inFlight, seconds, size: 1, meter: { postmaster: undefined } }, once);
  return { value: perSecond, p99: 0, cpu: ours };
}

process.on("message", (ask: HttpAsk) => {
  answer(ask).then(
    (value) => process.send?.({ value }),
    (error: unknown) => process.send?.({ failure: error instanceof Error ? (error.stack ?? error.message) : String(error) }),
  );
});
process.on("disconnect", () => process.exit(0));
