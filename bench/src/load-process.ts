/** A process of the rows about several orchestrators: hosts one over the database that it is given, or (given none) only calls others. */
import { createClient } from "@wovyr/sdk/client";
import { createOrchestrator, postgresStore } from "@wovyr/server";
import { throughput } from "./measure.ts";
import { RawConnection, startRequest } from "./raw-http.ts";
import type { NodeAsk } from "./rows/nodes.ts";
import { oneStep, workflows } from "./workloads.ts";

const [database] = process.argv.slice(2);
const orchestrator =
  database === undefined
    ? undefined
    : await createOrchestrator({
        workflows,
        store: postgresStore(database),
        cluster: { secret: "only-for-benchmarks" },
      });

async function count(inFlight: number, seconds: number, once: () => Promise<unknown>): Promise<number> {
  let calls = 0;
  const counted = async () => {
    await once();
    calls += 1;
  };
  await throughput({ inFlight, seconds, size: 1, meter: { postmaster: undefined } }, counted);
  return calls;
}

async function answer(ask: NodeAsk): Promise<number> {
  if (ask.what === "call") {
    const port = Number(new URL(ask.url).port);
    const connections = Array.from({ length: ask.connections }, () => new RawConnection(port));
    const request = startRequest(port, oneStep.name, 1);
    let turn = 0;
    try {
      return await count(ask.inFlight, ask.seconds, async () => {
        turn = (turn + 1) % connections.length;
        const status = await (connections[turn] as RawConnection).send(request);
        if (status !== 201) throw new Error(`the server answered ${status}`);
      });
    } finally {
      for (const connection of connections) connection.close();
    }
  }
  if (orchestrator === undefined) throw new Error("this process hosts no orchestrator");
  if (ask.what === "shards") {
    const { nodes } = await createClient({ url }).cluster();
    return nodes.find((node) => node.url === url)?.shards.length ?? 0;
  }
  return count(ask.inFlight, ask.seconds, () => orchestrator.client.execute(oneStep, 1));
}

const url = orchestrator === undefined ? "" : await orchestrator.listen({ port: 0 });
process.on("message", (ask: NodeAsk) => {
  answer(ask).then(
    (value) => process.send?.({ value }),
    (error: unknown) => process.send?.({ value: 0, failure: error instanceof Error ? (error.stack ?? error.message) : String(error) }),
  );
});
process.once("SIGTERM", () => void Promise.resolve(orchestrator?.close()).finally(() => process.exit(0)));
process.once("disconnect", () => process.exit(0));
process.send?.({ url });
