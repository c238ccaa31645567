import assert from "node:assert/strict";
import { test } from "node:test";
import { activity, all, awaitEvent, child, event, NonRetryableError, race, sleep, TimeoutError, Type, workflow } from "@wovyr/sdk";
import { memoryStore } from "@wovyr/server/internal";
import { createFaultyStore, FaultPlan, Gate } from "@wovyr/testing";
import { inCase, inEachCache } from "./case.ts";

const anything = event("anything", Type.Unknown());
const ping = event("ping", Type.Number());
const pong = event("pong", Type.Number());

test("H020 an event that is sent right after the start is kept until it is awaited", async () => {
  const work = activity("work", async () => "worked");
  const listener = workflow("listener", async function* () {
    yield* work();
    return yield* awaitEvent(ping, { timeout: "1m" });
  });
  await inCase({ workflows: [listener] }, async (env) => {
    const results = Array.from({ length: 200 }, async (_, n) => {
      const run = await env.start(listener);
      await run.send(ping, n);
      return run.result();
    });
    assert.deepEqual(await Promise.all(results), [...Array(200).keys()]);
  });
});

test("H020 an event that arrives before the run's code can be run is kept, too", async () => {
  const listener = workflow("listener", async function* () {
    return yield* awaitEvent(ping, { timeout: "1m" });
  });
  await inCase({ workflows: [listener] }, async (env) => {
    env.autoSkip = false;
    const run = await env.start(listener);
    await env.restart({ workflows: [] });
    await run.send(ping, 3);
    await env.restart({ workflows: [listener] });
    assert.equal(await run.result(), 3);
  });
});

test("H025 an empty payload is a payload and no time-out, and a time-out is recorded once", async () => {
  const flaky = activity("flaky", { retry: { initialDelay: "1s", maxAttempts: 2 } }, async (_: undefined, ctx) => {
    if (ctx.attempt === 1) throw new Error("once");
    return "ok";
  });
  const waiter = workflow("waiter", async function* () {
    let got: unknown;
    try {
      got = { payload: yield* awaitEvent(anything, { timeout: "1h" }) };
    } catch (error) {
      if (!(error instanceof TimeoutError)) throw error;
      got = "timed out";
    }
    yield* flaky();
    return got;
  });
  await inEachCache({ workflows: [waiter], end: { everyAttemptExecuted: true } }, async (env) => {
    for (const payload of [null, undefined, false, 0, "", [], {}]) {
      const run = await env.start(waiter);
      await run.send(anything, payload);
      await env.settle();
      await env.evict(run);
      assert.deepEqual(await run.result(), { payload });
    }
    const late = await env.start(waiter);
    await env.advance("1h");
    await env.evict(late);
    assert.equal(await late.result(), "timed out");
    const fired = (await env.turns(late.id)).flatMap((turn) => turn.events).filter((fact) => fact.type === "TimerFired");
    assert.equal(fired.length, 1);
  });
});

test("H026 of events that race the end of a wait and of the run, each is accepted and seen or clearly refused", async () => {
  const gate = new Gate<string, string>();
  const work = activity("work", gate.body);
  const target = workflow("target", async function* () {
    const first = yield* awaitEvent(ping);
    yield* work("rest");
    const second = yield* race([awaitEvent(ping), sleep("1s")]);
    return [first, second.value];
  });
  await inCase({ workflows: [target] }, async (env) => {
    for (let round = 0; round < 100; round++) {
      const run = await env.start(target);
      const outcomes = [run.send(ping, 1), run.send(ping, 2)].map((sent) =>
        sent.then(
          () => "accepted",
          (error) => error.code,
        ),
      );
      const early = await Promise.all(outcomes);
      await gate.arrived();
      gate.open("rest", "");
      const late = [run.send(ping, 3), run.send(ping, 4)].map((sent) =>
        sent.then(
          () => "accepted",
          (error) => error.code,
        ),
      );
      const told = [...early, ...(await Promise.all(late))];
      await env.settle();
      if (round % 5 === 0) await env.evict(run);
      const [first, second] = await run.result();
      assert.deepEqual([first, second], [1, 2]);
      const received = (await env.turns(run.id)).flatMap((turn) => turn.events).filter((fact) => fact.type === "EventReceived");
      assert.equal(received.length, told.filter((each) => each === "accepted").length);
      assert.ok(
        told.every((each) => each === "accepted" || each === "INSTANCE_CLOSED"),
        told.join(),
      );
    }
  });
});

test("H027 what arrives while a wait is being saved wakes the run without any further traffic", async () => {
  const plan = new FaultPlan();
  const gate = new Gate<string, string>();
  const work = activity("work", gate.body);
  const quick = workflow("quick", async function* () {
    return "child";
  });
  const waiter = workflow("waiter", async function* (kind: string) {
    if (kind === "event") return yield* awaitEvent(ping);
    if (kind === "activity") {
      const [, value] = yield* all([awaitEvent(ping), work("a")]);
      return value;
    }
    if (kind === "child") {
      const [value] = yield* all([child(quick), awaitEvent(ping)]);
      return value;
    }
    yield* all([sleep("1s"), awaitEvent(ping)]);
    return "slept";
  });
  await inCase({ workflows: [waiter, quick], store: createFaultyStore(memoryStore(), plan) }, async (env) => {
    for (const kind of ["event", "activity", "child", "timer"]) {
      const run = await env.start(waiter, kind);
      await env.settle();
      // The turn that takes "pong" is held while it is being saved; meanwhile the rest arrives.
      const held = plan.hold("commit", { at: kind === "child" ? "before" : "after" });
      const first = run.send(pong, 0);
      await held.reached;
      const second = run.send(ping, 5);
      if (kind === "activity") gate.open("a", "done");
      if (kind === "timer") env.clock.advance(1_000);
      held.release();
      await Promise.all([first, second]);
      await env.settle();
      const state = await env.state(run.id);
      assert.equal(state.status, "Completed", `${kind} ${state.status}`);
    }
  });
});

test("H069 a failure after an event wait fails the run at once", async () => {
  const failing = activity("failing", { retry: { maxAttempts: 1 } }, async () => {
    throw new Error("broken");
  });
  const final = activity("final", async () => {
    throw new NonRetryableError("final");
  });
  const waiter = workflow("waiter", async function* (kind: string) {
    yield* awaitEvent(ping);
    if (kind === "zero retries") yield* failing();
    if (kind === "non-retryable") yield* final();
    throw new Error("plain");
  });
  await inEachCache({ workflows: [waiter], end: { everyAttemptExecuted: true } }, async (env) => {
    for (const [kind, message] of [
      ["zero retries", /broken/],
      ["non-retryable", /final/],
      ["plain", /plain/],
    ] as const) {
      const run = await env.start(waiter, kind);
      await env.settle();
      await env.evict(run);
      const began = env.now().getTime();
      await run.send(ping, 1);
      await assert.rejects(run.result(), message);
      assert.equal(env.now().getTime(), began);
    }
  });
});

test("H065 an hour of waiting is nobody's time-out", async () => {
  const work = activity("work", { timeout: { startToClose: "5s" } }, async (n: number) => n);
  const waiter = workflow("waiter", async function* () {
    const before = yield* work(1);
    const got = yield* awaitEvent(ping);
    return [before, got, yield* work(2)];
  });
  await inCase({ workflows: [waiter], end: { everyAttemptExecuted: true } }, async (env) => {
    const run = await env.start(waiter);
    await env.settle();
    await env.evict(run);
    await env.advance("1h");
    await run.send(ping, 7);
    assert.deepEqual(await run.result(), [1, 7, 2]);
  });
});
