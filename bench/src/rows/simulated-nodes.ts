/**
 * Up to 64 orchestrators in virtual time, each with the same load: whether the work of one more comes on top, and what nodes make the store do for each other.
 */
import type { Operations } from "@wovyr/sdk/internal";
import type { Family } from "../family.ts";
import type { Row } from "../row.ts";
import { storeLatency, VirtualCluster } from "../virtual-cluster.ts";
import { sequential } from "../workloads.ts";

const counts = [1, 4, 16, 64];
const steps = 10;
const idle = 60_000;

type Outcome = { readonly perNode: number; readonly calls: number; readonly idleCalls: number };

async function execute(node: Operations): Promise<void> {
  const { id, runId } = await node.start({ workflow: sequential.name, input: steps });
  await node.result(id, { runId });
}

async function measure(count: number, callers: number, rounds: number): Promise<Outcome> {
  const cluster = await VirtualCluster.open(count);
  try {
    const callsBefore = cluster.calls;
    await cluster.pass(idle);
    const idleCalls = ((cluster.calls - callsBefore) * 1_000) / idle / count;
    const [began, before] = [cluster.clock.now(), cluster.calls];
    const load = cluster.nodes.flatMap((node) =>
      Array.from({ length: callers }, async () => {
        for (let round = 0; round < rounds; round += 1) await execute(node);
      }),
    );
    await cluster.passUntil(Promise.all(load));
    const ofEach = callers * rounds * steps;
    return {
      perNode: (ofEach * 1_000) / (cluster.clock.now() - began),
      calls: (cluster.calls - before) / ofEach / count,
      idleCalls,
    };
  } finally {
    await cluster.close();
  }
}

export const simulatedNodesFamily: Family = {
  name: "simulated-nodes",
  title: `Orchestrators in virtual time, runs of ${steps} steps on each; a commit takes ${storeLatency.commit} ms, other calls of the store ${storeLatency.other} ms, processors nothing`,
  databases: 0,
  deadline: 600,
  async run({ quick }) {
    const rows: Row[] = [];
    let alone: number | undefined;
    for (const count of counts) {
      const { perNode, calls, idleCalls } = await measure(count, 20, quick ? 2 : 20);
      alone ??= perNode;
      const many = `${count} ${count === 1 ? "node" : "nodes"}`;
      rows.push({
        name: `${many}: what each does, of what one does alone`,
        unit: "×",
        values: [perNode / alone],
        reach: { atLeast: 0.95 },
        note: `${Math.round(perNode * count).toLocaleString("en")} steps/s of virtual time; calls of the store: ${calls.toPrecision(3)} a step, ${idleCalls.toFixed(1)} a second of an idle node`,
      });
    }
    return rows;
  },
};
