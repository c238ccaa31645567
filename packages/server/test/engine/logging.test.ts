import assert from "node:assert/strict";
import { test } from "node:test";
import { activity, all, awaitEvent, event, workflow } from "@wovyr/sdk";
import { memoryStore } from "@wovyr/server/internal";
import { createFaultyStore, FaultPlan, type TestEnvironment } from "@wovyr/testing";
import { inCase, inEachCache } from "./case.ts";

const logged = (env: TestEnvironment) => env.logs.filter(({ data }) => data !== undefined && "workflow" in data);

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
    const mine = logged(env);
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

test("H018 a line of a turn that the store refused, or took without saying so, is printed once all the same", async () => {
  const go = event("go");
  const work = activity("work", async (n: number) => n);
  const chatty = workflow("chatty", async function* (_: undefined, ctx) {
    ctx.on(go, () => ctx.log.info("told"));
    ctx.log.info("began");
    yield* all(
      [1, 2].map(
        (n) =>
          async function* () {
            ctx.log.info(`branch ${n}`);
            yield* work(n);
            ctx.log.info(`branch ${n} ended`);
          },
      ),
    );
    ctx.log.info("ended");
  });
  for (const fault of ["refuse", "fail before", "fail after"])
    for (let commit = 1; commit <= 6; commit++) {
      const plan = new FaultPlan();
      let seen = 0;
      const where = () => ++seen === commit;
      if (fault === "refuse") plan.refuse("commit", { where });
      else plan.fail("commit", { where, at: fault === "fail before" ? "before" : "after" });
      await inCase({ workflows: [chatty], store: createFaultyStore(memoryStore(), plan) }, async (env) => {
        const run = await env.insist(() => env.start(chatty, undefined, { id: "c", idempotencyKey: "c", event: { name: "go" } }));
        await run.result();
        const lines = logged(env).map(({ message }) => message);
        const expected = ["began", "told", "branch 1", "branch 2", "branch 1 ended", "branch 2 ended", "ended"];
        assert.deepEqual(lines.sort(), expected.sort(), `${fault}, commit ${commit}`);
      });
    }
});
