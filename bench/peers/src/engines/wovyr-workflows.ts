/** Wovyr's side of the workloads. */
import { activity, all, awaitEvent, event, workflow } from "@wovyr/sdk";
import type { Client } from "@wovyr/sdk/client";
import { type Engine, timeOfDay, type WorkloadName } from "../engine.ts";

const step = activity("step", async () => timeOfDay());

const sequence = workflow("sequence", async function* (steps: number) {
  const first = yield* step();
  let last = first;
  for (let done = 1; done < steps; done += 1) last = yield* step();
  return last - first;
});

const fanOut = workflow("fan-out", async function* (width: number) {
  const times = yield* all(Array.from({ length: width }, () => step()));
  return times.length;
});

const Go = event("go");

const waiting = workflow("waiting", { events: [Go] }, async function* () {
  yield* awaitEvent(Go);
});

export function workflowsWith(lastStep: () => Promise<void>) {
  const last = activity("last-step", lastStep);
  const long = workflow("long", async function* (steps: number) {
    for (let done = 0; done < steps; done += 1) yield* step();
    yield* last();
  });
  return { long, all: [sequence, fanOut, waiting, long] };
}

const named = { sequence, fanOut } satisfies Record<WorkloadName, unknown>;

export function engineOver(client: Client): Omit<Engine, "startLong" | "close"> {
  const run = (workload: WorkloadName, size: number): Promise<number> => client.execute(named[workload], size);
  return {
    run,
    async runAll(workload, size, count) {
      await Promise.all(Array.from({ length: count }, () => run(workload, size)));
    },
    async startWaiting() {
      const handle = await client.start(waiting);
      return {
        async deliver() {
          await Promise.all([handle.send(Go), handle.result()]);
        },
      };
    },
  };
}
