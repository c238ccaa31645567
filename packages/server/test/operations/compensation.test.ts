/** Runs that undo what they did, paused, forked and reset on the way. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { activity, awaitEvent, compensateNow, event, NonRetryableError, spawn, WovyrError, workflow } from "@wovyr/sdk";
import { Gate } from "@wovyr/testing";
import { inEachCache } from "../engine/case.ts";
import { bordersOf } from "./borders.ts";

const book = activity("book", async (what: string) => what);

test("a run that is paused while it undoes stops undoing until it resumes", async () => {
  const gate = new Gate<string, void>(String);
  const undo = activity("undo", gate.body);
  const trip = workflow("trip", async function* () {
    for (const what of ["a", "b"]) yield* book(what).compensate((booked) => undo(booked));
    throw new RangeError("no seats");
  });
  await inEachCache({ workflows: [trip] }, async (env) => {
    const run = await env.start(trip);
    await gate.arrived("b");
    await run.pause();
    gate.open("b", undefined);
    await env.settle();
    await env.restart();
    await env.advance("1 day");
    assert.equal((await run.describe()).status, "Paused");
    assert.deepEqual(gate.waiting, []);
    await run.resume();
    await gate.arrived("a");
    assert.equal((await run.describe()).status, "Compensating");
    gate.open("a", undefined);
    await assert.rejects(run.result(), { status: "Compensated" });
  });
});

test("what is stuck at the border of a fork, or of a reset, is stuck in the new run, and decided on there", async () => {
  let closed = true;
  const undo = activity("undo", async (what: string) => {
    if (closed && what === "b") throw new NonRetryableError("closed today");
  });
  const trip = workflow("trip", async function* () {
    for (const what of ["a", "b"]) yield* book(what).compensate((booked) => undo(booked));
    throw new RangeError("no seats");
  });
  await inEachCache({ workflows: [trip] }, async (env) => {
    closed = true;
    const run = await env.start(trip, undefined, { id: "t" });
    await env.settle();
    const letters = async () => (await env.bareStore.listDeadLetters("default", {}, { limit: 9 })).map(({ run: of }) => of).sort();
    const stuck = (await bordersOf(env, "t")).at(-1) ?? 0;
    const fork = await run.fork({ at: stuck });
    await env.settle();
    assert.equal((await fork.describe()).status, "Compensating");
    assert.deepEqual(await letters(), [run.runId, fork.runId].sort());
    const next = await run.reset({ to: stuck });
    await env.settle();
    assert.deepEqual(await letters(), [next.runId, fork.runId].sort());
    closed = false;
    for (const each of [fork, next]) {
      await each.retryCompensation("~1");
      await assert.rejects(each.result(), { status: "Compensated" });
    }
    assert.deepEqual(await letters(), []);
  });
});

test("`last` of a run that undoes itself, or has, is the place just before its failure: what it did stands there", async () => {
  let sold = false;
  const done: string[] = [];
  const reserve = activity("reserve", async (what: string) => {
    if (what === "car" && !sold) throw new NonRetryableError("no car left");
    done.push(what);
    return what;
  });
  for (const broken of [false, true]) {
    const undo = activity("undo", async (what: string) => {
      if (broken && what === "hotel") throw new NonRetryableError("closed today");
      done.push(`no ${what}`);
    });
    const trip = workflow("trip", async function* () {
      for (const what of ["flight", "hotel", "car"]) yield* reserve(what).compensate((reserved) => undo(reserved));
      return "booked";
    });
    await inEachCache({ workflows: [trip] }, async (env) => {
      sold = false;
      done.length = 0;
      const run = await env.start(trip, undefined, { id: "t" });
      if (broken) {
        await env.settle();
        assert.equal((await run.describe()).status, "Compensating");
        await run.skipCompensation("~1");
      }
      await assert.rejects(run.result(), { status: broken ? "CompensationFailed" : "Compensated" });
      assert.deepEqual(done, broken ? ["flight", "hotel", "no flight"] : ["flight", "hotel", "no hotel", "no flight"]);
      sold = true;
      done.length = 0;
      const borders = await bordersOf(env, "t");
      for (const next of [await run.fork({ at: "last" }), await run.reset({ to: "last" })]) {
        assert.equal(await next.result(), "booked");
        const { forkedFrom, resetFrom } = await next.describe();
        const at = (forkedFrom ?? resetFrom)?.at ?? 0;
        assert.ok(at < (borders.at(-1) ?? 0), "a place before those of the undoing");
      }
      assert.deepEqual(done, ["car", "car"]);
      const inside = await run.fork({ at: borders.at(-1) ?? 0, runId: run.runId });
      await assert.rejects(inside.result(), { status: broken ? "CompensationFailed" : "Compensated" });
    });
  }
});

test("what a saga or the code itself undoes on the way is no end: `last` lies after it", async () => {
  const Go = event("go");
  const undo = activity("undo", async (_: string) => {});
  const trip = workflow("trip", async function* () {
    yield* book("a").compensate((booked) => undo(booked));
    yield* compensateNow();
    yield* awaitEvent(Go);
    throw new RangeError("no seats");
  });
  await inEachCache({ workflows: [trip] }, async (env) => {
    const run = await env.start(trip, undefined, { id: "t" });
    await env.settle();
    const waiting = (await bordersOf(env, "t")).at(-1);
    await run.send(Go);
    await assert.rejects(run.result(), { status: "Failed" });
    const fork = await run.fork({ at: "last" });
    assert.equal((await fork.describe()).forkedFrom?.at, waiting);
  });
});

test("a run that undoes itself from its first turn on has no `first` and no `last`, which is said with the numbers that there are", async () => {
  const undo = activity("undo", async (_: unknown) => {});
  const trip = workflow("trip", async function* () {
    yield* spawn(book("a").compensate(() => undo(undefined), { when: "started" }));
    throw new RangeError("no seats");
  });
  await inEachCache({ workflows: [trip] }, async (env) => {
    const run = await env.start(trip, undefined, { id: "t" });
    await run.result().catch(() => {});
    const [first] = await bordersOf(env, "t");
    for (const at of ["first", "last"] as const)
      await assert.rejects(
        run.fork({ at }),
        (error: unknown) => error instanceof WovyrError && error.code === "NOT_A_BORDER" && error.message.includes(`event ${first}`),
      );
  });
});
