
import assert from "node:assert/strict";
import { test } from "node:test";
import { activity, awaitEvent, event, sleep, workflow } from "@wovyr/sdk";
import { createTestEnvironment, fake } from "@wovyr/testing";
const work = activity("work", async () => "real");
const Go = event("go");
const one = workflow("one", async function* () { return yield* work(); });

const nap = workflow("nap", async function* () { yield* sleep("1 day"); });
test("stuck", async () => {
  await using env = await createTestEnvironment({ workflows: [nap], autoSkip: false });
  await env.execute(nap);
});
