import assert from "node:assert/strict";
import { test } from "node:test";
import { activity, sleep, workflow } from "@wovyr/sdk";
import { memoryStore } from "@wovyr/server";
import { createFaultyStore, FaultPlan } from "@wovyr/testing";
import { inCase } from "./case.ts";

const hour = 3_600_000;
const hours = 2;
/** The longest wait between two looks at a store that is away. */
const cap = 2_000;

test("H067 a store that is away for hours is asked at a steady pace, and work goes on as soon as it is back", async () => {
  const plan = new FaultPlan();
  const work = activity("work", async (n: number) => n + 1);
  const worker = workflow("worker", async function* () {
    yield* sleep("1h");
    return yield* work(1);
  });
  await inCase({ workflows: [worker], store: createFaultyStore(memoryStore(), plan) }, async (env) => {
    env.autoSkip = false;
    const run = await env.start(worker);
    await env.settle();
    const asked: number[] = [];
    let away = true;
    const noted = () => {
      if (away) asked.push(env.now().getTime());
      return away;
    };
    plan.fail("commit", { times: Number.POSITIVE_INFINITY, where: noted });
    await env.advance((1 + hours) * hour);
    const waits = asked.slice(1).map((at, index) => at - (asked[index] ?? 0));
    assert.ok(waits.length > (hours * hour) / cap / 2, `${waits.length} looks`);
    assert.ok(waits.length < 2 * ((hours * hour) / cap), `${waits.length} looks`);
    assert.ok(
      waits.slice(10).every((wait) => wait > 0 && wait <= cap),
      "the wait stays at its cap",
    );
    away = false;
    const back = env.now().getTime();
    await env.advance(cap + 1_000);
    assert.equal(await run.result(), 2);
    assert.ok(((await env.turns(run.id)).at(-1)?.at ?? 0) <= back + cap + 1_000);
  });
});
