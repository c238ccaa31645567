import { activity, all, Type, workflow } from "@wovyr/sdk";
import { createWorker } from "@wovyr/sdk/worker";
import { createOrchestrator, memoryStore, pgliteStore } from "../../src/index.ts";

const render = activity.contract("render", { queue: "gpu", input: Type.Number(), output: Type.Number() });
const flow = workflow("flow", async function* (n: number) {
  const rs = yield* all([render(n), render(n + 1)]);
  return rs;
});
const orchestrator = await createOrchestrator({
  workflows: [flow],
  store: process.argv[2] === "pglite" ? pgliteStore() : memoryStore(),
  log: console,
});
const url = await orchestrator.listen({ port: 0 });
const worker = await createWorker({
  url,
  activities: [
    render.implement(async (n, ctx) => {
      ctx.heartbeat({ n });
      return n * 2;
    }),
  ],
  log: console,
});
void worker.run();
const t = Date.now();
console.log(await orchestrator.client.execute(flow, 20), Date.now() - t);
const t2 = Date.now();
const N = 500;
await Promise.all(Array.from({ length: N }, (_, i) => orchestrator.client.execute(flow, i)));
console.log(N * 2, "tasks in", Date.now() - t2);
await worker.stop();
await orchestrator.close();
