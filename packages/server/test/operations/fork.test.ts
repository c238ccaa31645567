/** Forks: another instance goes on from a place in a run's history, under its own name, and the run is left as it is. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { activity, all, awaitEvent, child, condition, event, sleep, Type, update, WovyrError, workflow } from "@wovyr/sdk";
import { delivery } from "@wovyr/sdk/client";
import { Gate, type TestEnvironment } from "@wovyr/testing";
import { inCase, inEachCache } from "../engine/case.ts";
import { bordersOf } from "./borders.ts";
import { crashedAtEachWrite } from "./crashing.ts";

const code =
  (wanted: string, text = /./) =>
  (error: unknown) =>
    error instanceof WovyrError && error.code === wanted && text.test(error.message);

const Go = event("go", Type.String());
const double = activity("double", async (n: number) => n * 2);
const sub = workflow("sub", async function* (n: number) {
  return (yield* double(n)) + 1;
});
/** One of each kind of thing that a run can wait for. */
const everything = workflow("everything", async function* (n: number, ctx) {
  const first = yield* double(n);
  yield* sleep("1h");
  const [second, word] = yield* all([child(sub, first), awaitEvent(Go)]);
  const third = yield* double(second);
  return { third, word, id: ctx.id, run: ctx.runId, chance: ctx.random() };
});

test("a fork from any border comes to the same end under its own name; it runs only what lies after, and leaves its origin as it is", async () => {
  await inEachCache({ workflows: [everything, sub] }, async (env) => {
    const origin = await env.start(everything, 10, {
      id: "origin",
      memo: { of: "origin" },
      attributes: { colour: "red" },
      event: delivery(Go, "early"),
    });
    const result = await origin.result();
    const before = await env.turns("origin");
    const borders = await bordersOf(env, "origin");
    assert.ok(borders.length >= 4, String(borders));
    for (const at of borders) {
      const fork = await origin.fork({ at });
      const { chance, ...rest } = await fork.result();
      assert.deepEqual(rest, { third: 82, word: "early", id: fork.id, run: fork.runId });
      assert.notEqual(chance, result.chance);
      const kept = before.flatMap(({ seq, events }) => (seq <= at ? events : []));
      const completed = kept.filter(({ type }) => type === "ActivityCompleted").length;
      const own = ["0", "2", "3"].filter((effect) => env.executions.count(`${fork.runId}/${effect}`) > 0);
      assert.equal(own.length, 2 - completed, `from event ${at}`);
      const { forkedFrom, memo, attributes, correlationId } = await fork.describe();
      assert.deepEqual(
        { forkedFrom, memo, attributes, correlationId },
        {
          forkedFrom: { id: "origin", runId: origin.runId, at },
          memo: { of: "origin" },
          attributes: { colour: "red" },
          correlationId: "origin",
        },
      );
    }
    assert.deepEqual(await env.turns("origin"), before);
    const found: string[] = [];
    for await (const { id } of env.client.list({ attributes: { colour: "red" } })) found.push(id);
    assert.equal(found.length, borders.length + 1);
  });
});

test("a fork of a fork knows itself, and what either origin did is not done again", async () => {
  const note = activity("note", async (_: string) => {});
  const names = workflow("names", async function* (_: undefined, ctx) {
    const seen: string[] = [];
    for (let step = 0; step < 3; step += 1) {
      seen.push(ctx.id);
      yield* note(`${ctx.runId} ${ctx.correlationId} ${ctx.random()}`);
      yield* awaitEvent(Go);
    }
    return { seen: [...seen, ctx.id], chance: ctx.random() };
  });
  await inEachCache({ workflows: [names] }, async (env) => {
    const first = await env.start(names, undefined, { id: "first" });
    await first.send(Go, "1");
    await env.settle();
    const second = await first.fork({ at: "last", id: "second" });
    await second.send(Go, "2");
    await env.settle();
    const third = await second.fork({ at: "last", id: "third" });
    await env.restart();
    for (const run of [first, second, third]) {
      await run.send(Go, "3");
      if (run === first) await run.send(Go, "4");
    }
    const results = [await first.result(), await second.result(), await third.result()];
    assert.deepEqual(
      results.map(({ seen }) => seen),
      [
        ["first", "first", "first", "first"],
        ["first", "first", "second", "second"],
        ["first", "first", "second", "third"],
      ],
    );
    assert.equal(new Set(results.map(({ chance }) => chance)).size, 3);
    assert.deepEqual((await third.describe()).forkedFrom?.id, "second");
  });
});

test("a number that ends no turn is refused with the nearest ones; so is a run that has none", async () => {
  const two = workflow("two", async function* () {
    yield* all([sleep("1h"), sleep("2h")]);
  });
  const none = workflow("none", async function* () {});
  await inCase({ workflows: [two, none] }, async (env) => {
    const run = await env.start(two);
    await run.result();
    const [first, second] = await bordersOf(env, run.id);
    assert.deepEqual([first, second], [3, 4]);
    await assert.rejects(run.fork({ at: 2 }), code("NOT_A_BORDER", /the nearest is 3\./));
    await assert.rejects(run.fork({ at: 1 }), code("NOT_A_BORDER"));
    await assert.rejects(run.fork({ at: 99 }), code("NOT_A_BORDER", /the nearest is 4\./));
    const empty = await env.start(none);
    await assert.rejects(empty.fork({ at: "last" }), code("NOT_A_BORDER", /no turn after which it was open/));
    assert.equal((await env.bareStore.listInstances("default", {}, { limit: 10 })).length, 2, "nothing was begun");
  });
});

test("without a place a fork begins anew: with the same input or with another, which is checked", async () => {
  const sum = workflow("sum", { input: Type.Object({ a: Type.Number(), b: Type.Number() }) }, async function* ({ a, b }) {
    return yield* double(a + b);
  });
  await inCase({ workflows: [sum] }, async (env) => {
    const run = await env.start(sum, { a: 1, b: 2 }, { id: "sum", memo: { why: "sums" }, attributes: { kind: "sum" } });
    await run.result();
    const same = await run.fork({ id: "same" });
    assert.equal(await same.result(), 6);
    const { forkedFrom, memo, attributes } = await same.describe();
    assert.deepEqual(
      { forkedFrom, memo, attributes },
      { forkedFrom: { id: "sum", runId: run.runId }, memo: { why: "sums" }, attributes: { kind: "sum" } },
    );
    assert.equal(await (await run.fork({ input: { a: 3, b: 4 } })).result(), 14);
    await assert.rejects(run.fork({ input: { a: "3" } }), code("INVALID_INPUT"));
    await assert.rejects(run.fork({ input: { a: 3, b: 4 }, at: "first" }), code("INVALID_OPTION", /has used already/));
    await assert.rejects(run.fork({ version: "9" }), code("WORKFLOW_NOT_FOUND"));
    await assert.rejects(run.fork({ id: "no name" }), code("INVALID_NAME"));
    await assert.rejects(env.client.handle("nobody").fork(), code("INSTANCE_NOT_FOUND"));
  });
});

test("what is open at the border begins again under the fork's own keys; the attempt keeps its number, timers their times", async () => {
  const gate = new Gate<undefined, string>(() => "work");
  const work = activity("work", { retry: { initialDelay: "1h" } }, gate.body);
  const worker = workflow("worker", async function* (_: undefined, ctx) {
    const from = ctx.now().getTime();
    const [value] = yield* all([work(), sleep("5h")]);
    return { value, hours: (ctx.now().getTime() - from) / 3_600_000 };
  });
  await inEachCache({ workflows: [worker] }, async (env) => {
    const calls = gate.calls;
    const run = await env.start(worker);
    await gate.arrived();
    gate.fail("work", new Error("once"));
    await env.advance("1h");
    const { ctx } = await gate.arrived();
    assert.deepEqual([ctx.attempt, ctx.idempotencyKey], [2, `${run.runId}/${"0.0"}`]);
    gate.open("work", "origin's");
    await env.settle();
    await run.pause();
    await env.advance("1h");
    // After the second attempt had begun, and before it ended.
    const at = (await bordersOf(env, run.id))[2];
    const fork = await run.fork({ at });
    const again = await gate.arrived();
    assert.deepEqual([again.ctx.attempt, again.ctx.idempotencyKey], [2, `${fork.runId}/0.0`]);
    gate.open("work", "fork's");
    assert.deepEqual(await fork.result(), { value: "fork's", hours: 5 });
    const types = (await env.history(fork.id)).map(({ type }) => type);
    assert.ok(!types.includes("AttemptLost"), "it began again, and was not lost");
    const paused = await run.fork({ at: "last" });
    assert.deepEqual(await paused.result(), { value: "origin's", hours: 5 }, "a pause is not taken over");
    assert.equal((await run.describe()).status, "Paused", "its pause is its own");
    await run.resume();
    assert.deepEqual(await run.result(), { value: "origin's", hours: 5 });
    assert.equal(gate.calls - calls, 3);
  });
});

test("an open child is started again for the fork; the origin's goes on for the origin, and one that has ended stays ended", async () => {
  const waiting = workflow("waiting", async function* (n: number, ctx) {
    const word = yield* awaitEvent(Go);
    return `${n} ${word} ${ctx.id}`;
  });
  const parent = workflow("parent", async function* () {
    const ended = yield* child(sub, 1);
    return [ended, yield* child(waiting, 2, { id: "the-child" })];
  });
  await inEachCache({ workflows: [parent, waiting, sub] }, async (env) => {
    const run = await env.start(parent);
    await env.until(() => exists(env, "the-child"));
    const fork = await run.fork({ at: "last" });
    await env.settle();
    const state = await env.state(fork.id);
    const [open] = [...state.children.values()];
    assert.ok(open !== undefined && open.id !== "the-child");
    await env.send(open.id, Go, "fork");
    assert.deepEqual(await fork.result(), [3, `2 fork ${open.id}`]);
    assert.equal((await env.client.handle("the-child").describe()).status, "Waiting");
    await env.send("the-child", Go, "origin");
    assert.deepEqual(await run.result(), [3, "2 origin the-child"]);
    const subs: string[] = [];
    for await (const { id } of env.client.list({ workflow: sub })) subs.push(id);
    assert.equal(subs.length, 1);
    // A fork that ends before its child ends it, and no other.
    const again = await env.start(parent, undefined, { id: "again" });
    await env.until(() => exists(env, "the-child"));
    const other = await again.fork({ at: "last" });
    await env.settle();
    const [own] = [...(await env.state(other.id)).children.values()];
    await other.cancel();
    await assert.rejects(other.result(), { status: "Cancelled" });
    await env.settle();
    assert.equal((await env.client.handle(own?.id ?? "").describe()).status, "Terminated");
    assert.equal((await env.client.handle("the-child").describe()).status, "Waiting");
    await again.cancel();
    await env.settle();
  });
});

async function exists(env: TestEnvironment, id: string): Promise<boolean> {
  const row = await env.bareStore.findInstance("default", id);
  return row !== undefined && row.closedAt === undefined;
}

test("events that nobody had read at the border are the fork's as well; an update that was open is handled again", async () => {
  const Note = event("note", Type.String());
  const Slow = update("slow", { input: Type.String() });
  const box = workflow("box", async function* (_: undefined, ctx) {
    const heard: string[] = [];
    let open = false;
    ctx.onUpdate(Slow, {
      handler: async function* (word) {
        yield* condition(() => open);
        heard.push(word);
      },
    });
    yield* awaitEvent(Go);
    open = true;
    heard.push(yield* awaitEvent(Note), yield* awaitEvent(Note));
    yield* condition(() => ctx.handlersFinished);
    return heard.sort().join(" ");
  });
  await inEachCache({ workflows: [box] }, async (env) => {
    const run = await env.start(box);
    await run.send(Note, "a");
    await run.send(Note, "b");
    env.autoSkip = false;
    const slow = run.update(Slow, "u");
    await env.settle();
    const fork = await run.fork({ at: "last" });
    await run.terminate();
    await assert.rejects(slow, code("UPDATE_UNFINISHED"));
    await fork.send(Go, "now");
    assert.equal(await fork.result(), "a b u");
    env.autoSkip = true;
  });
});

test("a run may be forked whatever its state: parked, failed, terminated", async () => {
  let broken = true;
  const frail = workflow("frail", async function* () {
    const value = yield* double(1);
    yield* awaitEvent(Go);
    if (broken) throw new RangeError("broken");
    return value;
  });
  await inCase({ workflows: [frail], end: { skipReplay: () => true } }, async (env) => {
    const failed = await env.start(frail);
    await failed.send(Go, "x");
    await assert.rejects(failed.result(), { status: "Failed" });
    broken = false;
    const mended = await failed.fork({ at: "last" });
    await mended.send(Go, "y");
    assert.equal(await mended.result(), 2);
    const terminated = await env.start(frail);
    await env.settle();
    await terminated.terminate();
    const fork = await terminated.fork({ at: "last" });
    await fork.send(Go, "y");
    assert.equal(await fork.result(), 2);
    const parked = await env.start(frail);
    await env.settle();
    const changed = workflow("frail", async function* () {
      yield* sleep("1h");
    });
    await env.restart({ workflows: [changed] });
    await env.engine.revival.load({ tenant: "default", run: parked.runId });
    await env.settle();
    assert.equal((await parked.describe()).status, "Parked");
    const other = await parked.fork({ at: "last" });
    await env.settle();
    assert.equal((await other.describe()).status, "Parked", "its code does not fit either");
    await env.restart({ workflows: [frail] });
    for (const run of [parked, other]) {
      await run.send(Go, "z");
      assert.equal(await run.result(), 2);
    }
  });
});

test("the same request with the same key is one fork; an id that is taken is refused", async () => {
  await inCase({ workflows: [everything, sub] }, async (env) => {
    const run = await env.start(everything, 1, { id: "origin" });
    await env.settle();
    for (const request of [{ at: "last" }, {}] as const) {
      const made = await Promise.all(
        [1, 2].map(() => env.insist(() => run.fork({ ...request, idempotencyKey: `k${Object.keys(request).length}` }))),
      );
      assert.equal(made[0]?.runId, made[1]?.runId);
    }
    await assert.rejects(run.fork({ at: "first", idempotencyKey: "k1" }), code("IDEMPOTENCY_CONFLICT"));
    await assert.rejects(run.fork({ at: "last", id: "origin" }), code("INSTANCE_EXISTS"));
    await assert.rejects(run.fork({ id: "origin" }), code("INSTANCE_EXISTS"));
    for await (const { id } of env.client.list({ status: ["Waiting", "Running"] })) await env.client.handle(id).terminate();
    await env.settle();
  });
});

test("a crash at any write of a fork loses nothing and does nothing twice", async () => {
  const crashes = await crashedAtEachWrite({ workflows: [everything, sub] }, async ({ env, begin, insist }) => {
    const origin = await env.start(everything, 10, { id: "origin", event: delivery(Go, "early") });
    await origin.result();
    const [border] = await bordersOf(env, "origin");
    begin();
    const fork = await insist(() => origin.fork({ at: border, id: "fork", idempotencyKey: "once" }));
    const { third, word, id } = await insist(() => fork.result());
    assert.deepEqual({ third, word, id }, { third: 82, word: "early", id: "fork" });
    const runs: string[] = [];
    for await (const { runId } of fork.runs()) runs.push(runId);
    assert.equal(runs.length, 1);
  });
  assert.ok(crashes > 10, String(crashes));
});

test("a fork of a run that is paused is never shown as paused, from its first moment on", async () => {
  const waiting = workflow("waiting", async function* () {
    return yield* awaitEvent(Go);
  });
  await inEachCache({ workflows: [waiting] }, async (env) => {
    const run = await env.start(waiting, undefined, { id: "p" });
    await env.settle();
    await run.pause();
    const seen: unknown[] = [];
    const look = async (id: string) => {
      const { status, paused } = await env.client.handle(id).describe();
      seen.push(status, paused, (await env.client.handle(id).graph()).status);
    };
    const asked = [];
    for (let time = 0; time < 4; time++) asked.push(run.fork({ at: "last", id: `f${time}` }).then(({ id }) => look(id)));
    await Promise.all(asked);
    await env.settle();
    await look("f0");
    assert.deepEqual(
      seen.filter(Boolean),
      Array.from({ length: 10 }, () => "Waiting"),
    );
  });
});
