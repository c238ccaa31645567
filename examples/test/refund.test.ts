import assert from "node:assert/strict";
import { test } from "node:test";
import { createTestEnvironment } from "@wovyr/testing";
import { refund, Verdict } from "../src/refund.ts";

const workflows = [refund];

for (const { card, percent, outcome } of [
  { card: "good", percent: undefined, outcome: "paid-200" },
  { card: "good", percent: 25, outcome: "paid-50" },
  { card: "expired", percent: undefined, outcome: "voucher-200" },
  { card: "closed", percent: undefined, outcome: "no account since 2025" },
]) {
  test(`card ${card}, ${percent ?? 100}%: ${outcome}`, async () => {
    await using env = await createTestEnvironment({ workflows });
    const handle = await env.start(refund, { card, amount: 200 });
    await handle.send(Verdict, percent === undefined ? { kind: "full" } : { kind: "partial", percent });
    assert.equal(await handle.result(), outcome);
  });
}

test("silence counts as consent", async () => {
  await using env = await createTestEnvironment({ workflows });
  assert.equal(await env.execute(refund, { card: "good", amount: 10 }), "paid-10");
});

test("what is refused is not paid", async () => {
  await using env = await createTestEnvironment({ workflows });
  const handle = await env.start(refund, { card: "good", amount: 10 });
  await handle.send(Verdict, { kind: "refused", reason: "too late" });
  assert.equal(await handle.result(), "refused");
});
