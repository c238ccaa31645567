/** What users did wrong with handlers, queries, updates and chains of runs, and what it must not lead to. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { activity, awaitEvent, child, condition, event, query, sleep, Type, update, WovyrError, workflow } from "@wovyr/sdk";
import { delivery } from "@wovyr/sdk/client";
import { inCase, inEachCache } from "./case.ts";

const Item = event("item", Type.String());
const Done = event("done");
const Look = query("look", { input: Type.String() });
const Add = update("add", { input: Type.Number(), output: Type.Number() });
const messageOf = (error: unknown) => (error as Error).message;
const code = (wanted: string) => (error: unknown) => error instanceof WovyrError && error.code === wanted;

test("a run whose code is not here ends by termination and immediate cancellation, also before it has begun", async () => {
  const missing = workflow("missing", async function* () {
    yield* sleep("1 day");
  });
  const parent = workflow("parent", async function* (id: string) {
    yield* child(missing, undefined, { id });
  });
  await inCase({ workflows: [parent], end: { skipReplay: () => true } }, async (env) => {
    const run = await env.start(parent, "kid");
    await env.settle();
    assert.equal((await env.client.handle("kid").describe()).status, "Created");
    await run.cancel();
    await env.settle();
    assert.equal((await env.client.handle("kid").describe()).status, "Terminated");
    await env.start(parent, "other");
    await env.settle();
    await env.client.handle("other").cancel({ mode: "immediate" });
    assert.equal((await env.client.handle("other").describe()).status, "Cancelled");
    await env.restart();
  });
});

test("a run whose version is not registered says so to queries and updates, with its name, and answers when it is there again", async () => {
  const versioned = (version: string) =>
    workflow("versioned", { version }, async function* (_: undefined, ctx) {
      ctx.onQuery(Look, (what) => `${version}: ${what}`);
      ctx.onUpdate(Add, { handler: (n) => n + 1 });
      yield* awaitEvent(Done);
    });
  const [first, second] = [versioned("1"), versioned("2")];
  await inEachCache({ workflows: [first] }, async (env) => {
    const [open, closed] = [await env.start(first, undefined, { id: "o" }), await env.start(first, undefined, { id: "c" })];
    await closed.send(Done);
    await closed.result();
    await env.restart({ workflows: [second] });
    const missing = (error: unknown) =>
      code("VERSION_NOT_REGISTERED")(error) && /^Version "1" of workflow "versioned" is not registered here/.test((error as Error).message);
    await assert.rejects(open.update(Add, 1), missing);
    for (const run of [open, closed]) await assert.rejects(run.query(Look, "x"), missing);
    const { status, unregistered } = await open.describe();
    assert.deepEqual([status, unregistered], ["Waiting", true]);
    await env.restart({ workflows: [second, first] });
    assert.equal(await open.update(Add, 1), 2);
    assert.equal(await closed.query(Look, "x"), "1: x");
    await open.send(Done);
    await open.result();
  });
});

test("a handler, a query or a validator that returns a promise is told what is wrong; its rejection harms nobody", async () => {
  const promising = workflow("promising", async function* (which: string, ctx) {
    const promise = () => Promise.reject(new Error("adrift")) as never;
    if (which === "event") ctx.on(Item, promise);
    ctx.onQuery(Look, promise);
    ctx.onUpdate(Add, {
      ...(which === "validator" && { validate: promise }),
      ...(which === "false" && { validate: (() => false) as never }),
      handler: promise,
    });
    yield* awaitEvent(Done);
  });
  await inEachCache({ workflows: [promising] }, async (env) => {
    for (const which of ["query", "validator", "false", "update", "event"]) {
      const run = await env.start(promising, which);
      await assert.rejects(run.query(Look, "x"), code("QUERY_FAILED"));
      await assert.rejects(
        run.update(Add, 1),
        which === "validator" || which === "false" ? code("UPDATE_REJECTED") : code("UPDATE_FAILED"),
      );
      if (which === "event") {
        await run.send(Item, "x");
        await assert.rejects(run.result(), /returned a promise/);
      } else {
        await run.send(Done);
        await run.result();
      }
    }
    assert.deepEqual(env.trouble, []);
  });
});

test("queries and validators cannot draw, register or change: the run goes on as if they had not been asked", async () => {
  const watched = workflow("watched", { variables: () => ({ n: 0 }) }, async function* (_: undefined, ctx) {
    ctx.onQuery(Look, (what) => {
      if (what === "random") return ctx.random();
      if (what === "uuid") return ctx.uuid();
      if (what === "on") ctx.on(Done, () => {});
      if (what === "attributes") ctx.attributes.seen = true;
      if (what === "variables") ctx.variables.n += 1;
      return "looked";
    });
    ctx.onUpdate(Add, { validate: () => void ctx.random(), handler: () => 1 });
    yield* awaitEvent(Done);
    return [ctx.random(), ctx.variables.n, ctx.attributes.seen];
  });
  await inEachCache({ workflows: [watched] }, async (env) => {
    const run = await env.start(watched, undefined, { id: "w" });
    for (const what of ["random", "uuid", "on", "attributes", "variables"])
      await assert.rejects(run.query(Look, what), code("QUERY_FAILED"));
    assert.equal(await run.query(Look, "nothing"), "looked");
    await assert.rejects(run.update(Add, 1), code("UPDATE_REJECTED"));
    await run.send(Done);
    const [, n, seen] = await run.result();
    assert.deepEqual([n, seen], [0, undefined]);
  });
});

test("a validator that changes the run is refused to its caller alone: the run goes on for all others, with nothing of the change", async () => {
  const greedy = workflow("greedy", { variables: () => ({ n: 0 }) }, async function* (_: undefined, ctx) {
    let seen = 0;
    ctx.on(Item, () => {
      seen += 1;
    });
    ctx.onUpdate(Add, {
      validate: (n) => {
        if (n === 100) ctx.variables.n += n;
        if (n === 101) ctx.attributes.seen = true;
        if (n === 102) {
          ctx.variables.n += n;
          throw new Error("refused as well");
        }
      },
      handler: (n) => (ctx.variables.n += n),
    });
    yield* awaitEvent(Done);
    return [ctx.variables.n, ctx.attributes.seen, seen];
  });
  const refused = (error: unknown) =>
    code("UPDATE_REJECTED")(error) &&
    /^Update "add" was refused: its validator changed ctx\.variables or ctx\.attributes/.test(messageOf(error));
  await inEachCache({ workflows: [greedy] }, async (env) => {
    const run = await env.start(greedy);
    for (const n of [100, 101, 102]) {
      await assert.rejects(run.update(Add, n), refused);
      assert.equal((await run.describe()).status, "Waiting");
    }
    // What came in together with it is taken.
    const [wrong, right, sent] = await Promise.allSettled([run.update(Add, 100), run.update(Add, 1), run.send(Item, "x")]);
    assert.ok(wrong.status === "rejected" && refused(wrong.reason));
    assert.deepEqual([right, sent.status], [{ status: "fulfilled", value: 1 }, "fulfilled"]);
    await run.send(Done);
    assert.deepEqual(await run.result(), [1, undefined, 1]);
  });
});

test("a query that changes the run is refused, whether the run is open or has ended, and also when it throws", async () => {
  const Total = query("total");
  const open = workflow("open", { variables: () => ({ n: 0 }) }, async function* (_: undefined, ctx) {
    ctx.onQuery(Look, (what) => {
      ctx.variables.n += 1;
      if (what === "throws") throw new Error("after the change");
      return what;
    });
    ctx.onQuery(Total, () => ctx.variables.n as never);
    yield* awaitEvent(Done);
    return ctx.variables.n;
  });
  await inEachCache({ workflows: [open] }, async (env) => {
    const run = await env.start(open);
    const refusedNow = async () => {
      for (const what of ["returns", "throws"])
        await assert.rejects(
          run.query(Look, what),
          (error) => code("QUERY_FAILED")(error) && /^Query "look" changed ctx\.variables or ctx\.attributes/.test(messageOf(error)),
        );
      assert.equal(await run.query(Total), 0);
    };
    await refusedNow();
    await run.send(Done);
    assert.equal(await run.result(), 0);
    await refusedNow();
  });
});

test("a validator that answers with an effect or a generator refuses, and says why", async () => {
  const wrong = workflow("wrong", async function* (kind: string, ctx) {
    ctx.onUpdate(Add, {
      validate: (() =>
        kind === "effect"
          ? sleep("1h")
          : (async function* () {
              yield* sleep("1h");
            })()) as never,
      handler: (n) => n,
    });
    yield* awaitEvent(Done);
  });
  await inEachCache({ workflows: [wrong] }, async (env) => {
    for (const kind of ["effect", "generator"]) {
      const run = await env.start(wrong, kind);
      await assert.rejects(
        run.update(Add, 1),
        (error) => code("UPDATE_REJECTED")(error) && new RegExp(`its validator answered with an? ${kind}`).test(messageOf(error)),
      );
      await run.send(Done);
      await run.result();
    }
  });
});

test("an update to a parked run, and one whose handler parks it, is refused instead of waiting for ever", async () => {
  const stuck = workflow("stuck", async function* (_: undefined, ctx) {
    ctx.onUpdate(Add, {
      handler: async function* () {
        await new Promise((resolve) => setImmediate(resolve));
        yield* sleep(1);
        return 1;
      },
    });
    yield* awaitEvent(Done);
  });
  await inCase({ workflows: [stuck], determinismGuard: "off", end: { skipReplay: () => true } }, async (env) => {
    const run = await env.start(stuck);
    await assert.rejects(run.update(Add, 1), code("INSTANCE_PARKED"));
    await assert.rejects(run.update(Add, 1), code("INSTANCE_PARKED"));
    await run.terminate();
  });
});

test("an update and an event are known to the runs that follow, and are not taken again", async () => {
  const paying = workflow("paying", { input: Type.Number() }, async function* (paid, ctx) {
    let now = paid;
    ctx.onUpdate(Add, { handler: (n) => (now += n) });
    ctx.on(Item, () => {
      now += 1_000;
    });
    yield* condition(() => now !== paid);
    if (now >= 3_000) return now;
    return yield* ctx.continueAsNew(now);
  });
  await inEachCache({ workflows: [paying] }, async (env) => {
    const run = await env.start(paying, 0);
    const { runId } = run;
    assert.equal(await run.update(Add, 100, { idempotencyKey: "p1" }), 100);
    await env.settle();
    assert.equal(await run.update(Add, 100, { idempotencyKey: "p1" }), 100, "paid once");
    assert.equal((await env.client.handle(run.id).describe()).continuedFrom, runId);
    await run.send(Item, "x", { idempotencyKey: "e1" });
    await env.settle();
    await run.send(Item, "x", { idempotencyKey: "e1" });
    await run.send(Item, "x", { idempotencyKey: "e2" });
    await env.settle();
    assert.equal(await run.update(Add, 100, { idempotencyKey: "p1" }), 100);
    await assert.rejects(run.update(Add, 7, { idempotencyKey: "p1" }), code("IDEMPOTENCY_CONFLICT"));
    await run.send(Item, "x", { idempotencyKey: "e3" });
    assert.equal(await run.result(), 3_100);
  });
});

test("the event of a start is delivered once under the start's key, and checked before anything is started", async () => {
  const reading = workflow("reading", { events: [Item] }, async function* () {
    const first = yield* awaitEvent(Item);
    return [first, yield* awaitEvent(Item), yield* awaitEvent(Item)];
  });
  await inEachCache({ workflows: [reading] }, async (env) => {
    const start = (item: string, idempotencyKey?: string) =>
      env.start(reading, undefined, { id: "r", event: delivery(Item, item), ...(idempotencyKey !== undefined && { idempotencyKey }) });
    await assert.rejects(env.start(reading, undefined, { id: "r", event: { name: "item", payload: 5 } }), code("INVALID_INPUT"));
    await assert.rejects(env.client.handle("r").describe(), code("INSTANCE_NOT_FOUND"));
    const run = await start("one");
    await start("two", "k");
    await start("two", "k");
    await assert.rejects(start("other", "k"), code("IDEMPOTENCY_CONFLICT"));
    await start("three");
    assert.deepEqual(await run.result(), ["one", "two", "three"]);
  });
});

test("a payload that does not fit the handler of its event is refused at the door", async () => {
  const handling = workflow("handling", async function* (_: undefined, ctx) {
    ctx.on(Item, () => {});
    yield* awaitEvent(Done);
  });
  await inEachCache({ workflows: [handling] }, async (env) => {
    const run = await env.start(handling);
    await env.settle();
    await assert.rejects(run.send(Item, 5 as never), code("INVALID_INPUT"));
    await run.send(Done);
    await run.result();
  });
});

test("definitions that are none, and versions that cannot be, are refused where they are passed", async () => {
  const echo = activity("echo", async (n: number) => n);
  const wrong = workflow("wrong", { input: Type.Number() }, async function* (which, ctx) {
    if (which === 0) ctx.on("item" as never, () => {});
    if (which === 1) ctx.onQuery({} as never, () => 1);
    if (which === 2) ctx.onUpdate(echo as never, { handler: () => 1 });
    if (which === 3) yield* ctx.continueAsNew(1, { version: "a b" });
    if (which === 4) yield* ctx.continueAsNew(1, { version: 2 as never });
  });
  await inEachCache({ workflows: [wrong] }, async (env) => {
    for (const which of [0, 1, 3, 4])
      await assert.rejects(env.execute(wrong, which), (error) => /^INVALID_/.test(((error as Error).cause as WovyrError).code));
  });
});

test("another version takes an input of its own shape", async () => {
  const first = workflow("shaped", { version: "1", input: Type.Number() }, async function* (n, ctx) {
    return yield* ctx.continueAsNew(`was ${n}` as never, { version: "2" });
  });
  const second = workflow("shaped", { version: "2", input: Type.String() }, async function* (text) {
    return text;
  });
  await inEachCache({ workflows: [second, first] }, async (env) => {
    assert.equal(await env.execute(first, 5), "was 5");
  });
});
