/** Runs that undo what they did, paused, forked and reset on the way. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { activity, NonRetryableError, workflow } from "@wovyr/sdk";
import { Gate } from "@wovyr/testing";
import { inEachCache } from "../engine/case.ts";

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
    const fork = await run.fork({ at: "last" });
    await env.settle();
    assert.equal((await fork.describe()).status, "Compensating");
    assert.deepEqual(await letters(), [run.runId, fork.runId].sort());
    const next = await run.reset({ to: "last" });
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
