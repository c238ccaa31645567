import assert from "node:assert/strict";
import { test } from "node:test";
import { sleep, type WorkflowError, workflow } from "@wovyr/sdk";
import { createTestEnvironment } from "@wovyr/testing";

const tagging = workflow("tagging", async function* (value: unknown, ctx) {
  yield* sleep("1s");
  (ctx.attributes as Record<string, unknown>).tag = value;
  yield* sleep("1s");
  return "done";
});

const refused: readonly [string, unknown][] = [
  ["an invalid date", new Date(Number.NaN)],
  ["an object", { a: 1 }],
  ["a bigint", 10n],
  ["an array of numbers", [1, 2]],
  ["NaN", Number.NaN],
  ["a text over the limit", "x".repeat(1_001)],
];

for (const [what, value] of refused)
  test(`a workflow that sets ${what} as an attribute fails with the rule that it broke, and its neighbour goes on`, async () => {
    await using env = await createTestEnvironment({ workflows: [tagging] });
    const bad = await env.start(tagging, value);
    const good = await env.start(tagging, "red");
    await assert.rejects(bad.result(), (error: WorkflowError) => {
      assert.equal(error.status, "Failed");
      return /attributes cannot be searched/.test(error.message);
    });
    assert.equal(await good.result(), "done");
  });

test("dates, texts, numbers, booleans and arrays of texts may be attributes", async () => {
  await using env = await createTestEnvironment({ workflows: [tagging] });
  for (const value of [new Date(0), "red", 1, true, ["a", "b"]]) assert.equal(await (await env.start(tagging, value)).result(), "done");
});
