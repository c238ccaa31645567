import assert from "node:assert/strict";
import { beforeEach, test } from "node:test";
import { priority } from "@wovyr/server";
import { createTestEnvironment } from "@wovyr/testing";
import { campaign, type Mail, passwordReset, sent, service, syncCustomer } from "../src/newsletter.ts";

const mails = (count: number): Mail[] => Array.from({ length: count }, (_, at) => ({ to: `${at}@example.org`, subject: "News" }));

async function environment() {
  const env = await createTestEnvironment({ workflows: [campaign, passwordReset, syncCustomer], scheduling: priority() });
  service.now = () => env.now().getTime();
  return env;
}

beforeEach(() => sent.splice(0));

test("a campaign keeps to what the mail service allows", async () => {
  await using env = await environment();
  assert.equal(await env.execute(campaign, mails(35)), 35);
  for (const { at } of sent) assert.ok(sent.filter((other) => other.at >= at && other.at < at + 60_000).length <= 10);
});

test("a password reset is next, whatever a campaign has waiting", async () => {
  await using env = await environment();
  const running = await env.start(campaign, mails(100));
  await env.until(() => sent.length >= 10);
  const before = sent.length;
  await env.execute(passwordReset, "somebody@example.org");
  const place = sent.findIndex(({ mail }) => mail.subject === "Your new password");
  assert.ok(place - before < 10, "it has one of the next tokens");
  await running.result();
});

test("many changes in a row are one", async () => {
  await using env = await environment();
  const runs = [];
  for (const email of ["a@example.org", "b@example.org", "c@example.org"]) runs.push(await env.start(syncCustomer, { id: "c-1", email }));
  assert.equal(new Set(runs.map(({ runId }) => runId)).size, 1);
  assert.equal(await runs[0]?.result(), "c@example.org");
  assert.deepEqual(
    sent.map(({ mail }) => mail.to),
    ["c@example.org"],
  );
});
