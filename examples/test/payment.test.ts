import assert from "node:assert/strict";
import { test } from "node:test";
import { createTestEnvironment } from "@wovyr/testing";
import { bookkeeping, Payment, paidOrder } from "../src/payment.ts";

const workflows = [paidOrder, bookkeeping];

test("the payment may come before the order waits for it, and is booked either way", async () => {
  await using env = await createTestEnvironment({ workflows });
  const { started, delivered } = await env.publish(Payment, { order: "7", amount: 50 }, { key: "7" });
  assert.equal(delivered, 0);
  assert.deepEqual(await env.execute(paidOrder, "7"), { parcel: "parcel of 7", paid: 50 });
  assert.equal(await env.client.handle(started[0]?.id ?? "").result(), "50 for 7");
});

test("the payment of another order is not taken", async () => {
  await using env = await createTestEnvironment({ workflows });
  const run = await env.start(paidOrder, "7");
  await env.publish(Payment, { order: "8", amount: 50 }, { key: "8" });
  assert.deepEqual(await run.result(), { parcel: "parcel of 7", paid: 0 });
});
