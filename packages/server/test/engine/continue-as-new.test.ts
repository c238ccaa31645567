import assert from "node:assert/strict";
import { test } from "node:test";
import {
  activity,
  all,
  awaitEvent,
  child,
  compensateNow,
  event,
  saga,
  sleep,
  spawn,
  Type,
  update,
  WorkflowError,
  workflow,
} from "@wovyr/sdk";
import { memoryStore, type StoreProvider } from "@wovyr/server";
import { inCase, inEachCache } from "./case.ts";

const Item = event("item", Type.Number());
const add = update("add", { input: Type.Number(), output: Type.Number() });
const echo = activity("echo", async (value: string) => value);

const counting = workflow("counting", { input: Type.Number() }, async function* (n, ctx) {
  if (n === 0) return ctx.runId;
  yield* echo(`${n}`);
  return yield* ctx.continueAsNew(n - 1);
});

test("a chain of runs has one id and one result, which is waited for across all of them", async () => {
  await inEachCache({ workflows: [counting] }, async (env) => {
    const run = await env.start(counting, 3, { id: "c", memo: { by: "me" }, attributes: { colour: "red" } });
    const last = await run.result();
    assert.notEqual(last, run.runId);
    const about = await env.client.handle("c").describe();
    assert.deepEqual([about.runId, about.status, about.memo, about.attributes], [last, "Completed", { by: "me" }, { colour: "red" }]);
    assert.equal((await env.state("c", run.runId)).status, "ContinuedAsNew");
    assert.equal(await env.execute(counting, 2, { id: "c" }).then((value) => typeof value), "string");
    assert.equal(await run.result(), last, "a handle stays with the chain that it started");
  });
});

test("events are taken once and in order across generations, whenever they come", async () => {
  const reading = workflow("reading", { input: Type.Array(Type.Number()) }, async function* (seen, ctx) {
    const now = [...seen];
    for (let taken = 0; taken < 3; taken++) now.push(yield* awaitEvent(Item));
    if (now.length >= 30) return now;
    return yield* ctx.continueAsNew(now);
  });
  await inEachCache({ workflows: [reading] }, async (env) => {
    const run = await env.start(reading, [], { id: "r" });
    const sends: Promise<void>[] = [];
    for (let n = 0; n < 30; n++) {
      sends.push(run.send(Item, n, { idempotencyKey: `k${n}` }));
      if (n % 7 === 0) await env.settle();
    }
    await Promise.all(sends);
    assert.deepEqual(
      await run.result(),
      Array.from({ length: 30 }, (_, n) => n),
    );
  });
});

test("H021 events that come in bursts, also while a run goes on as the next, are handled once and in order", async () => {
  const handled: number[] = [];
  const handle = activity("handle", async (n: number) => void handled.push(n));
  const eternal = workflow("eternal", { input: Type.Number() }, async function* (left, ctx) {
    yield* handle(yield* awaitEvent(Item));
    return left === 1 ? "all" : yield* ctx.continueAsNew(left - 1);
  });
  const memory = memoryStore();
  // While a generation gives way to the next, its commit is held until more events were sent.
  let held = 0;
  const store: StoreProvider = {
    ...memory,
    open: async (options) => {
      const inner = await memory.open(options);
      const commit = inner.commit.bind(inner);
      inner.commit = async (flush) => {
        if (flush.turns.some(({ status }) => status === "ContinuedAsNew") && sent < 200) {
          held += 1;
          burst(3);
        }
        return commit(flush);
      };
      return inner;
    },
  };
  let sent = 0;
  const sends: Promise<void>[] = [];
  let burst = (_: number) => {};
  await inCase({ workflows: [eternal], store }, async (env) => {
    const run = await env.start(eternal, 200, { id: "e" });
    burst = (count) => {
      for (let n = 0; n < count && sent < 200; n++) sends.push(run.send(Item, sent++));
    };
    burst(20);
    while (sent < 200) {
      burst(1);
      await env.settle();
    }
    await Promise.all(sends);
    assert.equal(await run.result(), "all");
  });
  assert.ok(held > 10, "events were sent between the generations");
  assert.deepEqual(
    handled,
    Array.from({ length: 200 }, (_, n) => n),
  );
});

test("H022 a constant stream of events does not keep a run from going on as the next", async () => {
  const State = Type.Object({ generation: Type.Number(), next: Type.Number(), longest: Type.Number() });
  const reading = workflow("reading", { input: State }, async function* ({ generation, next, longest }, ctx) {
    for (let taken = 0; taken < 100; taken++) {
      const n = yield* awaitEvent(Item);
      if (n !== next + taken) throw new Error(`${n} came where ${next + taken} was due`);
      if (n === 2_999) return { generation, longest };
    }
    return yield* ctx.continueAsNew({ generation: generation + 1, next: next + 100, longest: Math.max(longest, ctx.historyLength) });
  });
  await inCase({ workflows: [reading] }, async (env) => {
    const run = await env.start(reading, { generation: 1, next: 0, longest: 0 });
    const sends: Promise<void>[] = [];
    for (let n = 0; n < 3_000; n++) {
      sends.push(run.send(Item, n));
      if (n % 150 === 149) await env.settle();
    }
    await Promise.all(sends);
    const { generation, longest } = await run.result();
    assert.equal(generation, 30);
    assert.ok(longest <= 3 * 100 + 300, `what one generation leaves unread does not pile up in the next: ${longest} events`);
  });
});

test("what is open ends with the run, finally blocks run, and handlers of updates are told", async () => {
  const log: string[] = [];
  const busy = workflow("busy", { input: Type.Number() }, async function* (n, ctx) {
    ctx.onUpdate(add, {
      handler: async function* (value) {
        yield* sleep("10 days");
        return value;
      },
    });
    try {
      if (n === 0) return "done";
      yield* sleep("1h");
      return yield* ctx.continueAsNew(n - 1);
    } finally {
      log.push(yield* echo(`left ${n}`));
    }
  });
  await inEachCache({ workflows: [busy] }, async (env) => {
    log.length = 0;
    env.autoSkip = false;
    const run = await env.start(busy, 1);
    const answer = run.update(add, 1).catch((error: { code: string }) => error.code);
    await env.settle();
    env.autoSkip = true;
    assert.equal(await run.result(), "done");
    assert.equal(await answer, "UPDATE_UNFINISHED");
    assert.deepEqual([...new Set(log)], ["left 1", "left 0"]);
  });
});

test("the end of a child of a run that has gone on as a new one comes to nothing", async () => {
  const never = event("never");
  const endless = workflow("endless", async function* () {
    yield* awaitEvent(never);
  });
  const restless = workflow("restless", async function* (left: number, ctx) {
    yield* spawn(child(endless));
    yield* sleep("1h");
    return left === 0 ? "done" : yield* ctx.continueAsNew(left - 1);
  });
  await inEachCache({ workflows: [restless, endless] }, async (env) => {
    assert.equal(await (await env.start(restless, 2)).result(), "done");
  });
});

test("a parent awaits a child through all its runs, and ends the one that is there", async () => {
  const parent = workflow("parent", async function* () {
    return yield* child(counting, 3, { id: "kid" });
  });
  const patient = workflow("patient", { input: Type.Number() }, async function* (n, ctx) {
    if (n === 0) yield* sleep("1 day");
    return yield* ctx.continueAsNew(n === 0 ? 0 : n - 1);
  });
  const leaving = workflow("leaving", async function* () {
    yield* all([child(patient, 2, { id: "endless", onParentClose: "terminate" }), sleep("1h")]);
  });
  await inEachCache({ workflows: [counting, parent, patient, leaving] }, async (env) => {
    assert.equal(typeof (await env.execute(parent)), "string");
    const run = await env.start(leaving);
    await env.advance("2h");
    await run.terminate();
    await env.settle();
    assert.equal((await env.client.handle("endless").describe()).status, "Terminated");
  });
});

test("in a branch it is refused, and an input that does not fit is thrown where it is yielded", async () => {
  const branching = workflow("branching", { input: Type.Number() }, async function* (_n, ctx) {
    yield* all([
      async function* () {
        yield* ctx.continueAsNew(1);
      },
    ]);
  });
  const bare = workflow("bare", { input: Type.Number() }, async function* (_n, ctx) {
    yield* all([ctx.continueAsNew(1)]);
  });
  const wrong = workflow("wrong", { input: Type.Number() }, async function* (_n, ctx) {
    try {
      yield* ctx.continueAsNew("one" as never);
    } catch (error) {
      return (error as Error).message;
    }
  });
  await inEachCache({ workflows: [branching, bare, wrong] }, async (env) => {
    for (const definition of [branching, bare]) await assert.rejects(env.execute(definition, 1), /workflow's own function/);
    assert.match(String(await env.execute(wrong, 1)), /input of workflow "wrong"/);
  });
});

test("a cancellation wins over going on, and reaches the run that is there", async () => {
  const endless = workflow("endless", { input: Type.Number() }, async function* (n, ctx) {
    yield* sleep("1h");
    return yield* ctx.continueAsNew(n + 1);
  });
  await inEachCache({ workflows: [endless] }, async (env) => {
    const run = await env.start(endless, 0);
    await env.advance("10h");
    await run.cancel();
    await assert.rejects(run.result(), (error) => error instanceof WorkflowError && error.status === "Cancelled");
  });
});

test("a long history suggests it, in events and in size, at the same place on every replay", async () => {
  const suggested = workflow("suggested", { input: Type.Boolean() }, async function* (big, ctx) {
    let rounds = 0;
    while (!ctx.shouldContinueAsNew) {
      rounds += 1;
      yield* echo("x".repeat(big ? 500_000 : 1));
    }
    return { rounds, events: ctx.historyLength };
  });
  await inEachCache({ workflows: [suggested], limits: { history: 100 } }, async (env) => {
    const byCount = await env.execute(suggested, false);
    assert.ok(byCount.events >= 50 && byCount.events < 60, JSON.stringify(byCount));
    const bySize = await env.execute(suggested, true);
    assert.ok(bySize.rounds >= 4 && bySize.rounds <= 6, JSON.stringify(bySize));
  });
});

test("a run that goes on as a version that is not registered waits for it, and the log calls it no child", async () => {
  const moving = workflow("moving", async function* (_: undefined, ctx) {
    return yield* ctx.continueAsNew(undefined as never, { version: "9" });
  });
  await inCase({ workflows: [moving], end: { skipReplay: () => true } }, async (env) => {
    await env.start(moving, undefined, { id: "m" });
    await env.settle();
    const told = env.logs.map(({ message }) => message).filter((message) => message.includes("not registered"));
    assert.deepEqual(told, ['workflow "moving" version "9" is not registered here; it waits until it is']);
    await env.client.handle("m").terminate();
  });
});

test("what is registered to be undone when a run continues as new is warned of, once; what is undone before, or by no policy, is not", async () => {
  const undo = activity("undo", async (_: string) => {});
  const book = activity("book", async (what: string) => what);
  const cases: [string, { compensation?: { on: "manual" | "never" } }, boolean, string | undefined][] = [
    ["plain", {}, false, '"book", "book"'],
    ["by-hand", { compensation: { on: "manual" } }, false, '"book", "book"'],
    ["undone", {}, true, undefined],
    ["never", { compensation: { on: "never" } }, false, undefined],
  ];
  for (const [name, options, undoes, named] of cases) {
    const trips = workflow(name, { ...options, input: Type.Number() }, async function* (left, ctx) {
      yield* book("a").compensate((booked) => undo(booked));
      yield* saga(async function* () {
        yield* book("b").compensate((booked) => undo(booked));
      });
      if (undoes) yield* compensateNow();
      return left === 0 ? "end" : yield* ctx.continueAsNew(left - 1);
    });
    await inEachCache({ workflows: [trips] }, async (env) => {
      const run = await env.start(trips, 1);
      assert.equal(await run.result(), "end");
      await env.restart();
      const warnings = env.logs.filter(({ level, message }) => level === "warn" && /continues as new/.test(message));
      assert.deepEqual(
        warnings
          .map(({ data }) => data as { run?: string; compensations?: number })
          .map(({ run: of, compensations }) => [of, compensations]),
        named === undefined ? [] : [[run.runId, 2]],
        name,
      );
      if (named !== undefined) assert.ok(warnings[0]?.message.includes(`nobody undoes ${named} any more`), warnings[0]?.message);
    });
  }
});
