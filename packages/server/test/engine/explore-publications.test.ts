/** Publisher and waiter in every order, with every fault between any two of their steps. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { activity, awaitEvent, event, publish, sleep, Type, workflow } from "@wovyr/sdk";
import { explore, publication } from "@wovyr/testing";

const Paid = event("paid", Type.Number());
const echo = activity("echo", async (value: number) => value);

test("whatever comes first or breaks, a run takes each publication with its key once and in order", async () => {
  const reading = workflow("reading", async function* () {
    const first = yield* awaitEvent(Paid, { key: "a" });
    yield* echo(first);
    return [first, yield* awaitEvent(Paid, { key: "a" })];
  });
  await explore(reading, undefined, {
    events: [publication(Paid, 1, { key: "a" }), publication(Paid, 9, { key: "b" }), publication(Paid, 2, { key: "a" })],
    interleavings: 60,
    invariant: ({ output }) => assert.deepEqual([...(output as number[])].sort(), [1, 2]),
  });
});

test("a chain of runs stands every fault, and takes each publication once", async () => {
  const chain = workflow("chain", { input: Type.Array(Type.Number()) }, async function* (seen, ctx) {
    const now = [...seen, yield* awaitEvent(Paid, { key: "a" })];
    if (now.length % 2 === 0) yield* sleep("1m");
    if (now.length === 4) return now;
    return yield* ctx.continueAsNew(now);
  });
  await explore(chain, [], {
    events: [1, 2, 3, 4].map((n) => publication(Paid, n, { key: "a" })),
    interleavings: 60,
    invariant: ({ output }) => assert.deepEqual([...(output as number[])].sort(), [1, 2, 3, 4]),
  });
});

test("what a run publishes is published once, whatever breaks", async () => {
  const self = workflow("self", async function* (_: undefined, ctx) {
    yield* publish(Paid, 1, { key: ctx.id });
    yield* publish(Paid, 2, { key: ctx.id });
    return [yield* awaitEvent(Paid, { key: ctx.id }), yield* awaitEvent(Paid, { key: ctx.id })];
  });
  await explore(self, undefined, { interleavings: 20, invariant: ({ output }) => assert.deepEqual(output, [1, 2]) });
});
