import assert from "node:assert/strict";
import { test } from "node:test";
import { activity, all, child, Type, workflow } from "@wovyr/sdk";
import { inCase, inEachCache } from "./case.ts";

test("a workflow starts children of its own kind, and two call each other through contracts", async () => {
  const countdown = workflow("countdown", { input: Type.Number(), output: Type.Number() }, async function* (n, ctx) {
    if (n === 0) return 0;
    return n + Number(yield* child(ctx.self, n - 1));
  });
  const evenContract = workflow.contract("even", { input: Type.Number(), output: Type.Boolean() });
  const odd = workflow("odd", { input: Type.Number(), output: Type.Boolean() }, async function* (n) {
    return n === 0 ? false : yield* child(evenContract, n - 1);
  });
  const even = evenContract.implement(async function* (n) {
    return n === 0 ? true : yield* child(odd, n - 1);
  });
  const tree = workflow("tree", { input: Type.Number() }, async function* (depth, ctx) {
    if (depth === 0) return 1;
    const halves = yield* all([child(ctx.self, depth - 1), child(ctx.self, depth - 1)]);
    return Number(halves[0]) + Number(halves[1]);
  });
  await inEachCache({ workflows: [countdown, odd, even, tree] }, async (env) => {
    assert.equal(await env.execute(countdown, 4), 10);
    assert.equal(await env.execute(even, 7), false);
    assert.equal(await env.execute(even, 8), true);
    assert.equal(await env.execute(tree, 3), 8);
  });
});

test("a history that grows is warned of long before it reaches its limit", async () => {
  const step = activity("step", async () => {});
  const long = workflow("long", async function* (rounds: number) {
    for (let round = 0; round < rounds; round++) yield* step();
  });
  await inCase({ workflows: [long], limits: { history: 100 } }, async (env) => {
    await env.execute(long, 47);
    const warnings = env.logs.filter(({ message }) => /has recorded \d+ of at most 100 events/.test(message));
    assert.deepEqual(
      warnings.map(({ message }) => /recorded (\d+)/.exec(message)?.[1]),
      ["50", "80", "90"],
    );
  });
});
