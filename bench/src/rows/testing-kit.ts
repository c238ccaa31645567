/** The testing kit: how long tests take that let a great deal of virtual time pass. */
import { activity, awaitEvent, event, sleep, workflow } from "@wovyr/sdk";
import { createTestEnvironment, explore } from "@wovyr/testing";
import type { Family } from "../family.ts";
import { repeat } from "../measure.ts";

const Go = event("go");
const work = activity("work", async (n: number) => n);
const patient = workflow("patient", async function* (n: number) {
  yield* sleep(40 * 86_400_000 + n);
  try {
    yield* awaitEvent(Go, { timeout: "400 days" });
  } catch {
    return yield* work(n);
  }
  return -1;
});

export const testingKitFamily: Family = {
  name: "testing-kit",
  title: "The testing kit",
  databases: 0,
  deadline: 300,
  async run({ quick }) {
    const many = quick ? 1_000 : 10_000;
    let cases = 0;
    const one = await repeat(() => seconds(() => runAll(1)));
    const all = await repeat(() => seconds(() => runAll(many)));
    const explored = await repeat(async () => {
      const took = await seconds(async () => {
        ({ cases } = await explore(patient, 1, { interleavings: quick ? 20 : 200, invariant: () => {} }));
      });
      return cases / took;
    });
    return [
      { name: "an instance that sleeps 40 days and waits 400", unit: "s", values: one, reach: { atMost: 0.5 } },
      { name: `${many.toLocaleString("en")} of them, each with timers of its own`, unit: "s", values: all, reach: { atMost: 20 } },
      { name: "cases of an exploration of it", unit: "cases/s", values: explored },
    ];
  },
};

async function runAll(count: number): Promise<void> {
  await using env = await createTestEnvironment({ workflows: [patient] });
  const runs = await Promise.all(Array.from({ length: count }, (_, n) => env.start(patient, n)));
  const outputs = await Promise.all(runs.map((run) => run.result()));
  if (outputs.some((output, n) => output !== n)) throw new Error("a run ended otherwise");
}

async function seconds(run: () => Promise<void>): Promise<number> {
  const began = performance.now();
  await run();
  return (performance.now() - began) / 1_000;
}
