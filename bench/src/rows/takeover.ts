/** A node with a thousand runs at work is killed: how long until another has its shards, and how long from then until all of them are at work again. */
import { setTimeout as sleep } from "node:timers/promises";
import { createOrchestrator, type Orchestrator, postgresStore } from "@wovyr/server";
import type { Family } from "../family.ts";
import { evenlySpread, LoadProcess } from "../load-processes.ts";
import { repeat } from "../measure.ts";
import { holding, workflows } from "../workloads.ts";

const runs = 1_000;
const shards = 256;
const limit = 60_000;

type Outcome = { readonly taken: number; readonly recovered: number };

async function ownedBy({ client }: Orchestrator): Promise<number> {
  const { node, nodes } = await client.cluster();
  return nodes.find((each) => each.node === node)?.shards.length ?? 0;
}

async function until(what: string, met: () => boolean | Promise<boolean>): Promise<number> {
  const end = performance.now() + limit;
  while (!(await met())) {
    if (performance.now() > end) throw new Error(`${what}: not within ${limit / 1_000} s`);
    await sleep(2);
  }
  return performance.now();
}

async function once(database: string, orchestrator: Orchestrator): Promise<Outcome> {
  const victim = await LoadProcess.start(database);
  try {
    await evenlySpread(2, async () => [await ownedBy(orchestrator), await victim.ask({ what: "shards" })]);
    await victim.ask({ what: "hold", runs });
    holding.begun = 0;
    const killed = performance.now();
    await victim.kill();
    const taken = await until("the shards are taken", async () => (await ownedBy(orchestrator)) === shards);
    const recovered = await until("the runs are at work again", () => holding.begun >= runs);
    return { taken: taken - killed, recovered: recovered - taken };
  } finally {
    await victim.kill();
  }
}

export const takeoverFamily: Family = {
  name: "takeover",
  title: `A node with ${runs.toLocaleString("en")} runs at work is killed, and another goes on with them; both on one machine, over one Postgres`,
  databases: 1,
  deadline: 180,
  async run({ databases }) {
    const [database = ""] = databases;
    const orchestrator = await createOrchestrator({
      workflows,
      store: postgresStore(database),
      cluster: { secret: "only-for-benchmarks" },
    });
    try {
      await orchestrator.listen({ port: 0 });
      const outcomes = await repeat(() => once(database, orchestrator));
      return [
        { name: "from the kill until its shards are taken", unit: "ms", values: outcomes.map(({ taken }) => taken) },
        {
          name: "from then until the last of its runs is at work again",
          unit: "ms",
          values: outcomes.map(({ recovered }) => recovered),
          reach: { atMost: 500 },
          note: "a process that died is noticed at once on its own machine, and elsewhere when its lease ends (10 s)",
        },
      ];
    } finally {
      await orchestrator.close();
    }
  },
};
