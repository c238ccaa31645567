/**
 * What is said to a run that is paused or parked: nothing of it is lost, and none overtakes another.
 *
 * 1. What reaches a paused run is in its history at once; its code hears of it when it goes on, in order, before anything that came later.
 */
import assert from "node:assert/strict";
import { test } from "node:test";
import { activity, awaitEvent, condition, event, race, sleep, Type, update, WovyrError, workflow } from "@wovyr/sdk";
import { Gate, type TestEnvironment } from "@wovyr/testing";
import { inCase, inEachCache } from "../engine/case.ts";
import { crashedAtEachWrite } from "./crashing.ts";

const Item = event("item", Type.Number());
const Keyed = event("keyed", Type.Number());
const Double = update("double", { input: Type.Number(), output: Type.Number() });
const code = (wanted: string) => (error: unknown) => error instanceof WovyrError && error.code === wanted;
const typesOf = async (env: TestEnvironment, id: string) => (await env.history(id)).map(({ type }) => type);

/** Takes items one by one, and what is published under a key beside them; `perRun` of them in each run. */
const taker = (total: number, perRun = total) =>
  workflow("taker", async function* (before: number[] | undefined, ctx) {
    const got = [...(before ?? [])];
    for (let taken = 0; got.length < total; taken += 1) {
      if (taken >= perRun) return yield* ctx.continueAsNew(got);
      const { value } = yield* race({ sent: awaitEvent(Item), published: awaitEvent(Keyed, { key: "k" }) });
      got.push(value as number);
    }
    return got;
  });

test("what is sent and published to a paused run is heard in order, also over runs that continue as new", async () => {
  for (const perRun of [1, 2, 3, 6]) {
    const collector = taker(6, perRun);
    await inEachCache({ workflows: [collector] }, async (env) => {
      const run = await env.start(collector);
      await env.settle();
      await run.pause();
      for (const n of [1, 2, 3]) await run.send(Item, n);
      await env.publish(Keyed, 4, { key: "k" });
      await run.send(Item, 5);
      await Promise.all([run.resume(), run.send(Item, 6)]);
      const got = await env.handle(collector, run.id).result();
      // A run that begins with several events that nobody has taken is asked name by name.
      assert.deepEqual(
        got.filter((n) => n !== 4),
        [1, 2, 3, 5, 6],
        `${perRun} in each run`,
      );
      assert.equal(got.indexOf(4) >= 0 && (perRun < 6 || got[3] === 4), true, `${got}`);
    });
  }
});

test("publications of one key are heard by a paused run in order, each once, also after a restart", async () => {
  const collector = taker(5);
  await inEachCache({ workflows: [collector] }, async (env) => {
    const run = await env.start(collector);
    await env.settle();
    await run.pause();
    for (const n of [1, 2, 3]) await env.publish(Keyed, n, { key: "k" });
    await env.restart();
    for (const n of [4, 5]) await env.publish(Keyed, n, { key: "k" });
    await env.handle(collector, run.id).resume();
    assert.deepEqual(await env.handle(collector, run.id).result(), [1, 2, 3, 4, 5]);
  });
});

test("a run that is tried again after its resumption has what was sent while it was paused", async () => {
  const again = workflow("again", { retry: { maxAttempts: 3, initialDelay: "1ms" } }, async function* (_: undefined, ctx) {
    const n = yield* awaitEvent(Item);
    if (ctx.attempt < 3) throw new Error(`again after ${n}`);
    return n;
  });
  await inEachCache({ workflows: [again] }, async (env) => {
    const run = await env.start(again);
    await env.settle();
    await run.pause();
    for (const n of [1, 2]) await run.send(Item, n);
    await Promise.all([run.resume(), run.send(Item, 3)]);
    assert.equal(await env.handle(again, run.id).result(), 3);
  });
});

test("a crash at any write of a pause, a resumption and a run that continues as new loses nothing and reorders nothing", async () => {
  const collector = taker(4, 1);
  const crashes = await crashedAtEachWrite({ workflows: [collector] }, async ({ env, begin, insist }) => {
    begin();
    const { id } = await insist(() => env.start(collector, undefined, { id: "t", idempotencyKey: "start" }));
    const run = env.handle(collector, id);
    await insist(() => run.pause());
    for (const n of [1, 2]) await insist(() => run.send(Item, n, { idempotencyKey: `item-${n}` }));
    await insist(() => env.publish(Keyed, 3, { key: "k", idempotencyKey: "published" }));
    await insist(() => run.resume());
    await insist(() => run.send(Item, 4, { idempotencyKey: "item-4" }));
    const got = await insist(() => run.result());
    assert.deepEqual(
      got.filter((n) => n < 3),
      [1, 2],
    );
    assert.deepEqual([...got].sort(), [1, 2, 3, 4]);
  });
  assert.ok(crashes > 12, String(crashes));
});

test("what a paused run was sent is shown, is known when it is said again, and is not taken for something else", async () => {
  const collector = taker(2);
  await inEachCache({ workflows: [collector] }, async (env) => {
    const run = await env.start(collector);
    await run.pause();
    await run.send(Item, 1, { idempotencyKey: "a" });
    await run.send(Item, 1, { idempotencyKey: "a" });
    await assert.rejects(run.send(Item, 2, { idempotencyKey: "a" }), code("IDEMPOTENCY_CONFLICT"));
    const { status, bufferedEvents } = await run.describe();
    assert.equal(status, "Paused");
    assert.deepEqual(
      bufferedEvents?.map(({ name }) => name),
      ["item"],
    );
    await run.send(Item, 2, { idempotencyKey: "b" });
    await run.resume();
    assert.deepEqual(await run.result(), [1, 2]);
  });
});

test("what is left when a run ends at its resumption is in its history", async () => {
  const one = workflow("one", async function* () {
    return yield* awaitEvent(Item);
  });
  await inEachCache({ workflows: [one] }, async (env) => {
    const run = await env.start(one);
    await run.pause();
    for (const n of [1, 2, 3]) await run.send(Item, n);
    await run.resume();
    assert.equal(await run.result(), 1);
    assert.equal((await typesOf(env, run.id)).filter((type) => type === "EventReceived").length, 3);
  });
});

// ── updates ──────────────────────────────────────────────────────────────────────────────────────────────

const doubler = workflow("doubler", async function* (_: undefined, ctx) {
  ctx.onUpdate(Double, {
    validate: (n) => {
      if (n > 100) throw new RangeError("too much");
    },
    handler: (n) => n * 2,
  });
  yield* awaitEvent(Item);
  return "done";
});

test("an update of a paused run is judged when its turn comes: it is done, or its caller hears why it is refused", async () => {
  await inEachCache({ workflows: [doubler] }, async (env) => {
    env.autoSkip = false;
    const run = await env.start(doubler);
    await env.settle();
    await run.pause();
    const [good, bad] = [run.update(Double, 4), run.update(Double, 400, { idempotencyKey: "bad" })];
    bad.catch(() => {});
    await env.settle();
    await run.resume();
    assert.equal(await good, 8);
    await assert.rejects(bad, (error) => code("UPDATE_REJECTED")(error) && /too much/.test((error as Error).message));
    await assert.rejects(run.update(Double, 400, { idempotencyKey: "bad" }), code("UPDATE_REJECTED"));
    await run.send(Item, 1);
    assert.equal(await run.result(), "done");
    env.autoSkip = true;
  });
});

test("whoever waits for an update of a paused run hears at once that the run has ended", async () => {
  for (const end of ["terminate", "cancel", "complete"] as const)
    await inEachCache({ workflows: [doubler] }, async (env) => {
      env.autoSkip = false;
      const run = await env.start(doubler);
      await env.settle();
      await run.pause();
      if (end === "complete") await run.send(Item, 1);
      const asked = run.update(Double, 4);
      asked.catch(() => {});
      await env.settle();
      if (end === "terminate") await run.terminate();
      else if (end === "cancel") await run.cancel({ mode: "immediate" });
      else await run.resume();
      await assert.rejects(asked, code("UPDATE_UNFINISHED"));
      env.autoSkip = true;
    });
});

test("updates that were open at a reset are done by the run that takes the place, and answered from there", async () => {
  const slow = workflow("slow", async function* (_: undefined, ctx) {
    ctx.onUpdate(Double, {
      handler: async function* (n) {
        yield* sleep("10m");
        return n * 2;
      },
    });
    yield* awaitEvent(Item);
    yield* condition(() => ctx.handlersFinished);
    return "done";
  });
  for (const paused of [false, true])
    await inEachCache({ workflows: [slow] }, async (env) => {
      env.autoSkip = false;
      const run = await env.start(slow);
      await env.settle();
      if (paused) await run.pause();
      const asked = run.update(Double, 4, { idempotencyKey: "u" });
      await env.settle();
      const next = await run.reset({ to: "first" });
      await env.advance("10m");
      assert.equal(await asked, 8);
      assert.equal(await run.update(Double, 4, { idempotencyKey: "u" }), 8, "of the old run");
      assert.equal(await next.update(Double, 4, { idempotencyKey: "u" }), 8);
      await next.send(Item, 1);
      assert.equal(await next.result(), "done");
      env.autoSkip = true;
    });
});

// ── ends, forks, resets ──────────────────────────────────────────────────────────────────────────────────

test("what is sent to a paused run in the moment of its end is refused, recorded, or passed on: never acknowledged and lost", async () => {
  const collector = taker(3);
  for (const end of ["reset", "terminate", "cancel"] as const)
    for (const first of ["end", "send"] as const)
      await inCase({ workflows: [collector] }, async (env) => {
        const run = await env.start(collector);
        await env.settle();
        await run.pause();
        for (const n of [1, 2]) await run.send(Item, n);
        const ended = () =>
          end === "reset" ? run.reset({ to: "first" }) : end === "terminate" ? run.terminate() : run.cancel({ mode: "immediate" });
        const sent = () =>
          run.send(Item, 3).then(
            () => "sent",
            (error: WovyrError) => error.code,
          );
        const calls = first === "end" ? [ended(), sent()] : [sent(), ended()];
        const answers = await Promise.all(calls);
        const answer = answers[first === "end" ? 1 : 0];
        if (end === "reset") {
          assert.equal(answer, "sent");
          assert.deepEqual(await env.handle(collector, run.id).result(), [1, 2, 3]);
        } else if (answer === "sent") assert.equal((await typesOf(env, run.id)).filter((type) => type === "EventReceived").length, 3);
        else assert.equal(answer, "INSTANCE_CLOSED");
      });
});

test("a run that was told to cancel while it was paused does not go on as another one", async () => {
  const collector = taker(4, 1);
  await inEachCache({ workflows: [collector] }, async (env) => {
    const run = await env.start(collector);
    await env.settle();
    await run.pause();
    await run.send(Item, 1);
    await run.cancel({ reason: "enough" });
    await run.resume();
    await assert.rejects(run.result(), { status: "Cancelled" });
  });
});

test("a wake ends the sleeps that were open when it was said, and none that begins later", async () => {
  const sleeper = workflow("sleeper", async function* (_: undefined, ctx) {
    const from = ctx.now().getTime();
    yield* race([awaitEvent(Item), sleep("1h")]);
    yield* sleep("2h");
    return (ctx.now().getTime() - from) / 3_600_000;
  });
  await inEachCache({ workflows: [sleeper] }, async (env) => {
    const run = await env.start(sleeper);
    await env.settle();
    await run.pause();
    await run.send(Item, 1);
    await run.wake();
    await run.resume();
    assert.equal(await run.result(), 2);
  });
});

test("a fork and a reset from within a pause are not paused, and hear what was said before the border", async () => {
  const collector = taker(3);
  await inEachCache({ workflows: [collector] }, async (env) => {
    const run = await env.start(collector);
    await env.settle();
    await run.pause();
    for (const n of [1, 2]) await run.send(Item, n);
    const fork = await run.fork({ at: "last" });
    await run.send(Item, 3);
    await fork.send(Item, 30);
    assert.deepEqual(await fork.result(), [1, 2, 30]);
    const border = (await env.history(run.id)).findLast(({ type }) => type === "EventReceived")?.seq ?? 0;
    const next = await run.reset({ to: border - 1 });
    assert.deepEqual(await next.result(), [1, 2, 3]);
  });
});

test("an imported run stays paused; what it was doing begins when it goes on, and does not count as lost", async () => {
  const gate = new Gate<undefined, string>(() => "work");
  const work = activity("work", gate.body);
  const worker = workflow("worker", async function* () {
    return [yield* work(), yield* awaitEvent(Item)];
  });
  const lines: string[] = [];
  await inCase({ workflows: [worker] }, async (env) => {
    const run = await env.start(worker, undefined, { id: "w" });
    await gate.arrived();
    await run.pause();
    await run.send(Item, 1);
    for await (const line of run.export()) lines.push(line);
    await run.terminate();
    gate.open("work", "too late");
  });
  await inEachCache({ workflows: [worker] }, async (env) => {
    await env.client.import(lines);
    const run = env.handle(worker, "w");
    await run.send(Item, 2);
    await env.settle();
    assert.equal((await run.describe()).status, "Paused");
    const before = gate.calls;
    await env.advance("1h");
    assert.equal(gate.calls, before);
    await run.resume();
    await gate.arrived();
    gate.open("work", "done");
    assert.deepEqual(await run.result(), ["done", 1]);
    assert.ok(!(await typesOf(env, "w")).includes("AttemptLost"));
  });
});

// ── parked runs ──────────────────────────────────────────────────────────────────────────────────────────

const other = workflow("taker", async function* () {
  yield* sleep("1h");
  return [] as number[];
});

test("what was kept for a parked run is in its history before it goes on: a run that continues as new has it", async () => {
  const collector = taker(4, 1);
  await inCase({ workflows: [collector], end: { skipReplay: () => true } }, async (env) => {
    const run = await env.start(collector, undefined, { id: "t" });
    await env.settle();
    await env.restart({ workflows: [other] });
    for (const n of [1, 2, 3]) await env.handle(collector, "t").send(Item, n);
    assert.equal((await run.describe()).status, "Parked");
    await env.restart({ workflows: [collector] });
    await env.handle(collector, "t").send(Item, 4);
    assert.deepEqual(await env.handle(collector, "t").result(), [1, 2, 3, 4]);
  });
});

test("a paused run whose code is changed is parked when it goes on, and hears everything in order when its code is mended", async () => {
  const collector = taker(4);
  for (const meanwhile of [[other], []])
    await inCase({ workflows: [collector], end: { skipReplay: () => true } }, async (env) => {
      await env.start(collector, undefined, { id: "t" });
      const run = env.handle(collector, "t");
      await env.settle();
      await run.pause();
      await run.send(Item, 1);
      await env.restart({ workflows: meanwhile });
      await run.send(Item, 2);
      await run.resume();
      await env.settle();
      assert.equal((await run.describe()).status, "Parked");
      await run.send(Item, 3);
      await env.restart({ workflows: [collector] });
      await run.send(Item, 4);
      assert.deepEqual(await run.result(), [1, 2, 3, 4]);
    });
});

test("what is sent to a parked run in the moment of its end is refused or passed on", async () => {
  const collector = taker(2);
  for (const end of ["reset", "terminate"] as const)
    await inCase({ workflows: [collector], end: { skipReplay: () => true } }, async (env) => {
      await env.start(collector, undefined, { id: "t" });
      const run = env.handle(collector, "t");
      await env.settle();
      await env.restart({ workflows: [other] });
      if (end === "reset") await run.send(Item, 1);
      await env.engine.revival.load({ tenant: "default", run: (await run.describe()).runId });
      await env.settle();
      assert.equal((await run.describe()).status, "Parked");
      const sent = run.send(Item, 2).then(
        () => "sent",
        (error: WovyrError) => error.code,
      );
      if (end === "terminate") {
        await run.terminate();
        assert.equal(await sent, "INSTANCE_CLOSED");
        return;
      }
      await run.reset({ to: "first" });
      assert.equal(await sent, "sent");
      await env.restart({ workflows: [collector] });
      assert.deepEqual(await env.handle(collector, "t").result(), [1, 2]);
    });
});
