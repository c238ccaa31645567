import assert from "node:assert/strict";
import { randomBytes, randomUUID } from "node:crypto";
import { performance as clock } from "node:perf_hooks";
import { test } from "node:test";
import { setTimeout as delay } from "node:timers/promises";
import { promisify } from "node:util";
import {
  activity,
  all,
  awaitEvent,
  condition,
  event,
  map,
  query,
  race,
  sideEffect,
  sleep,
  spawn,
  step,
  Type,
  update,
  type WorkflowError,
  workflow,
} from "@wovyr/sdk";
import { delivery } from "@wovyr/sdk/client";
import { createOrchestrator, memoryStore } from "@wovyr/server";
import { createTestEnvironment } from "@wovyr/testing";
import { z } from "zod";
import { inEachCache } from "./case.ts";

const nothing = () => {};
const line = String.raw`/.*/determinism-guard\.test\.ts:\d+:\d+`;

/** What workflow code may not call, and what it is told to use. */
const calls: Record<string, [call: () => unknown, instead: string]> = {
  "Date.now()": [() => Date.now(), "Use `ctx.now()`."],
  "new Date()": [() => new Date(), "Use `ctx.now()`."],
  "Date()": [() => Date(), "Use `ctx.now()`."],
  "performance.now()": [() => clock.now(), "Use `ctx.now()`."],
  "process.hrtime()": [() => process.hrtime(), "Use `ctx.now()`."],
  "process.hrtime.bigint()": [() => process.hrtime.bigint(), "Use `ctx.now()`."],
  "Math.random()": [() => [1].map(Math.random), "Use `ctx.random()`."],
  "crypto.randomUUID()": [() => crypto.randomUUID(), "Use `ctx.uuid()`."],
  "crypto.randomUUID() of node:crypto": [() => randomUUID(), "Use `ctx.uuid()`."],
  "crypto.getRandomValues()": [
    () => crypto.getRandomValues(new Uint8Array(4)),
    "Draw them in `yield* sideEffect(() => …)`, which records them.",
  ],
  "crypto.randomBytes()": [() => randomBytes(4), "Draw them in `yield* sideEffect(() => …)`, which records them."],
  "setTimeout()": [() => setTimeout(nothing, 1), "Use `yield* sleep(…)`."],
  "setInterval()": [() => clearInterval(setInterval(nothing, 1)), "Use `yield* sleep(…)`."],
  "setImmediate()": [() => setImmediate(nothing), "Use `yield* sleep(…)`."],
  "fetch()": [() => fetch("http://127.0.0.1:1").catch(nothing), "Put it into an activity or a step: `yield* step(name, async () => …)`."],
  "queueMicrotask()": [
    () => queueMicrotask(nothing),
    "Yield effects instead; what has to run apart belongs in `yield* spawn(…)` or in an activity.",
  ],
  "process.nextTick()": [
    () => process.nextTick(nothing),
    "Yield effects instead; what has to run apart belongs in `yield* spawn(…)` or in an activity.",
  ],
};

const calling = Object.entries(calls).map(([name, [call]]) =>
  workflow(name.replaceAll(/[^a-z]+/gi, "-"), async function* () {
    yield* sleep(1);
    await null;
    call();
    return name;
  }),
);

const messageOf = (name: string, instead: string) =>
  new RegExp(
    `${name.replace(/ of .*/, "").replaceAll(/[().]/g, "\\$&")} was called in workflow "[-\\w]+" at ${line}: a replay would not get the same\\. ${instead.replaceAll(/[()*.]/g, "\\$&")}$`,
  );

test("with `error` the call throws, with its line and what to use instead", async () => {
  // The check at the end replays without a guard.
  await inEachCache({ workflows: calling, end: { skipReplay: () => true } }, async (env) => {
    for (const [index, [name, [, instead]]] of Object.entries(calls).entries())
      await assert.rejects(env.execute(calling[index] as (typeof calling)[number]), (error: WorkflowError) => {
        assert.equal((error.cause as { code?: string }).code, "NONDETERMINISTIC_CALL", name);
        assert.match(error.message, messageOf(name, instead), name);
        return true;
      });
  });
});

test("with `warn` the call does what it does, and each line is told once", async () => {
  await using env = await createTestEnvironment({ workflows: calling, determinismGuard: "warn", evictAlways: true });
  for (const each of calling) for (let n = 0; n < 3; n++) await env.execute(each);
  const warnings = env.logs.filter(({ level }) => level === "warn");
  assert.deepEqual(
    warnings.map(({ message }) => message.replace(/ was called.*/, "")),
    Object.keys(calls).map((name) => name.replace(/ of .*/, "")),
  );
  for (const [index, [name, [, instead]]] of Object.entries(calls).entries()) {
    assert.match(warnings[index]?.message ?? "", messageOf(name, instead), name);
    const data = warnings[index]?.data as { workflow: string; code: string; at: string };
    assert.equal(data.code, "NONDETERMINISTIC_CALL");
    assert.match(data.at, new RegExp(`^${line}$`));
  }
});

test("with `off` nothing is said and nothing is changed", async () => {
  const { now } = Date;
  await using env = await createTestEnvironment({ workflows: calling, determinismGuard: "off" });
  assert.equal(Date.now, now);
  for (const each of calling) await env.execute(each);
  assert.deepEqual(env.logs, []);
});

test("an unknown mode is refused", async () => {
  await assert.rejects(createTestEnvironment({ workflows: [], determinismGuard: "strict" as never }), { code: "INVALID_OPTION" });
});

const poll = activity("poll", async (n: number) => {
  for (let turn = 0; turn < 20; turn++) {
    await null;
    if (Date.now() < 0 || Math.random() > 1 || randomUUID().length === 0 || String(new Date()) === "") return -1;
    queueMicrotask(nothing);
    process.nextTick(nothing);
  }
  return n;
});
const tick = event("tick", Type.Number());

test("activities that run between the steps of workflows are never accused, nor is what runs outside of them", async () => {
  const busy = workflow("busy", { variables: () => ({ seen: 0 }) }, async function* (n: number, ctx) {
    const background = yield* spawn(poll(1));
    for (let round = 0; round < 5; round++) {
      await Promise.resolve();
      ctx.variables.seen += yield* poll(round);
      ctx.log.info("round", { at: ctx.now(), random: ctx.random(), id: ctx.uuid() });
    }
    yield* all([poll(1), step("own", async () => Date.now()), sideEffect(() => Math.random()), sideEffect(() => new Date())]);
    yield* map([1, 2, 3], (item) => poll(item), { concurrency: 2 });
    yield* race([awaitEvent(tick, { match: (payload) => payload > 0 }), sleep("1h")]);
    console.error.length;
    return n + (yield* background) + new Date(5).getTime() + Date.parse("2026-01-01") * 0;
  });
  await inEachCache({ workflows: [busy] }, async (env) => {
    const runs = await Promise.all(Array.from({ length: 40 }, (_, n) => env.start(busy, n)));
    assert.ok(Date.now() > 0 && String(new Date()) !== "" && Math.random() < 1);
    await delay(1);
    assert.deepEqual(
      await Promise.all(runs.map((run) => run.result())),
      runs.map((_, n) => n + 6),
    );
    assert.deepEqual(
      env.logs.filter(({ level }) => level !== "info"),
      [],
    );
  });
});

test("branches, the functions that make them and helpers are workflow code", async () => {
  const inBranch = workflow("in-branch", async function* () {
    yield* all([
      async function* () {
        yield* sleep(1);
        return Math.random();
      },
    ]);
  });
  const inThunk = workflow("in-thunk", async function* () {
    yield* all([() => sleep(Math.random())]);
  });
  const inMap = workflow("in-map", async function* () {
    yield* map([1], () => sleep(Math.random()));
  });
  const inHelper = workflow("in-helper", async function* () {
    const help = async () => {
      await null;
      return Math.random();
    };
    yield* sleep(1);
    await help();
  });
  const workflows = [inBranch, inThunk, inMap, inHelper];
  await using env = await createTestEnvironment({ workflows });
  for (const each of workflows) await assert.rejects(env.execute(each), /Math\.random\(\) was called in workflow/, each.name);
});

const Item = event("item", Type.Number());
const Look = query("look", { output: Type.Number() });
const Change = update("change", { input: Type.Number(), output: Type.Number() });
const Stamped = event("stamped", z.object({ at: z.number().default(() => Date.now()) }));

/** Where a replay calls workflow code beside the steps of generators. */
const places = {
  variables: workflow("in-variables", { variables: () => ({ token: crypto.randomUUID() }) }, async function* () {
    yield* sleep("1h");
  }),
  "the function that returns the generator": workflow("in-maker", ((input: undefined) => {
    Date.now();
    return (async function* () {
      yield* sleep(input ?? 1);
    })();
  }) as never),
  "the handler of an event": workflow("in-handler", async function* (_: undefined, ctx) {
    let at = 0;
    ctx.on(Item, () => {
      at = Date.now();
    });
    yield* condition(() => at > 0);
  }),
  "the handler of an event that was kept": workflow("in-late-handler", async function* (_: undefined, ctx) {
    let at = 0;
    yield* sleep("1h");
    ctx.on(Item, () => {
      at = Date.now();
    });
    yield* condition(() => at > 0);
  }),
  "a condition": workflow("in-condition", async function* () {
    yield* condition(() => Math.random() > 2, { timeout: "1h" });
  }),
  "a condition that is asked again": workflow("in-later-condition", async function* (_: undefined, ctx) {
    let seen = false;
    ctx.on(Item, () => {
      seen = true;
    });
    yield* condition(() => seen && Math.random() < 2);
  }),
  "the match of a wait": workflow("in-match", async function* () {
    yield* awaitEvent(Item, { match: () => Math.random() < 2 });
  }),
  "what undoes": workflow("in-undo", { compensation: { onFailure: "fail" } }, async function* () {
    yield* step("do", async () => 1).compensate(() => sleep(Math.random()));
    throw new Error("to be undone");
  }),
};

test("wherever a replay calls workflow code it is watched: initial variables, plain handlers, conditions, matches, compensations", async () => {
  await inEachCache({ workflows: Object.values(places), end: { skipReplay: () => true } }, async (env) => {
    for (const [place, each] of Object.entries(places)) {
      const run = await env.start(each as typeof places.variables, undefined, { event: delivery(Item, 1) });
      const failure = await run.result().then(
        () => "",
        (error: WorkflowError & { compensation?: Error }) => `${error.message} ${error.compensation?.message}`,
      );
      assert.match(failure, new RegExp(`was called in workflow "${each.name}" at ${line}: a replay would not get the same`), place);
    }
  });
});

test("the plain handler of an update is watched, and only its caller is told", async () => {
  const updated = workflow("updated", async function* (_: undefined, ctx) {
    ctx.onUpdate(Change, { handler: (n) => n + Math.random() });
    yield* awaitEvent(Item);
  });
  await inEachCache({ workflows: [updated], end: { skipReplay: () => true } }, async (env) => {
    const run = await env.start(updated);
    await assert.rejects(run.update(Change, 1), /Math\.random\(\) was called in workflow "updated"/);
    await run.send(Item, 1);
    await run.result();
  });
});

test("queries and validators, which no replay calls, may read the clock, and so may schemas", async () => {
  const free = workflow("free", async function* (_: undefined, ctx) {
    let stamped = 0;
    ctx.onQuery(Look, () => Date.now());
    ctx.onUpdate(Change, { validate: () => void Date.now(), handler: (n) => n });
    yield* sleep("1h");
    ctx.on(Stamped, () => {
      stamped += 1;
    });
    yield* condition(() => stamped > 0);
    yield* awaitEvent(Item);
  });
  await inEachCache({ workflows: [free] }, async (env) => {
    const run = await env.start(free, undefined, { event: delivery(Stamped, {}) });
    assert.ok((await run.query(Look)) > 0);
    assert.equal(await run.update(Change, 1), 1);
    await env.advance("2h");
    await run.send(Item, 1);
    await run.result();
    assert.deepEqual(env.logs, []);
  });
});

test("what the globals are is not noticed otherwise, and they are put back when the last guard is gone", async () => {
  const before = { Date, now: Date.now, random: Math.random, setTimeout, nextTick: process.nextTick, uuid: crypto.randomUUID };
  {
    await using _one = await createTestEnvironment({ workflows: [] });
    await using _two = await createTestEnvironment({ workflows: [] });
    assert.notEqual(Date, before.Date);
    const at = new Date(5);
    assert.ok(at instanceof Date && at instanceof before.Date && at.constructor === Date);
    assert.equal(Object.getPrototypeOf(at), Date.prototype);
    assert.equal(Date.name, "Date");
    assert.equal(Date.length, 7);
    class Later extends Date {}
    assert.ok(new Later(5) instanceof Later && new Later(5) instanceof Date);
    assert.equal(typeof Date(), "string");
    assert.equal(await promisify(setTimeout)(1, "value"), "value");
    assert.ok(process.hrtime.bigint() > 0n);
  }
  assert.deepEqual({ Date, now: Date.now, random: Math.random, setTimeout, nextTick: process.nextTick, uuid: crypto.randomUUID }, before);
  assert.equal(new Date(5).constructor, Date);
});

test("an orchestrator warns, unless NODE_ENV is production", async () => {
  const drawing = workflow("drawing", async function* () {
    yield* sleep(1);
    return Math.random();
  });
  const warned = async (options: object) => {
    const lines: string[] = [];
    const log = { debug: nothing, info: nothing, warn: (message: string) => lines.push(message), error: nothing };
    // Lines are remembered by the whole process, or not: as they are for the tests that come after.
    const common = { workflows: [drawing], store: memoryStore(), log, turnTimeout: false, rememberLines: true } as const;
    const orchestrator = await createOrchestrator({ ...common, ...options });
    await orchestrator.client.execute(drawing);
    await orchestrator.close();
    return lines.filter((text) => messageOf("Math.random()", "Use `ctx.random()`.").test(text)).length;
  };
  assert.equal(await warned({}), 1);
  assert.equal(await warned({ determinismGuard: "off" }), 0);
  const { NODE_ENV } = process.env;
  process.env.NODE_ENV = "production";
  try {
    assert.equal(await warned({}), 0);
    assert.equal(await warned({ determinismGuard: "warn" }), 1);
  } finally {
    if (NODE_ENV === undefined) delete process.env.NODE_ENV;
    else process.env.NODE_ENV = NODE_ENV;
  }
});
