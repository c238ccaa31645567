/** The checks at the end of a case: silent where nothing is wrong, loud where something was lost. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { activity, awaitEvent, event, patched, sleep, Type, workflow } from "@wovyr/sdk";
import { checkEndOfCase, createTestEnvironment, type TestEnvironment } from "@wovyr/testing";

const Item = event("item", Type.Number());
const work = activity("work", async (n: number) => n);
const taking = workflow("taking", { triggers: [Item] }, async function* (until: number) {
  const taken: number[] = [];
  while (taken.length < until) taken.push(yield* awaitEvent(Item));
  return taken;
});
const instant = workflow("instant", async function* (_: undefined) {
  return yield* work(1);
});

test("a message that is said again with its key is one message, whatever its run is at", async () => {
  await using env = await createTestEnvironment({ workflows: [taking] });
  const run = await env.start(taking, 4, { id: "t" });
  const say = async () => {
    for (const key of ["a", "b", "a", "a"]) await run.send(Item, 1, { idempotencyKey: key });
  };
  await run.pause();
  await say();
  await checkEndOfCase(env);
  await env.restart();
  await say();
  await checkEndOfCase(env);
  await run.resume();
  await say();
  await run.send(Item, 2);
  await run.send(Item, 2);
  assert.equal((await run.result()).length, 4);
  await checkEndOfCase(env);
});

test("code that asks for a change which older turns did not know passes", async () => {
  const old = workflow("changing", async function* () {
    yield* sleep("1h");
    yield* sleep("1h");
  });
  const changed = workflow("changing", async function* () {
    if (yield* patched("works-first")) yield* work(1);
    yield* sleep("1h");
    yield* (yield* patched("works-later")) ? work(2) : sleep("1h");
  });
  await using env = await createTestEnvironment({ workflows: [old] });
  const run = await env.start(old);
  await env.settle();
  await env.restart({ workflows: [changed] });
  await env.start(changed, undefined, { id: "new" });
  await env.settle();
  await checkEndOfCase(env);
  await run.result();
  await env.handle(changed, "new").result();
  await checkEndOfCase(env);
});

test("code that was changed without saying so does not pass", async () => {
  const old = workflow("changing", async function* () {
    yield* awaitEvent(Item);
  });
  const changed = workflow("changing", async function* () {
    yield* awaitEvent(Item);
    yield* work(1);
  });
  await using env = await createTestEnvironment({ workflows: [old] });
  const run = await env.start(old);
  await run.send(Item, 1);
  await run.result();
  await env.restart({ workflows: [changed] });
  await assert.rejects(checkEndOfCase(env), /changing .* (does not replay|is made otherwise)/);
});

const removals: Readonly<Record<string, (env: TestEnvironment) => Promise<unknown>>> = {
  "by its handle": (env) => env.client.handle("i").delete(),
  "by its run": async (env) => env.client.handle("i").delete({ runId: (await env.client.handle("i").describe()).runId }),
  "by a batch": async (env) => {
    const id = await env.client.batches.start({ operation: { type: "delete" }, filter: {} });
    await env.until(async () => (await env.client.batches.get(id)).closedAt !== undefined);
  },
  "by its time": (env) => env.advance("3 days"),
};

test("a run that was removed was not lost, however it was removed", async () => {
  for (const [how, remove] of Object.entries(removals)) {
    await using env = await createTestEnvironment({ workflows: [instant, taking], ...(how === "by its time" && { retention: "1 day" }) });
    const run = await env.start(instant, undefined, { id: "i" });
    await run.result();
    const told = await env.start(taking, 2, { id: "t" });
    await env.publish(Item, 1);
    await told.send(Item, 1, { idempotencyKey: "k" });
    await told.result();
    await env.settle();
    await remove(env);
    await assert.rejects(run.describe(), { code: "INSTANCE_NOT_FOUND" }, how);
    await checkEndOfCase(env);
    await env.start(instant, undefined, { id: "i" });
    await checkEndOfCase(env);
  }
});

test("what was acknowledged and is not there is told: a run, and an event with and without a key", async () => {
  await using env = await createTestEnvironment({ workflows: [instant, taking] });
  const run = await env.start(instant, undefined, { id: "i" });
  await run.result();
  const told = await env.start(taking, 3, { id: "t" });
  await env.settle();
  // Without its code a run takes nothing: what is said to it is kept beside its history.
  await env.restart({ workflows: [instant] });
  for (const options of [{ idempotencyKey: "k" }, {}, { idempotencyKey: "kept" }]) await told.send(Item, 1, options);
  await env.settle();
  await checkEndOfCase(env);
  // Behind the engine's back.
  assert.equal(await env.bareStore.deleteRuns([{ tenant: "default", run: run.runId }]), 1);
  const inbox = await env.bareStore.listInbox(env.engine.ownership.shards, { limit: 10 });
  const lost = inbox.filter(({ message }) => !message.includes("kept"));
  assert.equal(lost.length, 2);
  await env.bareStore.drop(lost);
  const error = await checkEndOfCase(env).then(
    () => "nothing",
    ({ message }) => String(message),
  );
  assert.match(error, new RegExp(`the start of i \\(${run.runId}\\) was acknowledged, and there is no such run`));
  assert.equal(error.match(/event "item" to t was acknowledged/g)?.length, 2, error);
});
