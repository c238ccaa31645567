import assert from "node:assert/strict";
import { test } from "node:test";
import {
  ApiError,
  activity,
  awaitEvent,
  condition,
  event,
  query,
  sleep,
  Type,
  update,
  WorkflowError,
  WovyrError,
  workflow,
} from "@wovyr/sdk";
import { delivery } from "@wovyr/sdk/client";
import { Gate } from "@wovyr/testing";
import { inEachCache } from "./case.ts";

const Item = event("item", Type.String());
const Done = event("done");
const total = query("total", { output: Type.Number() });
const peek = query("peek", { input: Type.Number(), output: Type.Unknown() });
const add = update("add", { input: Type.Number(), output: Type.Number() });
const echo = activity("echo", async (value: string) => value);

const code = (wanted: string) => (error: unknown) => error instanceof WovyrError && error.code === wanted;

test("events go to their handler in order, those that came before it was there included; a wait takes precedence", async () => {
  const cart = workflow("cart", { variables: () => ({ items: [] as string[] }) }, async function* (_: undefined, ctx) {
    yield* echo("late");
    ctx.on(Item, async function* (item) {
      ctx.variables.items.push(yield* echo(item));
    });
    yield* awaitEvent(Done);
    const first = yield* awaitEvent(Item);
    yield* condition(() => ctx.handlersFinished);
    return { first, items: ctx.variables.items };
  });
  await inEachCache({ workflows: [cart] }, async (env) => {
    const run = await env.start(cart);
    for (const item of ["a", "b", "c"]) await run.send(Item, item);
    await env.settle();
    await run.send(Done);
    await env.settle();
    await run.send(Item, "waited for");
    assert.deepEqual(await run.result(), { first: "waited for", items: ["a", "b", "c"] });
  });
});

test("H023 every handler of what came in together has run before a condition goes on", async () => {
  const counting = workflow("counting", async function* (_: undefined, ctx) {
    let count = 0;
    ctx.on(Item, () => {
      count += 1;
    });
    yield* condition(() => count >= 1);
    return count;
  });
  await inEachCache({ workflows: [counting] }, async (env) => {
    const run = await env.start(counting, undefined, { event: delivery(Item, "1") });
    assert.equal(await run.result(), 1);
    const other = await env.start(counting);
    await env.settle();
    await Promise.all(["1", "2", "3"].map((item) => other.send(Item, item)));
    assert.equal(await other.result(), 3);
  });
});

test("H024 a handler of events that throws fails the run, says which event, and unwinds what is open", async () => {
  const log: string[] = [];
  const failing = workflow("failing", async function* (_: undefined, ctx) {
    ctx.on(Item, (item) => {
      throw new RangeError(`no ${item}`);
    });
    try {
      yield* sleep("1 day");
    } finally {
      log.push("unwound");
    }
  });
  await inEachCache({ workflows: [failing] }, async (env) => {
    log.length = 0;
    const run = await env.start(failing);
    await run.send(Item, "thanks");
    await assert.rejects(
      run.result(),
      (error) => error instanceof WorkflowError && error.status === "Failed" && /no thanks/.test(error.message),
    );
    assert.deepEqual(log.slice(-1), ["unwound"]);
    assert.ok(env.logs.some(({ level, message }) => level === "error" && /handler of event "item" failed/.test(message)));
  });
});

const account = workflow("account", { variables: () => ({ sum: 0 }) }, async function* (_: undefined, ctx) {
  ctx.onQuery(total, () => ctx.variables.sum);
  ctx.onQuery(peek, (n) => {
    if (n === 0) throw new RangeError("nothing to see");
    if (n === 1) return () => {};
    if (n === 2) ctx.variables.sum = 99;
    if (n === 3) return echo("x");
    return 10n;
  });
  ctx.onUpdate(add, {
    validate: (n) => {
      if (n < 0) throw new RangeError("only more");
    },
    handler: async function* (n) {
      yield* echo(`adding ${n}`);
      if (n === 13) throw new RangeError("unlucky");
      ctx.variables.sum += n;
      return ctx.variables.sum;
    },
  });
  yield* awaitEvent(Done);
  yield* condition(() => ctx.handlersFinished);
  return ctx.variables.sum;
});

test("a query reads the live state, also as the first thing that reaches a run, and of a closed one", async () => {
  await inEachCache({ workflows: [account] }, async (env) => {
    const run = await env.start(account);
    assert.equal(await run.query(total), 0);
    const before = (await env.turns(run.id)).length;
    assert.equal(await run.query(total), 0);
    assert.equal((await env.turns(run.id)).length, before, "nothing is recorded");
    assert.equal(await run.update(add, 5), 5);
    assert.equal(await run.query(total), 5);
    await env.restart();
    assert.equal(await run.query(total), 5);
    await run.send(Done);
    assert.equal(await run.result(), 5);
    assert.equal(await run.query(total), 5);
  });
});

test("H032 queries that fail, misbehave or are unknown harm nobody and say what was wrong", async () => {
  await inEachCache({ workflows: [account] }, async (env) => {
    const run = await env.start(account);
    await assert.rejects(
      run.query(query("nothing")),
      (error) => code("HANDLER_NOT_FOUND")(error) && /It handles: total, peek/.test(String(error)),
    );
    await assert.rejects(run.query(peek, "x" as never), code("INVALID_INPUT"));
    await assert.rejects(run.query(peek, 0), (error) => code("QUERY_FAILED")(error) && /nothing to see/.test(String(error)));
    await assert.rejects(run.query(peek, 1), code("QUERY_FAILED"));
    await assert.rejects(run.query(peek, 2), (error) => code("QUERY_FAILED")(error) && /changed ctx\.variables/.test(String(error)));
    await assert.rejects(run.query(peek, 3), code("QUERY_FAILED"));
    assert.equal(await run.query(peek, 4), 10n);
    assert.equal(await run.query(total), 0, "what a query changed is gone");
    assert.equal(await run.update(add, 1), 1);
    await assert.rejects(env.client.handle("nobody").query(total), code("INSTANCE_NOT_FOUND"));
  });
});

test("an update is validated, handled, answered once, and again under its key", async () => {
  await inEachCache({ workflows: [account] }, async (env) => {
    const run = await env.start(account);
    assert.equal(await run.update(add, 2, { idempotencyKey: "k" }), 2);
    assert.equal(await run.update(add, 2, { idempotencyKey: "k" }), 2, "the same again is the same answer");
    await assert.rejects(run.update(add, 3, { idempotencyKey: "k" }), code("IDEMPOTENCY_CONFLICT"));
    const before = (await env.turns(run.id)).length;
    await assert.rejects(run.update(add, -1), (error) => code("UPDATE_REJECTED")(error) && /only more/.test(String(error)));
    await assert.rejects(run.update(add, "x" as never), code("INVALID_INPUT"));
    await assert.rejects(run.update(update("nothing")), code("HANDLER_NOT_FOUND"));
    assert.equal((await env.turns(run.id)).length, before, "what was refused left no trace");
    await assert.rejects(run.update(add, 13), (error) => code("UPDATE_FAILED")(error) && (error as Error).cause instanceof RangeError);
    assert.deepEqual(await Promise.all([run.update(add, 1), run.update(add, 1)]), [3, 4]);
    await run.send(Done);
    assert.equal(await run.result(), 4);
    await assert.rejects(run.update(add, 1), (error) => error instanceof ApiError && error.code === "INSTANCE_CLOSED");
    assert.equal(await run.update(add, 2, { idempotencyKey: "k" }), 2, "an answer is kept with the history");
  });
});

test("H030 an update whose process dies is done once, and its caller gets the answer by asking again", async () => {
  const gate = new Gate<string, string>();
  const blocked = activity("blocked", gate.body);
  const slow = workflow("slow", { variables: () => ({ sum: 0 }) }, async function* (_: undefined, ctx) {
    ctx.onUpdate(add, {
      handler: async function* (n) {
        yield* blocked("gate");
        ctx.variables.sum += n;
        return ctx.variables.sum;
      },
    });
    yield* awaitEvent(Done);
    return ctx.variables.sum;
  });
  await inEachCache({ workflows: [slow] }, async (env) => {
    const run = await env.start(slow);
    const answer = env.insist(() => run.update(add, 3, { idempotencyKey: "once" }));
    await gate.arrived();
    await env.restart();
    await env.settle();
    while (gate.waiting.length > 0) gate.open("gate", "go");
    assert.equal(await answer, 3);
    await run.send(Done);
    assert.equal(await run.result(), 3);
  });
});

test("H031 a run that returns while handlers are at work tells their callers, warns, and may wait for them instead", async () => {
  const hasty = workflow("hasty", async function* (patient: boolean, ctx) {
    ctx.onUpdate(add, {
      handler: async function* (n) {
        yield* sleep("1h");
        return n;
      },
    });
    yield* awaitEvent(Done);
    if (patient) yield* condition(() => ctx.handlersFinished);
    return "done";
  });
  await inEachCache({ workflows: [hasty] }, async (env) => {
    for (const patient of [false, true]) {
      env.autoSkip = false;
      const run = await env.start(hasty, patient);
      const answers = [run.update(add, 1), run.update(add, 2)].map((answer) => answer.catch((error: unknown) => error));
      await env.settle();
      await run.send(Done);
      env.autoSkip = true;
      assert.equal(await run.result(), "done");
      for (const [index, answer] of (await Promise.all(answers)).entries())
        if (patient) assert.equal(answer, index + 1);
        else assert.ok(code("UPDATE_UNFINISHED")(answer), String(answer));
    }
  });
});

test("an update that takes longer than one call is waited for with further calls", async () => {
  const slow = workflow("slow", async function* (_: undefined, ctx) {
    ctx.onUpdate(add, {
      handler: async function* (n) {
        yield* sleep("10m");
        return n;
      },
    });
    yield* awaitEvent(Done);
  });
  await inEachCache({ workflows: [slow] }, async (env) => {
    const run = await env.start(slow);
    assert.equal(await run.update(add, 7), 7);
    await run.send(Done);
    await run.result();
  });
});

test("H027 an event goes with the start of a run, or to the open one that has its id, and is there from the first turn", async () => {
  const greeting = workflow("greeting", async function* () {
    return [yield* awaitEvent(Item), yield* awaitEvent(Item)];
  });
  await inEachCache({ workflows: [greeting] }, async (env) => {
    const start = (item: string, idempotencyKey?: string) =>
      env.start(greeting, undefined, { id: "g", event: delivery(Item, item, idempotencyKey === undefined ? {} : { idempotencyKey }) });
    const first = await start("one");
    const second = await start("two");
    assert.equal(second.runId, first.runId);
    assert.deepEqual(await first.result(), ["one", "two"]);
    const third = await start("three");
    assert.notEqual(third.runId, first.runId, "a closed run is not asked");
    await third.send(Item, "four");
    assert.deepEqual(await third.result(), ["three", "four"]);
  });
});

test("a sleep can be woken from outside; timeouts and retries are not", async () => {
  const napping = workflow("napping", async function* (_: undefined, ctx) {
    const began = ctx.now().getTime();
    yield* sleep("30 days");
    const slept = ctx.now().getTime() - began;
    try {
      yield* awaitEvent(Done, { timeout: "1h" });
    } catch {
      return { slept, waited: ctx.now().getTime() - began - slept };
    }
    return { slept, waited: -1 };
  });
  await inEachCache({ workflows: [napping] }, async (env) => {
    const run = await env.start(napping);
    await env.advance("2 days");
    await run.wake();
    await env.settle();
    await run.wake();
    assert.deepEqual(await run.result(), { slept: 2 * 86_400_000, waited: 3_600_000 });
    await assert.rejects(run.wake(), code("INSTANCE_CLOSED"));
  });
});

test("handlers that cannot be are refused at once", async () => {
  const wrong = workflow("wrong", async function* (which: number, ctx) {
    if (which === 0) ctx.on(Item, (async () => {}) as never);
    if (which === 1) ctx.onQuery(total, (async () => 1) as never);
    if (which === 2) ctx.onUpdate(add, (() => 1) as never);
    if (which === 3) {
      ctx.on(Done, () => {});
      ctx.on(Done, () => {});
    }
    yield* sleep(1);
  });
  await inEachCache({ workflows: [wrong] }, async (env) => {
    for (const which of [0, 1, 2, 3])
      await assert.rejects(env.execute(wrong, which), (error) => ((error as Error).cause as WovyrError).code === "INVALID_DEFINITION");
  });
});
