/** Publications and runs that are paused, forked, reset or moved: each run hears what it waits for, once. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { awaitEvent, event, Type, workflow } from "@wovyr/sdk";
import { inCase, inEachCache } from "../engine/case.ts";
import { bordersOf } from "./borders.ts";

const Paid = event("paid", Type.Number());
/** Takes three publications of its key. */
const three = workflow("three", async function* (key: string) {
  const heard: number[] = [];
  while (heard.length < 3) heard.push(yield* awaitEvent(Paid, { key }));
  return heard.join(" ");
});

test("a publication reaches a paused run, which hears it when it resumes", async () => {
  await inEachCache({ workflows: [three] }, async (env) => {
    const run = await env.start(three, "a");
    await env.settle();
    await run.pause();
    assert.equal((await env.publish(Paid, 1, { key: "a" })).delivered, 1);
    for (const n of [2, 3]) await env.publish(Paid, n, { key: "a" });
    await env.restart();
    await run.resume();
    assert.equal(await run.result(), "1 2 3");
  });
});

test("a fork waits for itself: it hears what comes, and finds what was published after its border", async () => {
  await inEachCache({ workflows: [three] }, async (env) => {
    const run = await env.start(three, "a");
    await env.settle();
    await env.publish(Paid, 1, { key: "a" });
    await env.settle();
    const [first, second] = await bordersOf(env, run.id);
    await env.publish(Paid, 2, { key: "a" });
    await env.settle();
    const late = await run.fork({ at: second });
    const early = await run.fork({ at: first });
    await env.settle();
    await env.publish(Paid, 3, { key: "a" });
    for (const each of [run, late, early]) assert.equal(await each.result(), "1 2 3");
  });
});

test("a run that takes another one's place hears once what the other one had heard since, and what comes", async () => {
  await inEachCache({ workflows: [three] }, async (env) => {
    const run = await env.start(three, "a", { id: "t" });
    await env.settle();
    for (const n of [1, 2]) await env.publish(Paid, n, { key: "a" });
    await env.settle();
    const next = await run.reset({ to: "first" });
    await env.publish(Paid, 3, { key: "a" });
    assert.equal(await next.result(), "1 2 3");
  });
});

test("an imported run waits in its new store, whatever was published there before", async () => {
  await inCase({ workflows: [three] }, async (env) => {
    const run = await env.start(three, "a", { id: "t" });
    await env.settle();
    for (const n of [1, 2]) await env.publish(Paid, n, { key: "a", idempotencyKey: `p${n}` });
    await env.settle();
    const lines: string[] = [];
    for await (const line of run.export()) lines.push(line);
    await run.terminate();
    await inCase({ workflows: [three], clock: env.now(), seed: 2 }, async (other) => {
      await other.publish(Paid, 2, { key: "a", idempotencyKey: "p2" });
      await other.client.import(lines);
      await other.settle();
      await other.publish(Paid, 3, { key: "a" });
      assert.equal(await other.handle(three, "t").result(), "1 2 3", "what it had heard elsewhere it knows");
    });
  });
});
