/** Ten times more work than there is room for, for a while: what is taken, how long that takes, and what the process holds. */
import { activity, workflow } from "@wovyr/sdk";
import { postgresStore } from "@wovyr/server";
import type { Family } from "../family.ts";
import { withOrchestrator } from "../host.ts";
import { percentile } from "../measure.ts";
import type { Row } from "../row.ts";
import { settledHeap } from "./suspended.ts";

const megabyte = 2 ** 20;
const tick = 5;

const slow = activity("bench-slow", () => new Promise<void>((resolve) => setTimeout(resolve, 10)));
const worker = workflow("bench-slow-worker", async function* () {
  yield* slow();
});

type Outcome = { taken: number; refused: number; waits: number[]; heaps: number[] };

/** Offers `perSecond` starts, whether earlier ones were answered or not. */
async function offer(start: () => Promise<unknown>, perSecond: number, seconds: number): Promise<Outcome> {
  const outcome: Outcome = { taken: 0, refused: 0, waits: [], heaps: [] };
  const call = async () => {
    const began = performance.now();
    try {
      await start();
      outcome.taken += 1;
      outcome.waits.push(performance.now() - began);
    } catch {
      outcome.refused += 1;
    }
  };
  const began = performance.now();
  let offered = 0;
  for (let now = 0; now < seconds; now = (performance.now() - began) / 1_000) {
    for (const due = now * perSecond; offered < due; offered += 1) void call();
    if (outcome.heaps.length < Math.floor((now / seconds) * 4)) outcome.heaps.push(await settledHeap());
    await new Promise((resolve) => setTimeout(resolve, tick));
  }
  outcome.waits.sort((a, b) => a - b);
  return outcome;
}

function rowsOf({ taken, refused, waits, heaps }: Outcome): Row[] {
  const grown = ((heaps.at(-1) ?? 0) - (heaps[0] ?? 0)) / megabyte;
  return [
    {
      name: "answer to a start that is taken, p99",
      unit: "ms",
      values: [percentile(waits, 0.99)],
      note: `${taken.toLocaleString("en")} taken, ${refused.toLocaleString("en")} refused`,
    },
    { name: "heap from the first quarter to the last", unit: "MB", values: [grown], reach: { atMost: 20 } },
  ];
}

export const overloadFamily: Family = {
  name: "overload",
  title: "Ten times more starts than their activities have places for, in process, Postgres",
  databases: 1,
  deadline: 180,
  node: ["--expose-gc"],
  async run({ quick, databases }) {
    const seconds = quick ? 2 : 20;
    // 10 places of 10 ms: 1,000 a second.
    const options = { limits: { activities: 10, waitingActivities: 2_000 }, shutdownGrace: 0 };
    return withOrchestrator({ workflows: [worker], store: postgresStore(databases[0] as string), ...options }, async ({ client }) =>
      rowsOf(await offer(() => client.start(worker), 10_000, seconds)),
    );
  },
};
