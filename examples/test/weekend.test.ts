import assert from "node:assert/strict";
import { test } from "node:test";
import { createTestEnvironment } from "@wovyr/testing";
import { invoice, provider, retryAfterOutage } from "../src/weekend.ts";

test("what the outage stopped is paid on Monday, once each, but for what somebody had settled otherwise", async () => {
  await using env = await createTestEnvironment({ workflows: [invoice], clock: new Date("2026-01-02T17:00:00Z") });
  const { deadLetters, batches } = env.client;
  const start = (id: string, amount: number) => env.start(invoice, { id, amount }, { id });
  assert.equal(await (await start("early", 5)).result(), "payment of 5, posted");

  provider.isUp = false;
  const runs = [];
  for (let amount = 1; amount <= 20; amount += 1) runs.push(await start(`invoice-${amount}`, amount));
  await env.advance("2 days");
  await env.restart();

  const stopped = [];
  for await (const letter of deadLetters.list({ workflow: invoice })) stopped.push(letter);
  assert.equal(stopped.length, 20);
  assert.ok(stopped.every(({ name, failure, attempts }) => name === "pay" && failure.code === "PROVIDER_DOWN" && attempts === 8));
  const byHand = stopped.find(({ instanceId }) => instanceId === "invoice-7");
  await deadLetters.resolve(byHand?.id ?? "", { output: "cash", note: "the customer came by" });

  provider.isUp = true;
  const batch = await retryAfterOutage(env.client, "the provider is back");
  const results = await Promise.all(runs.map((run) => run.result()));
  assert.equal(results[6], "cash, posted");
  assert.equal(results[19], "payment of 20, posted");
  await env.until(async () => (await batches.get(batch)).closedAt !== undefined);
  const { done, failed } = await batches.get(batch);
  assert.deepEqual([done, failed], [19, 0]);
  // The first one, and those that were retried.
  assert.equal(provider.payments.size, 20);

  const decided = [];
  for await (const { type, data } of runs[0]?.history() ?? []) if (type === "ActivityDecided") decided.push([data.decision, data.note]);
  assert.deepEqual(decided, [["retry", "the provider is back"]]);
});
