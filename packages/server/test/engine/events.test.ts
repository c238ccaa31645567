import assert from "node:assert/strict";
import { test } from "node:test";
import {
  activity,
  awaitEvent,
  type Branch,
  child,
  condition,
  event,
  NonRetryableError,
  race,
  sleep,
  spawn,
  TimeoutError,
  Type,
  update,
  WorkflowError,
  type WovyrError,
  workflow,
} from "@wovyr/sdk";
import type { Handle } from "@wovyr/sdk/client";
import { memoryStore } from "@wovyr/server/internal";
import { createFaultyStore, FaultPlan, Gate } from "@wovyr/testing";
import { inCase, inEachCache, macrotasks } from "./case.ts";

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

test("H025 a cancel wins over a time-out that is past, and over one that comes with it", async () => {
  const plan = new FaultPlan();
  const twice = workflow("twice", async function* () {
    const ends: string[] = [];
    for (const name of ["first", "second"])
      try {
        yield* awaitEvent(ping, { timeout: "1h" });
      } catch (error) {
        ends.push(`${name}: ${(error as Error).name}`);
        if (!(error instanceof TimeoutError)) throw new RangeError(ends.join());
      }
    return ends;
  });
  await inCase({ workflows: [twice], store: createFaultyStore(memoryStore(), plan), autoSkip: false }, async (env) => {
    const ends = async (run: Handle<unknown>) => {
      await assert.rejects(run.result(), (error) => error instanceof WorkflowError && error.status === "Cancelled");
      const { outcome } = await env.state(run.id);
      assert.equal(outcome?.status, "Cancelled");
    };
    const past = await env.start(twice);
    await env.advance("1h");
    await env.evict(past);
    await past.cancel();
    await ends(past);
    for (const first of ["cancel", "timer"]) {
      const run = await env.start(twice);
      await env.advance("59m 59s");
      const window = plan.hold("commit");
      const calls: Promise<unknown>[] = [run.send(pong, 0)];
      await window.reached;
      const steps = [() => void calls.push(run.cancel()), () => env.clock.advance(1_000)];
      for (const step of first === "cancel" ? steps : steps.reverse()) {
        step();
        await macrotasks();
      }
      window.release();
      await Promise.all(calls);
      await env.settle();
      await ends(run);
    }
    assert.deepEqual(
      env.logs
        .filter(({ message }) => /the clean-up of a cancelled branch threw/.test(message))
        .map(({ data }) => String((data as { error: Error }).error)),
      [
        "RangeError: first: TimeoutError,second: CancelledError",
        "RangeError: first: CancelledError",
        "RangeError: first: TimeoutError,second: CancelledError",
      ],
    );
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
    for (let round = 0; round < 200; round++) {
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

const set = update("set", { output: Type.String() });
const held = workflow("held", { variables: () => ({ updated: false }) }, async function* (kind: string, ctx) {
  ctx.onUpdate(set, {
    handler: () => {
      ctx.variables.updated = true;
      return "updated";
    },
  });
  const tasks: Record<string, Branch<unknown>> = {
    activity: gated("a"),
    child: child(told, undefined, { id: `${ctx.id}-child` }),
    timer: sleep("1s"),
  };
  const task = tasks[kind] && (yield* spawn(tasks[kind]));
  yield* awaitEvent(pong);
  if (task !== undefined) yield* task;
  if (kind === "event") yield* awaitEvent(ping);
  if (kind === "update") yield* condition(() => ctx.variables.updated);
  if (kind === "cancel") yield* sleep("1 day");
  return kind;
});
const told = workflow("told", async function* () {
  return yield* awaitEvent(ping);
});
const gate = new Gate<string, string>();
const gated = activity("gated", gate.body);

for (const at of ["before", "after"] as const)
  test(`H027 what arrives while a wait is being saved (${at} the store has it) wakes the run without any further traffic`, async () => {
    const plan = new FaultPlan();
    await inCase({ workflows: [held, told], store: createFaultyStore(memoryStore(), plan), autoSkip: false }, async (env) => {
      let inTheWindow = 0;
      for (const kind of ["event", "activity", "timer", "update", "cancel", ...Array<string>(8).fill("child")]) {
        const run = await env.start(held, kind);
        await env.settle();
        // The turn in which the run comes to its wait is held while it is being saved; meanwhile arrives what it waits for.
        const window = plan.hold("commit", { at, where: ({ args }) => JSON.stringify(args).includes(run.runId) });
        const calls: Promise<unknown>[] = [run.send(pong, 0)];
        await window.reached;
        if (kind === "event") calls.push(run.send(ping, 1));
        if (kind === "activity") gate.open("a", "done");
        if (kind === "timer") env.clock.advance(1_000);
        if (kind === "update") calls.push(run.update(set));
        if (kind === "cancel") calls.push(run.cancel());
        if (kind === "child") calls.push(env.send(`${run.id}-child`, ping, 1));
        await macrotasks();
        const before = env.now().getTime();
        // A child may be written beside its parent, or has to wait for the same lane.
        if (kind === "child" && (await env.state(`${run.id}-child`)).closed) inTheWindow += 1;
        window.release();
        await Promise.all(calls);
        await env.settle();
        assert.equal((await env.state(run.id)).status, kind === "cancel" ? "Cancelled" : "Completed", kind);
        assert.equal(env.now().getTime(), before, kind);
      }
      assert.ok(inTheWindow > 0, "some children ended while their parents were being saved");
    });
  });

for (const order of [
  ["send", "start", "send"],
  ["start", "send", "send"],
  ["send", "send", "start"],
] as const)
  for (const end of ["goes on", "dies"] as const)
    test(`H029 a finished id is started again beside events for it (${order.join(", ")}), and the engine ${end}: the run is there, and each event is taken or refused`, async () => {
      const plan = new FaultPlan();
      const once = workflow("once", async function* () {
        return yield* awaitEvent(ping);
      });
      await inCase({ workflows: [once], store: createFaultyStore(memoryStore(), plan), autoSkip: false }, async (env) => {
        const first = await env.start(once, undefined, { id: "X" });
        await first.send(ping, 0);
        assert.equal(await first.result(), 0);
        const window = plan.hold("commit");
        const told = order.map((what, place) =>
          env
            .insist<unknown>(() =>
              what === "start"
                ? env.start(once, undefined, { id: "X", idempotencyKey: "again" })
                : env.send("X", ping, place + 1, { idempotencyKey: `${place}` }),
            )
            .then(
              () => "taken",
              (error: WovyrError) => error.code,
            ),
        );
        await window.reached;
        await macrotasks();
        if (end === "dies") await env.restart();
        else window.release();
        const outcomes = await Promise.all(told);
        window.release();
        await env.settle();
        for (const [place, what] of order.entries())
          assert.ok(outcomes[place] === "taken" || (what === "send" && outcomes[place] === "INSTANCE_CLOSED"), outcomes.join());
        const taken = order.flatMap((what, place) => (what === "send" && outcomes[place] === "taken" ? [place + 1] : []));
        if (taken.length === 0) await env.send("X", ping, 9);
        assert.equal(await env.handle(once, "X").result(), taken[0] ?? 9);
        assert.notEqual((await env.client.handle("X").describe()).runId, first.runId);
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
      assert.match((await run.describe()).failure?.message ?? "", message);
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
