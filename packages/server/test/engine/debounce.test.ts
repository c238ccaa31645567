import assert from "node:assert/strict";
import { test } from "node:test";
import { event, sleep, Type, workflow } from "@wovyr/sdk";
import fc from "fast-check";
import { inCase, inEachCache } from "./case.ts";

async function collected<T>(items: AsyncIterable<T>): Promise<T[]> {
  const all: T[] = [];
  for await (const item of items) all.push(item);
  return all;
}

type Document = { readonly id: string; readonly text: string };

const Edited = event("edited", Type.Object({ id: Type.String(), text: Type.String() }));

const index = workflow(
  "index",
  { debounce: { key: ({ id }: Document) => id, period: "10s", maxWait: "1m" }, triggers: [Edited] },
  async function* ({ text }: Document) {
    yield* sleep("1s");
    return text;
  },
);

test("starts within the period are one, with the input of the last, when the period of quiet is over", async () => {
  await inEachCache({ workflows: [index], autoSkip: false }, async (env) => {
    const from = env.now().getTime();
    const first = await env.start(index, { id: "a", text: "1" });
    assert.equal((await first.describe()).status, "Scheduled");
    await env.advance("8s");
    const second = await env.start(index, { id: "a", text: "2" });
    await env.advance("8s");
    const third = await env.start(index, { id: "a", text: "3" });
    const other = await env.start(index, { id: "b", text: "other" });
    assert.deepEqual(new Set([first.runId, second.runId, third.runId]).size, 1);
    assert.notEqual(other.runId, first.runId);
    await env.advance("9s");
    assert.equal((await third.describe()).status, "Scheduled");
    await env.advance("3s");
    assert.deepEqual([await first.result(), await other.result()], ["3", "other"]);
    const started = (await env.turns(first.id)).find(({ events }) => events.some(({ type }) => type === "TimerFired"));
    assert.equal((started?.at ?? 0) - from, 26_000);
  });
});

test("of the last start all counts that it says: attributes, memo, priority and time limits; and nothing of those before", async () => {
  const told = workflow("told", { debounce: { period: "10s" }, timeout: "1d" }, async function* (text: string, ctx) {
    yield* sleep("1m");
    return [text, ctx.attributes.of, ctx.memo.of];
  });
  await inEachCache({ workflows: [told], autoSkip: false }, async (env) => {
    const found = async (of: string) => (await collected(env.client.list({ attributes: { of } }))).length;
    const first = await env.start(told, "1", { attributes: { of: "1" }, memo: { of: "1" }, priority: "high", timeout: "5s" });
    await env.advance("1s");
    assert.equal(await found("1"), 1);
    await env.start(told, "2", { attributes: { of: "2" }, memo: { of: "2" } });
    await env.settle();
    assert.deepEqual([await found("1"), await found("2")], [0, 1]);
    const { attributes, memo } = await first.describe();
    assert.deepEqual([attributes, memo], [{ of: "2" }, { of: "2" }]);
    await env.advance("11s");
    const dues = async () =>
      (await first.describe()).timers.map(({ purpose, dueAt }) => [purpose, dueAt.getTime() - env.now().getTime() > 3_600_000]);
    assert.deepEqual((await dues()).sort(), [
      ["execution", true],
      ["sleep", false],
    ]);
    await env.advance("1m");
    assert.deepEqual(await first.result(), ["2", "2", "2"]);
    const last = await env.start(told, "3", { timeout: "1d" });
    await env.start(told, "4", { timeout: "5s" });
    await env.advance("20s");
    assert.equal((await last.describe()).status, "TimedOut");
  });
});

test("what a later start cannot change is refused when it says otherwise: the correlationId", async () => {
  await inCase({ workflows: [index], autoSkip: false }, async (env) => {
    const first = await env.start(index, { id: "a", text: "1" }, { correlationId: "c1" });
    assert.equal((await env.start(index, { id: "a", text: "2" }, { correlationId: "c1" })).runId, first.runId);
    await assert.rejects(env.start(index, { id: "a", text: "3" }, { correlationId: "c2" }), { code: "INVALID_OPTION" });
    await env.advance("11s");
    assert.notEqual((await env.start(index, { id: "a", text: "4" }, { correlationId: "c2" })).runId, first.runId);
    await env.advance("20s");
    assert.equal(await first.result(), "2");
  });
});

test("a start that is put off is Scheduled wherever it is looked at", async () => {
  await inCase({ workflows: [index], autoSkip: false }, async (env) => {
    const debounced = await env.start(index, { id: "a", text: "1" });
    const statuses = async () => [
      (await debounced.describe()).status,
      (await collected(env.client.list({ status: "Scheduled" })))[0]?.status,
      (await collected(env.client.list()))[0]?.status,
    ];
    assert.deepEqual(await statuses(), ["Scheduled", "Scheduled", "Scheduled"]);
    await env.advance("10500ms");
    assert.deepEqual(await statuses(), ["Waiting", undefined, "Waiting"]);
    await env.advance("1s");
  });
});

test("it is not put off beyond maxWait", async () => {
  await inCase({ workflows: [index], autoSkip: false }, async (env) => {
    const first = await env.start(index, { id: "a", text: "0" });
    for (let second = 5; second < 60; second += 5) {
      await env.advance("5s");
      assert.equal((await env.start(index, { id: "a", text: String(second) })).runId, first.runId);
    }
    await env.advance("5s");
    assert.equal((await first.describe()).status, "Waiting");
    const next = await env.start(index, { id: "a", text: "next" });
    assert.notEqual(next.runId, first.runId);
    await env.advance("20s");
    assert.deepEqual([await first.result(), await next.result()], ["55", "next"]);
  });
});

test("it outlives crashes: nothing is lost, and nothing begins twice", async () => {
  await inCase({ workflows: [index], autoSkip: false }, async (env) => {
    const first = await env.start(index, { id: "a", text: "1" });
    env.crash();
    await env.restart();
    const second = await env.start(index, { id: "a", text: "2" });
    assert.equal(second.runId, first.runId);
    await env.advance("9s");
    env.crash();
    await env.restart();
    await env.advance("3s");
    assert.equal(await env.handle(index, first.id).result(), "2");
  });
});

test("the same start said again, with its key, is known and puts nothing off", async () => {
  await inCase({ workflows: [index], autoSkip: false }, async (env) => {
    const [one, two] = [
      { id: "a", text: "1" },
      { id: "a", text: "2" },
    ];
    const first = await env.start(index, one, { idempotencyKey: "k1" });
    await env.start(index, two, { idempotencyKey: "k2" });
    await env.advance("6s");
    assert.equal((await env.start(index, one, { idempotencyKey: "k1" })).runId, first.runId);
    await assert.rejects(env.start(index, { id: "a", text: "3" }, { idempotencyKey: "k1" }), { code: "IDEMPOTENCY_CONFLICT" });
    await env.advance("5s");
    assert.equal(await first.result(), "2");
  });
});

test("publications that trigger it are debounced, and each of them counts once", async () => {
  await inCase({ workflows: [index], autoSkip: false }, async (env) => {
    for (const text of ["1", "2", "3"]) {
      const { started } = await env.client.publish(Edited, { id: "a", text }, { idempotencyKey: text });
      assert.equal(started.length, 1);
      await env.advance("5s");
    }
    const { started, replayed } = await env.client.publish(Edited, { id: "a", text: "1" }, { idempotencyKey: "1" });
    assert.equal(replayed, true);
    await env.advance("11s");
    assert.equal(await env.client.handle(started[0]?.id ?? "").result(), "3");
  });
});

test("one that was cancelled before it began leaves the next start to begin anew", async () => {
  await inCase({ workflows: [index], autoSkip: false }, async (env) => {
    const first = await env.start(index, { id: "a", text: "1" });
    await first.cancel();
    const second = await env.start(index, { id: "a", text: "2" });
    assert.notEqual(second.runId, first.runId);
    await env.advance("12s");
    assert.equal(await second.result(), "2");
  });
});

test("what a debounced start cannot have is refused", async () => {
  await inCase({ workflows: [index] }, async (env) => {
    await assert.rejects(env.start(index, { id: "a", text: "1" }, { id: "mine" }), { code: "INVALID_OPTION" });
    await assert.rejects(env.start(index, { id: "a", text: "1" }, { delay: "1m" }), { code: "INVALID_OPTION" });
    await assert.rejects(env.start(index, { id: "a", text: "1" }, { onConflict: "fail" }), { code: "INVALID_OPTION" });
  });
  const both = () => workflow("both", { singleton: {}, debounce: { period: "1s" } }, async function* () {});
  assert.throws(both, { code: "INVALID_OPTION" });
  assert.throws(() => workflow("long", { debounce: { period: "13h" } }, async function* () {}), { code: "INVALID_OPTION" });
});

test("of any starts each run has the last input of its window, and none begins within the period of another start", async () => {
  await fc.assert(
    fc.asyncProperty(fc.array(fc.tuple(fc.nat(14), fc.boolean()), { minLength: 1, maxLength: 8 }), async (starts) => {
      await inCase({ workflows: [index], autoSkip: false }, async (env) => {
        const made: { readonly at: number; readonly text: string; readonly run: string }[] = [];
        for (const [text, [pause, crash]] of starts.entries()) {
          await env.advance(pause * 1_000);
          const { runId } = await env.start(index, { id: "a", text: String(text) });
          made.push({ at: env.now().getTime(), text: String(text), run: runId });
          if (!crash) continue;
          env.crash();
          await env.restart();
        }
        await env.advance("2m");
        for (const run of new Set(made.map(({ run }) => run))) {
          const mine = made.filter((start) => start.run === run);
          const turns = await env.turns((await env.bareStore.getInstance({ tenant: "default", run }))?.id ?? "", run);
          const began = turns.find(({ events }) => events.some(({ type }) => type === "TimerFired"))?.at ?? 0;
          const last = mine.at(-1);
          assert.equal(began, Math.min((last?.at ?? 0) + 10_000, (mine[0]?.at ?? 0) + 60_000));
          const end = turns.at(-1)?.events.at(-1);
          assert.equal(end?.type === "InstanceCompleted" && end.output, JSON.stringify(last?.text));
        }
      });
    }),
    { numRuns: 25 },
  );
});
