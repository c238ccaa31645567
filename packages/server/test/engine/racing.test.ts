import assert from "node:assert/strict";
import { test } from "node:test";
import { activity, awaitEvent, CancelledError, child, event, race, sleep, TimeoutError, Type, timeout, workflow } from "@wovyr/sdk";
import { Gate } from "@wovyr/testing";
import { inCase, inEachCache } from "./case.ts";

const a = event("a", Type.Number());
const b = event("b", Type.Number());

test("H010 when a race is decided its losers are closed at once, and the run ends with its return", async () => {
  const gate = new Gate<undefined, void>(() => "d");
  const reasons: unknown[] = [];
  const d = activity("d", (input: undefined, ctx) => {
    ctx.signal.addEventListener("abort", () => reasons.push(ctx.signal.reason));
    return gate.body(input, ctx);
  });
  const c = workflow("c", async function* () {
    yield* sleep("1 day");
  });
  const racer = workflow("racer", async function* () {
    const { value } = yield* race([
      awaitEvent(a, { timeout: "1h" }),
      awaitEvent(b, { timeout: "1h" }),
      child(c, undefined, { id: "c" }),
      d(),
    ]);
    return value;
  });
  await inCase({ workflows: [racer, c] }, async (env) => {
    const run = await env.start(racer);
    await gate.arrived();
    const began = env.now();
    await run.send(a, 5);
    assert.equal(await run.result(), 5);
    assert.deepEqual(env.now(), began);
    const facts = (await env.turns(run.id)).flatMap((turn) => turn.events);
    const cancelled = facts.flatMap((fact) => (fact.type === "EffectCancelled" ? [fact.effect] : []));
    assert.deepEqual(cancelled, ["0.0!timeout", "0.1", "0.1!timeout", "0.2", "0.3"]);
    assert.ok(reasons[0] instanceof CancelledError);
    await assert.rejects(run.send(b, 1), { code: "INSTANCE_CLOSED" });
    await env.settle();
    assert.equal((await env.state("c")).status, "Terminated");
  });
});

for (const [how, wait] of Object.entries({
  "that timed out": async function* () {
    try {
      yield* awaitEvent(a, { timeout: "1s" });
    } catch (error) {
      if (!(error instanceof TimeoutError)) throw error;
    }
  },
  "that lost a race": async function* () {
    yield* race([awaitEvent(a), sleep("1s")]);
  },
  "whose scope timed out": async function* () {
    try {
      yield* timeout(awaitEvent(a), "1s");
    } catch (error) {
      if (!(error instanceof TimeoutError)) throw error;
    }
  },
  "of earlier turns of a loop": async function* () {
    for (let round = 0; round < 3; round++) yield* race([awaitEvent(a), sleep(300)]);
  },
}))
  test(`H011 a wait ${how} does not swallow the next event`, async () => {
    const waiter = workflow("waiter", async function* () {
      yield* wait();
      return yield* awaitEvent(a, { timeout: "1h" });
    });
    await inEachCache({ workflows: [waiter] }, async (env) => {
      const run = await env.start(waiter);
      await env.advance("2s");
      assert.equal((await env.state(run.id)).waits.size, 1);
      await run.send(a, 7);
      assert.equal(await run.result(), 7);
      assert.equal((await env.state(run.id)).waits.size, 0);
    });
  });

test("H012 a race against a timer goes on at the timer, while the slow activity still runs", async () => {
  const gate = new Gate<void, string>(() => "slow");
  const slow = activity("slow", gate.body);
  const racer = workflow("racer", async function* (_: undefined, ctx) {
    const began = ctx.now().getTime();
    const first = yield* race({ slow: slow(), late: sleep("2s") });
    const passed = ctx.now().getTime() - began;
    yield* sleep("1s");
    return [first.winner, passed];
  });
  await inCase({ workflows: [racer] }, async (env) => {
    const run = await env.start(racer);
    await gate.arrived();
    await env.advance("2s");
    assert.deepEqual(gate.waiting, ["slow"]);
    gate.open("slow", "too late");
    assert.deepEqual(await run.result(), ["late", 2_000]);
    assert.ok((await env.turns(run.id)).every((turn) => turn.events.every((fact) => fact.type !== "ActivityCompleted")));
  });
});

/** Timers that fall due within a minute are in memory, later ones only in the store. */
for (const [where, due] of [
  ["in memory", 1_000],
  ["in the store", 3_600_000],
] as const)
  test(`H013 an event wins over a branch at work, and a timer branch (its timer ${where}) settles a race with its error`, async () => {
    const gate = new Gate<void, void>(() => "work");
    const work = activity("work", gate.body);
    const eventful = workflow("eventful", async function* () {
      return (yield* race({
        came: awaitEvent(a),
        work: async function* () {
          yield* work();
        },
      })).winner;
    });
    const timed = workflow("timed", async function* () {
      yield* race([
        awaitEvent(b),
        async function* () {
          yield* sleep(due);
          throw new RangeError("late");
        },
      ]);
    });
    await inEachCache({ workflows: [eventful, timed] }, async (env) => {
      const first = await env.start(eventful);
      await gate.arrived();
      await env.advance(100);
      const sent = env.now().getTime();
      await first.send(a, 1);
      assert.equal(await first.result(), "came");
      assert.equal(env.now().getTime(), sent);
      gate.open("work", undefined);
      const began = env.now().getTime();
      const second = await env.start(timed);
      await env.settle();
      await env.restart();
      await assert.rejects(second.result(), /late/);
      assert.equal(env.now().getTime() - began, due);
    });
  });
