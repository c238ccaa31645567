/** A process of the rows about several orchestrators: hosts one over the database that it is given, or (given none) only calls others. */
import { setTimeout as sleep } from "node:timers/promises";
import { createClient } from "@wovyr/sdk/client";
import { createOrchestrator, postgresStore } from "@wovyr/server";
import type { LoadAsk } from "./load-processes.ts";
import { throughput } from "./measure.ts";
import { RawConnection, startRequest } from "./raw-http.ts";
import { holder, holding, oneStep, workflows } from "./workloads.ts";

const [database] = process.argv.slice(2);
const orchestrator =
  database === undefined
    ? undefined
    : await createOrchestrator({ workflows, store: postgresStore(database), cluster: { secret: "only-for-benchmarks" } });
const url = orchestrator === undefined ? "" : await orchestrator.listen({ port: 0 });

async function count(inFlight: number, seconds: number, once: () => Promise<unknown>): Promise<number> {
  let calls = 0;
  await throughput({ inFlight, seconds, size: 1, meter: { postmaster: undefined } }, async () => {
    await once();
    calls += 1;
  });
  return calls;
}

async function call(ask: Extract<LoadAsk, { what: "call" }>): Promise<number> {
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

async function answer(ask: LoadAsk): Promise<number> {
  if (ask.what === "call") return call(ask);
  if (orchestrator === undefined) throw new Error("this process hosts no orchestrator");
  const { client } = orchestrator;
  switch (ask.what) {
    case "run":
      return count(ask.inFlight, ask.seconds, () => client.execute(oneStep, 1));
    case "hold":
      holding.endless = true;
      await Promise.all(Array.from({ length: ask.runs }, (_, n) => client.start(holder, n)));
      while (holding.begun < ask.runs) await sleep(10);
      return holding.begun;
    case "shards": {
      const { nodes } = await createClient({ url }).cluster();
      return nodes.find((node) => node.url === url)?.shards.length ?? 0;
    }
  }
}

process.on("message", (ask: LoadAsk) => {
  answer(ask).then(
    (value) => process.send?.({ value }),
    (error: unknown) => process.send?.({ failure: error instanceof Error ? (error.stack ?? error.message) : String(error) }),
  );
});
process.once("SIGTERM", () => void Promise.resolve(orchestrator?.close()).finally(() => process.exit(0)));
process.once("disconnect", () => process.exit(0));
process.send?.({ url });
