
import assert from "node:assert/strict";
import { test } from "node:test";
import { activity, sleep, workflow } from "@wovyr/sdk";
import { createTestEnvironment, fake } from "@wovyr/testing";
const nap = workflow("nap", async function* () { yield* sleep("1 day"); });
const work = activity("work", async () => "real");
const one = workflow("one", async function* () { return yield* work(); });

test("forgets", async () => {
  await using env = await createTestEnvironment({ workflows: [nap] });
  env.execute(nap);
});
test("innocent", async () => {
  await using env = await createTestEnvironment({ workflows: [nap] });
  await env.execute(nap);
});
