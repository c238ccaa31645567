/** Runs on their way out of one store and into another. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { activity, all, awaitEvent, child, event, sleep, Type, WovyrError, workflow } from "@wovyr/sdk";
import type { PayloadCodec } from "@wovyr/sdk/internal";
import { memoryStore } from "@wovyr/server/internal";
import { createFaultyStore, createTestEnvironment, FaultPlan, Gate, type TestEnvironment } from "@wovyr/testing";
import { inCase } from "../engine/case.ts";

const Go = event("go", Type.String());
const double = activity("double", async (n: number) => n * 2);
const mixed = workflow("mixed", async function* ({ at, n }: { at: Date; n: number }, ctx) {
  const from = ctx.now().getTime();
  const first = yield* double(n);
  const [word] = yield* all([awaitEvent(Go), sleep("2h")]);
  return { at, first, word, id: ctx.id, hours: (ctx.now().getTime() - from) / 3_600_000 };
});
const input = { at: new Date(0), n: 4 };

const code =
  (wanted: string, text = /./) =>
  (error: unknown) =>
    error instanceof WovyrError && error.code === wanted && text.test(error.message);

async function exportOf(env: TestEnvironment, id: string, runId?: string): Promise<string[]> {
  const lines: string[] = [];
  for await (const line of env.client.handle(id).export(runId === undefined ? {} : { runId })) lines.push(line);
  return lines;
}

test("a closed run comes back as it was: history, result, memo, attributes, times", async () => {
  await inCase({ workflows: [mixed] }, async (env) => {
    const run = await env.start(mixed, input, { id: "m", memo: { why: new Set([1n]) }, attributes: { colour: "red" } });
    await run.send(Go, "now");
    const result = await run.result();
    const [lines, about, turns] = [await exportOf(env, "m"), await run.describe(), await env.turns("m")];
    await inCase({ workflows: [mixed], clock: new Date("2027-01-01T00:00:00Z") }, async (other) => {
      assert.deepEqual(await other.client.import(lines), [{ id: "m", runId: run.runId, status: "Completed" }]);
      const imported = other.handle(mixed, "m");
      assert.deepEqual(await imported.result(), result);
      assert.deepEqual(await imported.describe(), about);
      assert.deepEqual(await other.turns("m"), turns);
      const found: string[] = [];
      for await (const { id } of other.client.list({ attributes: { colour: "red" } })) found.push(id);
      assert.deepEqual(found, ["m"]);
      assert.deepEqual(await exportOf(other, "m"), lines, "and goes out again as it came in");
    });
  });
});

test("an open run goes on: timers at their times, events kept, an attempt under way again and not as lost", async () => {
  const gate = new Gate<number, number>(String);
  const work = activity("work", gate.body);
  const worker = workflow("worker", async function* (n: number, ctx) {
    const from = ctx.now().getTime();
    const [value, word] = yield* all([work(n), awaitEvent(Go), sleep("5h")]);
    return `${value} ${word} ${(ctx.now().getTime() - from) / 3_600_000}`;
  });
  for (const evictAlways of [false, true])
    await inCase({ workflows: [worker] }, async (env) => {
      const run = await env.start(worker, 7, { id: "w" });
      await gate.arrived("7");
      await env.advance("1h");
      await run.send(Go, "word");
      const lines = await exportOf(env, "w");
      await run.terminate();
      gate.open("7", 0);
      await inCase({ workflows: [worker], clock: env.now(), evictAlways }, async (other) => {
        const [imported] = await other.client.import(lines);
        assert.deepEqual([imported?.id, imported?.runId], ["w", run.runId]);
        const call = await gate.arrived("7");
        assert.deepEqual([call.ctx.attempt, call.ctx.idempotencyKey], [1, `${run.runId}/0.0`], "it is the same run");
        gate.open("7", 70);
        assert.equal(await other.handle(worker, "w").result(), "70 word 5");
        const types = (await other.history("w")).map(({ type }) => type);
        assert.ok(types.includes("Imported") && !types.includes("AttemptLost"), String(types));
        const again = await exportOf(other, "w");
        await inCase({ workflows: [worker], clock: other.now() }, async (third) => {
          await third.client.import(again);
          assert.equal(await third.handle(worker, "w").result(), "70 word 5");
        });
      });
    });
});

test("a paused run and a parked one are imported as such, with what was kept for them", async () => {
  const changed = workflow("mixed", async function* () {
    yield* sleep("1h");
  });
  await inCase({ workflows: [mixed], end: { skipReplay: () => true } }, async (env) => {
    const [paused, parked] = [await env.start(mixed, input, { id: "paused" }), await env.start(mixed, input, { id: "parked" })];
    await env.settle();
    await paused.pause({ reason: "to be moved" });
    await paused.send(Go, "kept");
    await env.restart({ workflows: [changed] });
    await env.engine.revival.load({ tenant: "default", run: parked.runId });
    await parked.send(Go, "kept too");
    const lines = [...(await exportOf(env, "paused")), ...(await exportOf(env, "parked"))];
    await inCase({ workflows: [mixed], clock: env.now() }, async (other) => {
      const imported = await other.client.import(lines);
      assert.deepEqual(
        imported.map(({ id, status }) => [id, status]),
        [
          ["paused", "Paused"],
          ["parked", "Parked"],
        ],
      );
      await other.settle();
      assert.equal((await other.client.handle("paused").describe()).paused?.reason, "to be moved");
      for (const id of ["paused", "parked"]) await other.client.handle(id).resume();
      assert.deepEqual(
        [(await other.handle(mixed, "paused").result()).word, (await other.handle(mixed, "parked").result()).word],
        ["kept", "kept too"],
      );
    });
  });
});

test("parents and children that are exported together find each other again", async () => {
  const sub = workflow("sub", async function* () {
    return yield* awaitEvent(Go);
  });
  const parent = workflow("parent", async function* () {
    return yield* child(sub, undefined, { id: "the-child" });
  });
  await inCase({ workflows: [parent, sub] }, async (env) => {
    const run = await env.start(parent, undefined, { id: "p" });
    await env.settle();
    const lines = [...(await exportOf(env, "p")), ...(await exportOf(env, "the-child"))];
    await inCase({ workflows: [parent, sub], clock: env.now() }, async (other) => {
      await other.client.import(lines);
      await other.send("the-child", Go, "here");
      assert.equal(await other.handle(parent, "p").result(), "here");
    });
    await run.terminate();
    await env.settle();
  });
});

test("a fork is imported with the link to its origin", async () => {
  await inCase({ workflows: [mixed] }, async (env) => {
    const run = await env.start(mixed, input, { id: "origin" });
    await env.settle();
    const fork = await run.fork({ at: "last", id: "fork" });
    await env.settle();
    const lines = await exportOf(env, "fork");
    await inCase({ workflows: [mixed], clock: env.now() }, async (other) => {
      await other.client.import(lines);
      await other.send("fork", Go, "on");
      const { id, word } = await other.handle(mixed, "fork").result();
      assert.deepEqual([id, word], ["fork", "on"]);
      assert.deepEqual((await other.client.handle("fork").describe()).forkedFrom, (await fork.describe()).forkedFrom);
    });
    for (const each of [run, fork]) await each.terminate();
  });
});

test("what exists is refused, and with it all that came along", async () => {
  await inCase({ workflows: [mixed] }, async (env) => {
    const [a, b] = [await env.start(mixed, input, { id: "a" }), await env.start(mixed, input, { id: "b" })];
    await env.settle();
    const lines = [...(await exportOf(env, "a")), ...(await exportOf(env, "b"))];
    await assert.rejects(env.client.import(lines), code("RUN_EXISTS"));
    await inCase({ workflows: [mixed], clock: env.now(), seed: 2 }, async (other) => {
      const taken = await other.start(mixed, input, { id: "b" });
      await assert.rejects(other.client.import(lines), code("INSTANCE_EXISTS"));
      await assert.rejects(other.client.handle("a").describe(), code("INSTANCE_NOT_FOUND"), "nothing of it is there");
      await assert.rejects(other.client.import([...lines, ...lines]), code("INVALID_EXPORT", /is in it twice/));
      await taken.terminate();
      await other.client.import(lines);
      for (const id of ["a", "b"]) await other.client.handle(id).terminate();
    });
    for (const run of [a, b]) await run.terminate();
  });
});

/** What may be wrong with lines, and what is said of it. */
const wrongs: readonly (readonly [what: string, change: (lines: string[]) => string[], text: RegExp])[] = [
  ["nothing", () => [], /empty/],
  ["no JSON", ([header = "", ...rest]) => [header, `${rest[0]}}`, ...rest.slice(1)], /line 2 is no JSON/],
  ["no header", (lines) => lines.slice(1), /line 1 begins with neither/],
  ["another format", ([header = "", ...rest]) => [header.replace("instance/1", "instance/9"), ...rest], /format "wovyr-instance\/9"/],
  ["a turn that is missing", (lines) => lines.filter((_, at) => at !== 2), /line 3 begins at event/],
  ["the end that is missing", (lines) => lines.slice(0, -1), /is the end missing/],
  [
    "turns in another order",
    ([header = "", first = "", second = "", ...rest]) => [header, second, first, ...rest],
    /line 2 begins at event/,
  ],
  [
    "an event of an unknown kind",
    (lines) => lines.map((line) => line.replace('"ActivityScheduled"', '"ActivityImagined"')),
    /ActivityImagined/,
  ],
  ["an event without a field", (lines) => lines.map((line) => line.replace('"digest"', '"indigestion"')), /`digest`/],
  [
    "events that contradict each other",
    (lines) => lines.map((line) => line.replace('"ActivityScheduled","effect":"0"', '"ActivityScheduled","effect":"9"')),
    /contradict|follow/,
  ],
  [
    "a status that is another",
    ([header = "", ...rest]) => [header.replace('"Completed"', '"Failed"'), ...rest],
    /its history that it is Completed/,
  ],
  ["a value that is none", (lines) => lines.map((line) => line.replace('"output":"8"', '"output":"{8"')), /cannot be read/],
  ["a name that may not be one", ([header = "", ...rest]) => [header.replace('"id":"m"', '"id":"m m"'), ...rest], /no proper `id`/],
  ["a run of another name", (lines) => lines.map((line) => line.replace(/"run":"[^"]*"/, '"run":"mine"')), /no name that Wovyr gives/],
];

for (const [what, change, text] of wrongs)
  test(`an import with ${what} is refused with the place, and nothing is written`, async () => {
    await inCase({ workflows: [mixed] }, async (env) => {
      const run = await env.start(mixed, input, { id: "m" });
      await run.send(Go, "now");
      await run.result();
      const lines = await exportOf(env, "m");
      await run.delete();
      const changed = change(lines);
      assert.notDeepEqual(changed, lines);
      await assert.rejects(env.client.import(changed), code("INVALID_EXPORT", text));
      assert.equal((await env.bareStore.listInstances("default", {}, { limit: 1 })).length, 0);
      await env.client.import(lines);
    });
  });

test("more runs than one import takes are refused", async () => {
  await inCase({ workflows: [mixed] }, async (env) => {
    const run = await env.start(mixed, input, { id: "m" });
    await run.send(Go, "now");
    await run.result();
    const lines = await exportOf(env, "m");
    await run.delete();
    async function* many() {
      for (let copy = 0; copy <= 1_000; copy += 1) yield* lines.map((line) => line.replace(run.runId, numbered(run.runId, copy)));
    }
    await assert.rejects(env.client.import(many()), code("INVALID_EXPORT", /1000 runs at most/));
    assert.equal((await env.bareStore.listInstances("default", {}, { limit: 1 })).length, 0);
  });
});

const numbered = (run: string, copy: number) => run.slice(0, -3) + copy.toString(32).padStart(3, "0").replaceAll(/[ilo]/g, "z");

test("an export of a run that is at work is a state that it was in", async () => {
  const plan = new FaultPlan();
  await inCase({ workflows: [mixed], store: createFaultyStore(memoryStore(), plan) }, async (env) => {
    const run = await env.start(mixed, input, { id: "m" });
    await env.settle();
    const held = plan.hold("readHistory");
    const exporting = exportOf(env, "m");
    await held.reached;
    await run.send(Go, "meanwhile");
    held.release();
    const lines = await exporting;
    await inCase({ workflows: [mixed], clock: env.now() }, async (other) => {
      await other.client.import(lines);
      await other.send("m", Go, "again");
      assert.equal((await other.handle(mixed, "m").result()).word, "again", "it was exported before the event came");
    });
    assert.equal((await run.result()).word, "meanwhile");
  });
});

test("values that a codec wrote are exported as they are stored, and read with that codec only", async () => {
  const codec: PayloadCodec = {
    name: "rot",
    encode: (text: string) => [...text].reverse().join(""),
    decode: (text: string) => [...text].reverse().join(""),
  };
  await inCase({ workflows: [mixed], codec }, async (env) => {
    const run = await env.start(mixed, input, { id: "m" });
    await run.send(Go, "secret");
    const result = await run.result();
    const lines = await exportOf(env, "m");
    assert.ok(!lines.join("").includes("secret"));
    await inCase({ workflows: [mixed], codec }, async (other) => {
      await other.client.import(lines);
      assert.deepEqual(await other.handle(mixed, "m").result(), result);
    });
    await using without = await createTestEnvironment({ workflows: [mixed] });
    await assert.rejects(without.client.import(lines), code("INVALID_EXPORT", /cannot be read.*codec/));
  });
});
