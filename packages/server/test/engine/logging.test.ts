import assert from "node:assert/strict";
import { test } from "node:test";
import { activity, all, awaitEvent, event, workflow } from "@wovyr/sdk";
import { inEachCache } from "./case.ts";

test("H018 a line that a workflow logs is printed once over the life of the run", async () => {
  const go = event("go");
  const work = activity("work", async (n: number) => n);
  const chatty = workflow("chatty", async function* (_: undefined, ctx) {
    ctx.log.info("before the first yield", { n: 1 });
    yield* all([work(1), work(2)]);
    ctx.log.warn("after the fan-in");
    yield* awaitEvent(go);
    ctx.log.error("at the end");
  });
  await inEachCache({ workflows: [chatty] }, async (env) => {
    const run = await env.start(chatty);
    await env.settle();
    for (let round = 0; round < 3; round++) {
      await env.evict(run);
      await run.describe();
    }
    await env.restart();
    await run.send(go);
    await run.result();
    const mine = env.logs.filter((line) => line.data !== undefined && "run" in line.data && line.data.run === run.runId);
    assert.deepEqual(
      mine.map((line) => [line.level, line.message]),
      [
        ["info", "before the first yield"],
        ["warn", "after the fan-in"],
        ["error", "at the end"],
      ],
    );
    assert.deepEqual({ ...mine[0]?.data }, { workflow: "chatty", instance: run.id, run: run.runId, n: 1 });
  });
});
