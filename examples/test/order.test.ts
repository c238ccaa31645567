import assert from "node:assert/strict";
import { beforeEach, test } from "node:test";
import { WorkflowError } from "@wovyr/sdk";
import { createTestEnvironment } from "@wovyr/testing";
import { order, PaymentReceived, ship } from "../src/order.ts";
import { onDeed } from "../src/shop.ts";

const workflows = [order, ship];
let deeds: string[] = [];

beforeEach(() => {
  deeds = [];
  onDeed(({ what }) => void deeds.push(what));
});

test("a paid order is shipped when the carrier comes", async () => {
  await using env = await createTestEnvironment({ workflows });
  const start = env.now();
  const handle = await env.start(order, { id: "a", total: 50 });
  await handle.send(PaymentReceived, { amount: 54.9 });
  assert.deepEqual(await handle.result(), { reservation: "reservation-of-a", paid: 54.9, shipping: 4.9, tracking: "parcel-a" });
  assert.deepEqual(deeds.sort(), ["hand-over", "print-label", "quote-shipping", "reserve-stock", "score-risk"]);
  assert.equal(env.now().getTime() - start.getTime(), 2 * 3_600_000, "two hours, in no time");
});

test("only a risky order is reviewed", async () => {
  await using env = await createTestEnvironment({ workflows });
  const handle = await env.start(order, { id: "b", total: 5_000 });
  await handle.send(PaymentReceived, { amount: 5_000 });
  await handle.result();
  assert.ok(deeds.includes("review"));
});

test("an order that nobody pays fails after three days, and its stock is released", async () => {
  await using env = await createTestEnvironment({ workflows });
  await assert.rejects(env.execute(order, { id: "c", total: 50 }), (error) => {
    assert.ok(error instanceof WorkflowError);
    assert.equal(error.status, "Failed");
    assert.match(error.message, /order c was not paid within 3 days/);
    return true;
  });
  assert.equal(deeds.at(-1), "release-stock");
});

test("when shipping fails for good, the stock is released", async () => {
  await using env = await createTestEnvironment({ workflows });
  onDeed(({ what }) => {
    deeds.push(what);
    if (what === "print-label") throw new Error("no paper");
  });
  const handle = await env.start(order, { id: "d", total: 50 });
  await handle.send(PaymentReceived, { amount: 50 });
  await assert.rejects(handle.result(), /no paper/);
  assert.deepEqual(deeds.slice(-3), ["print-label", "print-label", "release-stock"]);
});

test("a cancelled order releases its stock before it ends", async () => {
  await using env = await createTestEnvironment({ workflows });
  const handle = await env.start(order, { id: "e", total: 50 });
  await env.settle();
  await handle.cancel({ reason: "changed my mind" });
  await assert.rejects(handle.result(), { name: "WorkflowError", status: "Cancelled" });
  assert.equal(deeds.at(-1), "release-stock");
});

test("a payment that is none is refused at once", async () => {
  await using env = await createTestEnvironment({ workflows });
  const handle = await env.start(order, { id: "f", total: 50 });
  await assert.rejects(handle.send(PaymentReceived, { amount: -1 }), { code: "INVALID_INPUT" });
});

test("a crash in between changes nothing, and no deed is done twice", async () => {
  await using env = await createTestEnvironment({ workflows });
  const handle = await env.start(order, { id: "g", total: 50 });
  await env.settle();
  await env.restart(); // drops the engine as a kill does, and opens another on the same store
  await handle.send(PaymentReceived, { amount: 54.9 });
  assert.equal((await handle.result()).tracking, "parcel-g");
  assert.equal(deeds.length, 5);
});
