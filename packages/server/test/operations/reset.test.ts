/** Resets: another run of the same id goes on from a place in a run's history, which ends in the same commit. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { activity, awaitEvent, child, condition, event, sleep, Type, update, WovyrError, workflow } from "@wovyr/sdk";
import { delivery } from "@wovyr/sdk/client";
import { Gate } from "@wovyr/testing";
import { inCase, inEachCache } from "../engine/case.ts";
import { bordersOf } from "./borders.ts";
import { crashedAtEachWrite } from "./crashing.ts";

const Note = event("note", Type.String());
const Add = update("add", { input: Type.String(), output: Type.Number() });
const mark = activity("mark", async (word: string) => word.toUpperCase());

/** Marks three notes, one after another. */
const marker = workflow("marker", { events: [Note] }, async function* (_: undefined, ctx) {
  const marked: string[] = [];
  while (marked.length < 3) marked.push(yield* mark(yield* awaitEvent(Note)));
  return `${ctx.id}: ${marked.join(" ")}`;
});

const code =
  (wanted: string, text = /./) =>
  (error: unknown) =>
    error instanceof WovyrError && error.code === wanted && text.test(error.message);

test("an open run that is reset ends, and another one of its id goes on with what it had heard since, in order and once", async () => {
  await inEachCache({ workflows: [marker] }, async (env) => {
    const run = await env.start(marker, undefined, { id: "m", memo: { of: "m" }, attributes: { colour: "red" } });
    await run.send(Note, "a", { idempotencyKey: "a" });
    await env.settle();
    const borders = await bordersOf(env, "m");
    await run.send(Note, "b", { idempotencyKey: "b" });
    const first = borders[0] as number;
    const next = await run.reset({ to: first, reason: "mended" });
    assert.equal(next.id, "m");
    assert.notEqual(next.runId, run.runId);
    // What was heard is known: said again, it comes to nothing.
    await next.send(Note, "a", { idempotencyKey: "a" });
    await next.send(Note, "b", { idempotencyKey: "b" });
    await next.send(Note, "c", { idempotencyKey: "c" });
    assert.equal(await next.result(), "m: A B C");
    assert.equal(await run.result(), "m: A B C", "who waits for the old run waits for the new one");
    assert.equal(env.executions.count(`${next.runId}/1`), 1, "what lies after the border is done again");
    const old = await env.state("m", run.runId);
    assert.deepEqual(old.outcome?.status, "Terminated");
    const rows = (await env.bareStore.listInstances("default", { id: "m" }, { limit: 10 })).map((row) => row.run);
    assert.deepEqual(rows, [next.runId, run.runId]);
    const { resetFrom, memo, attributes, resetTo } = await next.describe();
    assert.deepEqual(
      { resetFrom, memo, attributes, resetTo },
      { resetFrom: { id: "m", runId: run.runId, at: first }, memo: { of: "m" }, attributes: { colour: "red" }, resetTo: undefined },
    );
    const types = (await env.history("m")).map(({ type }) => type);
    assert.equal(types[first], "Forked");
  });
});

test("the old run says which one took its place, and why; what is said to it is passed on", async () => {
  await inEachCache({ workflows: [marker] }, async (env) => {
    const run = await env.start(marker, undefined, { id: "m" });
    await env.settle();
    const next = await run.reset({ to: "last", reason: "because" });
    for (const note of ["a", "b", "c"]) await env.handle(marker, "m").send(Note, note);
    assert.equal(await next.result(), "m: A B C");
    const types = (await env.history("m", run.runId)).map(({ type }) => type);
    assert.deepEqual(types, ["InstanceStarted", "EventAwaited", "ResetRequested", "EffectCancelled", "InstanceTerminated"]);
    const { outcome } = await env.state("m", run.runId);
    assert.ok(outcome !== undefined && "resetTo" in outcome && outcome.resetTo === next.runId);
    const runs: (string | undefined)[] = [];
    for await (const { runId, resetFrom } of next.runs()) runs.push(runId, resetFrom?.runId);
    assert.deepEqual(runs, [next.runId, run.runId, run.runId, undefined]);
  });
});

test("a closed run is reset as well, unless another open run has its id", async () => {
  const gate = new Gate<undefined, string>(() => "work");
  const work = activity("work", { retry: { maxAttempts: 1 } }, gate.body);
  const frail = workflow("frail", async function* () {
    yield* mark("before");
    return yield* work();
  });
  await inEachCache({ workflows: [frail] }, async (env) => {
    const failed = await env.start(frail, undefined, { id: "f" });
    await gate.arrived();
    gate.fail("work", new Error("faulty"));
    await assert.rejects(failed.result(), { status: "Failed" });
    const other = await env.start(frail, undefined, { id: "f" });
    await gate.arrived();
    const old = env.client.handle("f");
    await assert.rejects(old.reset({ to: "last", runId: failed.runId }), code("INSTANCE_EXISTS"));
    gate.open("work", "other");
    assert.equal(await other.result(), "other");
    const next = await old.reset({ to: "last", runId: failed.runId });
    await gate.arrived();
    gate.open("work", "mended");
    assert.equal(await next.result(), "mended");
    assert.equal(env.executions.count(`${next.runId}/0`), 0);
    assert.deepEqual((await next.describe()).resetFrom?.runId, failed.runId);
    await assert.rejects(failed.result(), { status: "Failed" }, "how it ended stays as it was");
  });
});

test("a paused run that is reset goes on; what was kept for it goes with it", async () => {
  await inEachCache({ workflows: [marker] }, async (env) => {
    const run = await env.start(marker, undefined, { id: "m", event: delivery(Note, "a") });
    await env.settle();
    await run.pause({ reason: "look" });
    await run.send(Note, "b");
    await run.send(Note, "c");
    const next = await run.reset({ to: "first" });
    assert.equal((await next.describe()).paused, undefined);
    assert.equal(await next.result(), "m: A B C");
  });
});

test("a parked run is reset to a place from which its code fits again", async () => {
  const first = workflow("changing", async function* () {
    yield* mark("a");
    yield* sleep("1h");
    return "first";
  });
  const second = workflow("changing", async function* () {
    yield* mark("a");
    yield* mark("b");
    return "second";
  });
  await inCase({ workflows: [first], end: { skipReplay: () => true } }, async (env) => {
    const run = await env.start(first, undefined, { id: "c" });
    await env.settle();
    await env.restart({ workflows: [second] });
    await env.engine.revival.load({ tenant: "default", run: run.runId });
    await env.settle();
    assert.equal((await run.describe()).status, "Parked");
    const next = await run.reset({ to: "first" });
    assert.equal(await next.result(), "second");
  });
});

test("a parent waits for the run that took its child's place", async () => {
  const parent = workflow("parent", async function* () {
    return yield* child(marker, undefined, { id: "m" });
  });
  await inEachCache({ workflows: [parent, marker] }, async (env) => {
    const run = await env.start(parent);
    await env.until(async () => (await env.bareStore.findInstance("default", "m")) !== undefined);
    await env.send("m", Note, "a");
    await env.settle();
    const next = await env.handle(marker, "m").reset({ to: "first" });
    for (const note of ["b", "c"]) await env.send("m", Note, note);
    assert.equal(await run.result(), "m: A B C");
    assert.equal(await next.result(), "m: A B C");
  });
});

test("children of the old run end with it, and those that were open at the border are started again for the new one", async () => {
  const parent = workflow("parent", async function* () {
    return yield* child(marker);
  });
  await inEachCache({ workflows: [parent, marker] }, async (env) => {
    const run = await env.start(parent, undefined, { id: "p" });
    await env.settle();
    const [before] = [...(await env.state("p")).children.values()];
    const next = await run.reset({ to: "last" });
    await env.settle();
    const [after] = [...(await env.state("p")).children.values()];
    assert.ok(before !== undefined && after !== undefined && before.id !== after.id);
    assert.equal((await env.client.handle(before.id).describe()).status, "Terminated");
    for (const note of ["a", "b", "c"]) await env.send(after.id, Note, note);
    assert.equal(await next.result(), `${after.id}: A B C`);
  });
});

test("updates that the old run had handled since are known to the new one, and not handled again", async () => {
  const box = workflow("box", async function* (_: undefined, ctx) {
    const added: string[] = [];
    ctx.onUpdate(Add, { handler: (word) => added.push(word) });
    yield* condition(() => added.length >= 2);
    return added.join(" ");
  });
  await inEachCache({ workflows: [box] }, async (env) => {
    const run = await env.start(box, undefined, { id: "b" });
    await run.update(Add, "lost", { idempotencyKey: "1" });
    const next = await run.reset({ to: "first" });
    assert.equal(await next.update(Add, "lost", { idempotencyKey: "1" }), 1, "as it was answered");
    await next.update(Add, "x", { idempotencyKey: "2" });
    await next.update(Add, "y", { idempotencyKey: "3" });
    assert.equal(await next.result(), "x y");
  });
});

test("the same request with the same key is one reset; a run that is not there, and a place that is none, are refused", async () => {
  await inCase({ workflows: [marker] }, async (env) => {
    const run = await env.start(marker, undefined, { id: "m" });
    await env.settle();
    const reset = (to: "first" | "last") => env.handle(marker, "m").reset({ to, runId: run.runId, idempotencyKey: "once" });
    const next = await reset("last");
    assert.equal((await reset("last")).runId, next.runId);
    await assert.rejects(reset("first"), code("IDEMPOTENCY_CONFLICT"));
    await assert.rejects(next.reset({ to: 1 }), code("NOT_A_BORDER", /nearest/));
    await assert.rejects(env.client.handle("nobody").reset({ to: "last" }), code("INSTANCE_NOT_FOUND"));
    await assert.rejects(next.reset({} as never), code("INVALID_OPTION", /`to`/));
    const again = await next.reset({ to: "last" });
    for (const note of ["a", "b", "c"]) await again.send(Note, note);
    assert.equal(await run.result(), "m: A B C", "over both resets");
  });
});

test("a crash at any write of a reset: either both runs know of it, or a repetition finishes it", async () => {
  const crashes = await crashedAtEachWrite({ workflows: [marker] }, async ({ env, begin, insist }) => {
    const run = await env.start(marker, undefined, { id: "m" });
    await run.send(Note, "a", { idempotencyKey: "a" });
    await env.settle();
    begin();
    const next = await insist(() => env.handle(marker, "m").reset({ to: "first", runId: run.runId, idempotencyKey: "once" }));
    await insist(() => next.send(Note, "b", { idempotencyKey: "b" }));
    await insist(() => next.send(Note, "c", { idempotencyKey: "c" }));
    assert.equal(await insist(() => next.result()), "m: A B C");
    const rows = await env.bareStore.listInstances("default", { id: "m" }, { limit: 10 });
    assert.deepEqual(
      rows.map(({ run: each, status }) => [each, status]),
      [
        [next.runId, "Completed"],
        [run.runId, "Terminated"],
      ],
    );
    assert.equal((await env.state("m", run.runId)).outcome?.status, "Terminated");
  });
  assert.ok(crashes > 10, String(crashes));
});
