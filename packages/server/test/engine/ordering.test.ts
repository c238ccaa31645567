import assert from "node:assert/strict";
import { test } from "node:test";
import { activity, all, awaitEvent, event, race, sleep, spawn, Type, workflow } from "@wovyr/sdk";
import { memoryStore } from "@wovyr/server/internal";
import { createFaultyStore, ExecutionRecord, FaultPlan, Gate, SeededRandom } from "@wovyr/testing";
import { inCase, macrotasks } from "./case.ts";

const go = event("go", Type.Number());
const aside = event("aside", Type.Number());
const end = event("end", Type.Number());

for (const [timerFirst, arguments_] of [
  [true, "timer, event"],
  [false, "event, timer"],
] as const)
  test(`H006 a buffered event that won a race (${arguments_}) wins it on every replay, however slowly payloads are decoded`, async () => {
    const gate = new Gate<void, void>(() => "work");
    const work = activity("work", gate.body);
    const named = activity("named", async (name: string) => name);
    let entries = 0;
    const racer = workflow("racer", async function* () {
      entries += 1;
      yield* work();
      const [timer, came] = [sleep("1s"), awaitEvent(go)];
      const first = yield* race(timerFirst ? { timer, came } : { came, timer });
      yield* named(`W_${first.winner}`);
      yield* awaitEvent(go);
      return first.winner;
    });
    const random = new SeededRandom(6);
    const slowly = async (payload: string) => {
      for (let turns = random.below(4); turns > 0; turns--) await new Promise((resolve) => setImmediate(resolve));
      return payload;
    };
    await inCase({ workflows: [racer], codec: { name: "slow", encode: slowly, decode: slowly } }, async (env) => {
      const run = await env.start(racer);
      await run.send(go, 1);
      await gate.arrived();
      gate.open("work", undefined);
      await env.settle();
      for (let replays = 0; replays < 100; replays++) {
        await env.evict(run);
        await run.describe();
        await env.settle();
        assert.equal((await env.state(run.id)).parked, undefined);
      }
      assert.equal(entries, 101);
      await run.send(go, 2);
      assert.equal(await run.result(), "came");
    });
  });

for (const winner of ["timer", "came"] as const)
  test(`H006 of a timer and an event that come with one turn the first wins, live and replayed: ${winner}`, async () => {
    const plan = new FaultPlan();
    const named = activity("named", async (name: string) => name);
    const racer = workflow("racer", async function* () {
      const first = yield* race({ timer: sleep("1s"), came: awaitEvent(go) });
      yield* named(`W_${first.winner}`);
      yield* awaitEvent(end);
      return first.winner;
    });
    await inCase({ workflows: [racer], store: createFaultyStore(memoryStore(), plan), autoSkip: false }, async (env) => {
      const run = await env.start(racer);
      await env.settle();
      const held = plan.hold("commit");
      const other = run.send(aside, 0);
      await held.reached;
      const steps = [() => void sends.push(run.send(go, 1)), () => env.clock.advance(1_000)];
      const sends: Promise<void>[] = [other];
      for (const step of winner === "came" ? steps : steps.reverse()) {
        step();
        await macrotasks();
      }
      held.release();
      await Promise.all(sends);
      await env.settle();
      const turn = (await env.turns(run.id)).find(({ events }) =>
        events.some((fact) => fact.type === "EventReceived" && fact.name === "go"),
      );
      assert.ok(turn?.events.some((fact) => (winner === "came" ? fact.type === "EffectCancelled" : fact.type === "TimerFired")));
      await env.evict(run);
      await run.send(end, 2);
      assert.equal(await run.result(), winner);
    });
  });

test("H007 what finished first wins and continues first, and does so again on replay", async () => {
  const gate = new Gate<string, string>();
  const work = activity("work", gate.body);
  const named = activity("named", async (name: string) => name);
  const racer = workflow("racer", async function* () {
    const first = yield* race([work("slow"), work("fast")]);
    const order: string[] = [];
    const branch = async function* (name: string) {
      order.push(yield* work(name));
    };
    yield* all([branch("a"), branch("b"), branch("c")]);
    yield* named(`${first.value} ${order.join("")}`);
    yield* awaitEvent(go);
    return `${first.value} ${order.join("")}`;
  });
  await inCase({ workflows: [racer] }, async (env) => {
    const run = await env.start(racer);
    await gate.arrived("slow");
    gate.open("fast", "fast");
    await env.settle();
    gate.open("slow", "slow");
    for (const name of ["c", "a", "b"]) {
      await gate.arrived(name);
      gate.open(name, name);
      await env.settle();
    }
    await env.evict(run);
    await run.send(go, 0);
    assert.equal(await run.result(), "fast cab");
  });
});

const tick = activity("tick", async (n: number) => n);

/** Both take 200 turns of a loop; the second keeps its reader when the timer wins. */
const loops = {
  "a wait of its own in each turn": workflow("fresh", async function* () {
    const seen: number[] = [];
    for (let cycle = 0; cycle < 200; cycle++) {
      const first = yield* race({ came: awaitEvent(go), late: sleep("1s") });
      if (first.winner === "came") seen.push(first.value);
      yield* all([tick(1), tick(2), tick(3), tick(4)]);
    }
    return seen;
  }),
  "one reader that outlives the timer": workflow("kept", async function* () {
    const seen: number[] = [];
    let reader = yield* spawn(awaitEvent(go));
    for (let cycle = 0; cycle < 200; cycle++) {
      const first = yield* race({ came: reader, late: sleep("1s") });
      if (first.winner === "came") {
        seen.push(first.value);
        reader = yield* spawn(awaitEvent(go));
      }
      yield* all([tick(1), tick(2), tick(3), tick(4)]);
    }
    const last = yield* race({ came: reader, late: sleep(0) });
    return last.winner === "came" ? [...seen, last.value] : seen;
  }),
};

for (const [how, reader] of Object.entries(loops))
  test(`H008 a loop that races events against a deadline, with ${how}, loses and doubles none of them`, async () => {
    await inCase({ workflows: [reader] }, async (env) => {
      const run = await env.start(reader);
      const random = new SeededRandom(8);
      let sent = 0;
      while (!(await env.state(run.id)).closed) {
        await env.advance(random.pick([100, 100, 500, 998, 999, 1_000, 1_001, 1_002]));
        if (random.below(4) === 0) await env.evict(run);
        for (let burst = random.pick([0, 1, 1, 5]); burst > 0; burst--) {
          if (!(await env.state(run.id)).closed) await run.send(go, sent++);
          await env.settle();
        }
      }
      const seen = await run.result();
      assert.deepEqual(seen, [...seen.keys()]);
      assert.equal(seen.length + (await env.state(run.id)).unread.size, sent);
      const timers = (await env.turns(run.id)).flatMap(({ events }) => events).filter(({ type }) => type === "TimerFired").length;
      assert.ok(timers > 20 && seen.length > 50, `${timers} times the timer won, ${seen.length} times an event`);
    });
  });

test("H009 a sibling in a race is not started again when another finishes", async () => {
  const record = new ExecutionRecord();
  const gate = new Gate<string, string>();
  const work = activity("work", (input: string, ctx) => {
    record.note(`${ctx.instanceId} ${input}`);
    return gate.body(input, ctx);
  });
  const racer = workflow("racer", async function* () {
    const first = yield* race([work("A"), work("C")]);
    return [first.value, yield* work("B")];
  });
  await inCase({ workflows: [racer], end: { everyAttemptExecuted: true } }, async (env) => {
    for (let round = 0; round < 50; round++) {
      const run = await env.start(racer);
      await gate.arrived("A");
      gate.open("A", "a");
      await gate.arrived("B");
      assert.deepEqual(gate.waiting, ["C", "B"]);
      gate.open("C", "c");
      await env.settle();
      gate.open("B", "b");
      assert.deepEqual(await run.result(), ["a", "b"]);
    }
    assert.ok([...record.entries()].every(([, count]) => count === 1));
    assert.equal(record.total, 150);
  });
});
