import assert from "node:assert/strict";
import { test } from "node:test";
import { createTestEnvironment } from "@wovyr/testing";
import { approval, Decision } from "../src/approval.ts";

const workflows = [approval];
const request = { what: "a new chair", approver: "ada" };

test("the decision ends the waiting", async () => {
  await using env = await createTestEnvironment({ workflows });
  const handle = await env.start(approval, request);
  await handle.send(Decision, { approved: true, by: "ada" });
  assert.deepEqual(await handle.result(), { outcome: "approved", by: "ada", reminders: 0 });
});

test("it reminds once a day until the decision comes", async () => {
  await using env = await createTestEnvironment({ workflows });
  const handle = await env.start(approval, request);
  await env.advance("3 days");
  assert.deepEqual((await handle.describe()).variables, { reminders: 3 });
  await handle.send(Decision, { approved: false, by: "ada" });
  assert.deepEqual(await handle.result(), { outcome: "rejected", by: "ada", reminders: 3 });
});

test("it expires when nobody decides", async () => {
  await using env = await createTestEnvironment({ workflows });
  assert.equal((await env.execute(approval, { ...request, expireAfter: "60h" })).outcome, "expired");
});
