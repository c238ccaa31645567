import assert from "node:assert/strict";
import { test } from "node:test";
import {
  ApiError,
  activity,
  all,
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
import { delivery, type Handle } from "@wovyr/sdk/client";
import { memoryStore } from "@wovyr/server/internal";
import { createFaultyStore, FaultPlan, Gate, type StoreCall } from "@wovyr/testing";
import { inCase, inEachCache, macrotasks } from "./case.ts";

const Item = event("item", Type.String());
const Done = event("done");
const Late = event("late", Type.String());
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

test("H023 a completion that the store refuses is made again with what came meanwhile", async () => {
  const counting = workflow("counting", async function* (_: undefined, ctx) {
    let count = 0;
    ctx.on(Item, () => {
      count += 1;
    });
    yield* condition(() => count >= 1);
    return count;
  });
  const completion = ({ args }: StoreCall) => JSON.stringify(args).includes("InstanceCompleted");
  for (const refusals of [1, 3]) {
    const plan = new FaultPlan();
    await inCase({ workflows: [counting], store: createFaultyStore(memoryStore(), plan) }, async (env) => {
      const run = await env.start(counting);
      await env.settle();
      const sends: Promise<void>[] = [];
      plan.refuse("commit", { times: refusals, where: completion });
      plan.watch("commit", async (call) => {
        if (!completion(call) || sends.length > 3) return;
        sends.push(run.send(Item, "4"));
        await macrotasks();
      });
      sends.push(...["1", "2", "3"].map((item) => run.send(Item, item)));
      await env.settle();
      assert.equal(plan.log.filter(({ kind }) => kind === "refuse").length, refusals);
      await Promise.all(sends);
      plan.clear();
      assert.equal(await run.result(), 4);
    });
  }
});

const Shipped = event("shipped");
const Schemed = event("schemed", Type.Object({ to: Type.Object({ city: Type.String() }) }));
const cities: string[] = [];
const shipping = workflow("shipping", async function* (_: undefined, ctx) {
  ctx.on(Shipped, ((given: { to: { city: string } }) => {
    const {
      to: { city },
    } = given;
    cities.push(city);
  }) as never);
  ctx.on(Schemed, async function* ({ to: { city } }) {
    cities.push(yield* echo(city));
    if (city === "Nowhere") throw new RangeError("no such place");
  });
  try {
    yield* awaitEvent(Done);
    yield* condition(() => ctx.handlersFinished);
  } finally {
    cities.push("unwound");
  }
});

test("H024 a handler of events that throws fails the run, which says which event of which run, and unwinds what is open", async () => {
  await inEachCache({ workflows: [shipping] }, async (env) => {
    for (const [name, payload, message] of [
      ["shipped", { towards: "Rome" }, /city/],
      ["shipped", null, /null/],
      ["schemed", { to: { city: "Nowhere" } }, /no such place/],
    ] as const) {
      const run = await env.start(shipping);
      const other = await env.start(shipping);
      await env.settle();
      cities.length = 0;
      await run.send(event(name, Type.Unknown()), payload);
      await assert.rejects(
        run.result(),
        (error) => error instanceof WorkflowError && error.status === "Failed" && message.test(error.message),
      );
      assert.equal(cities.at(-1), "unwound");
      const told = env.logs.filter(({ level, data }) => level === "error" && (data as { run?: string }).run === run.runId);
      assert.match(told.map(({ message: line }) => line).join(), new RegExp(`the handler of event "${name}" failed`));
      const { failure } = await run.describe();
      assert.match(failure?.message ?? "", message);
      assert.ok((await env.history(run.id)).some(({ type, data }) => type === "EventConsumed" && String(data.effect).includes(name)));
      await assert.rejects(run.send(Shipped), code("INSTANCE_CLOSED"));
      await other.send(Schemed, { to: { city: "Rome" } });
      await other.send(Done);
      await other.result();
    }
  });
});

test("H024 where the event has a schema, another shape is refused to its sender, and later events are handled", async () => {
  await inEachCache({ workflows: [shipping] }, async (env) => {
    const run = await env.start(shipping);
    await env.settle();
    cities.length = 0;
    await assert.rejects(run.send(Schemed, { towards: "Rome" } as never), code("INVALID_INPUT"));
    await run.send(Schemed, { to: { city: "Oslo" } });
    await run.send(Done);
    await run.result();
    assert.ok(cities.includes("Oslo"));
  });
});

const account = workflow("account", { variables: () => ({ sum: 0 }) }, async function* (_: undefined, ctx) {
  ctx.onQuery(total, () => ctx.variables.sum);
  ctx.onQuery(peek, (n) => {
    if (n === 0) throw new RangeError("nothing to see");
    if (n === 1) return () => {};
    if (n === 2) ctx.variables.sum = 99;
    if (n === 3) return echo("x");
    if (n === 5) return undefined;
    if (n === 6) return sleep(1)[Symbol.asyncIterator]();
    if (n === 7) return Promise.reject(new Error("nobody looks"));
    return 10n;
  });
  ctx.on(Item, async function* (item) {
    yield* echo(item);
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

test("H032 queries that fail, misbehave or are unknown harm nobody, say what was wrong, and leave no trace", async () => {
  await inEachCache({ workflows: [account] }, async (env) => {
    const ask = async (run: Handle<unknown>) => {
      await assert.rejects(
        run.query(query("nothing")),
        (error) => code("HANDLER_NOT_FOUND")(error) && /It handles: total, peek/.test(String(error)),
      );
      await assert.rejects(run.query(peek, "x" as never), code("INVALID_INPUT"));
      await assert.rejects(run.query(peek, 0), (error) => code("QUERY_FAILED")(error) && /nothing to see/.test(String(error)));
      await assert.rejects(run.query(peek, 1), code("QUERY_FAILED"));
      await assert.rejects(run.query(peek, 2), (error) => code("QUERY_FAILED")(error) && /changed ctx\.variables/.test(String(error)));
      for (const n of [3, 6, 7]) await assert.rejects(run.query(peek, n), code("QUERY_FAILED"), `${n}`);
      assert.equal(await run.query(peek, 4), 10n);
      assert.equal(await run.query(peek, 5), undefined);
      assert.equal(await run.query(total), 0, "what a query changed is gone");
    };
    const run = await env.start(account);
    await ask(run);
    await env.settle();
    const before = await env.turns(run.id);
    await ask(run);
    assert.deepEqual(await env.turns(run.id), before);
    // The same while events are being handled.
    const sends = Array.from({ length: 20 }, (_, n) => run.send(Item, `${n}`));
    await Promise.all([...sends, ask(run), ask(run)]);
    await env.settle();
    const handled = (await env.history(run.id)).filter(({ type }) => type === "ActivityCompleted");
    assert.equal(handled.length, 20);
    assert.equal(await run.update(add, 1), 1);
    await assert.rejects(env.client.handle("nobody").query(total), code("INSTANCE_NOT_FOUND"));
    assert.deepEqual(env.trouble, []);
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

test("H030 an update whose process dies is accepted, validated and done once, and its caller gets the answer once", async () => {
  const gate = new Gate<string, string>();
  const blocked = activity("blocked", gate.body);
  let validations = 0;
  const slow = workflow("slow", { variables: () => ({ sum: 0 }) }, async function* (_: undefined, ctx) {
    ctx.onUpdate(add, {
      validate: () => {
        validations += 1;
      },
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
    validations = 0;
    const run = await env.start(slow);
    const answers = [3, 3].map((n) => env.insist(() => run.update(add, n, { idempotencyKey: "once" })));
    await gate.arrived();
    for (let deaths = 0; deaths < 3; deaths++) {
      await env.restart();
      // What was lost three times begins after a second.
      await env.advance("1s");
    }
    while (gate.waiting.length > 0) gate.open("gate", "go");
    assert.deepEqual(await Promise.all(answers), [3, 3]);
    const types = (await env.history(run.id)).map(({ type }) => type).filter((type) => type.startsWith("Update"));
    assert.deepEqual(types, ["UpdateRequested", "UpdateCompleted"]);
    assert.equal(validations, 1);
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
      const warned = () => env.logs.filter(({ level, data }) => level === "warn" && (data as { run?: string }).run === run.runId);
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
      const told = warned().map(({ message }) => message);
      if (patient) assert.deepEqual(told, []);
      else assert.match(told.join(), /add.*add/);
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

test("an event goes with the start of a run, or to the open one that has its id, and is there from the first turn", async () => {
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

test("an effect that a plain handler returns is run, like one that a generator yields", async () => {
  const shipped: string[] = [];
  const ship = activity("ship", async (item: string) => {
    shipped.push(item);
    return item.length;
  });
  const Ship = update("ship", { input: Type.String(), output: Type.Number() });
  const store = workflow("store", async function* (_: undefined, ctx) {
    let late = 0;
    ctx.on(Item, (item) => (item === "all" ? all([ship("x"), () => ship("y")]) : ship(item)));
    ctx.onUpdate(Ship, { handler: (item) => ship(item) });
    yield* awaitEvent(Done);
    // What was kept goes to a handler in the midst of a step.
    ctx.on(Late, (item) => {
      late += 1;
      return ship(item);
    });
    yield* condition(() => ctx.handlersFinished && late > 0);
  });
  await inEachCache({ workflows: [store] }, async (env) => {
    shipped.length = 0;
    const run = await env.start(store);
    for (const item of ["book", "all"]) await run.send(Item, item);
    assert.equal(await run.update(Ship, "pens"), 4);
    await run.send(Late, "late");
    await run.send(Done);
    await run.result();
    assert.deepEqual(shipped.sort(), ["book", "late", "pens", "x", "y"]);
    const effects = (await env.history(run.id)).flatMap(({ type, data }) => (type === "ActivityScheduled" ? [String(data.effect)] : []));
    assert.deepEqual(effects.sort(), ["on:item/0/0", "on:item/1/0.0", "on:item/1/0.1", "on:late/0/0", "u:0/0"]);
    assert.deepEqual(env.logs, []);
  });
});

test("an effect that a handler returns and that fails does what a handler that throws does", async () => {
  const broken = activity("broken", { retry: { maxAttempts: 1 } }, async (_: string) => {
    throw new RangeError("no stock");
  });
  const Ship = update("ship", { input: Type.String(), output: Type.Unknown() });
  const store = workflow("store", async function* (_: undefined, ctx) {
    ctx.on(Item, (item) => broken(item));
    ctx.onUpdate(Ship, { handler: (item) => broken(item) });
    yield* awaitEvent(Done);
  });
  await inEachCache({ workflows: [store] }, async (env) => {
    const run = await env.start(store);
    await assert.rejects(run.update(Ship, "pens"), (error) => code("UPDATE_FAILED")(error) && /no stock/.test(String(error)));
    await run.send(Item, "book");
    await assert.rejects(run.result(), /no stock/);
  });
});
