import assert from "node:assert/strict";
import { test } from "node:test";
import { activity, all, awaitEvent, event, race, sleep, Type, workflow } from "@wovyr/sdk";
import { ExecutionRecord, Gate, SeededRandom } from "@wovyr/testing";
import { inCase } from "./case.ts";

const go = event("go", Type.Number());

test("H006 a buffered event that won a race wins it on every replay, however slowly payloads are decoded", async () => {
  const gate = new Gate<void, void>(() => "work");
  const work = activity("work", gate.body);
  const named = activity("named", async (name: string) => name);
  const racer = workflow("racer", async function* () {
    yield* work();
    const first = yield* race({ timer: sleep("1s"), event: awaitEvent(go) });
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
    await run.send(go, 2);
    assert.equal(await run.result(), "event");
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

test("H008 a loop that races events against a deadline loses and doubles none of them", async () => {
  const cycles = 60;
  const tick = activity("tick", async (n: number) => n);
  const reader = workflow("reader", async function* () {
    const seen: number[] = [];
    for (let cycle = 0; cycle < cycles; cycle++) {
      const first = yield* race({ event: awaitEvent(go), late: sleep("1s") });
      if (first.winner === "event") seen.push(first.value);
      if (cycle % 4 === 0) yield* all([tick(1), tick(2), tick(3), tick(4)]);
    }
    return seen;
  });
  await inCase({ workflows: [reader] }, async (env) => {
    const run = await env.start(reader);
    const random = new SeededRandom(8);
    let sent = 0;
    while (!(await env.state(run.id)).closed) {
      await env.advance(random.pick([100, 500, 998, 999, 1_000, 1_001]));
      if (random.below(4) === 0) await env.evict(run);
      if ((await env.state(run.id)).closed) break;
      for (let burst = random.pick([0, 1, 1, 5]); burst > 0; burst--) {
        if (!(await env.state(run.id)).closed) await run.send(go, sent++);
        await env.settle();
      }
    }
    const seen = await run.result();
    assert.deepEqual(seen, [...seen.keys()]);
    assert.equal(seen.length + (await env.state(run.id)).unread.size, sent);
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
    for (let round = 0; round < 20; round++) {
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
    assert.equal(record.total, 60);
  });
});
