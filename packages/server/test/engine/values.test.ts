import assert from "node:assert/strict";
import { test } from "node:test";
import vm from "node:vm";
import {
  ActivityError,
  type ApiError,
  activity,
  all,
  awaitEvent,
  child,
  condition,
  event,
  NonRetryableError,
  query,
  send,
  sideEffect,
  sleep,
  spawn,
  step,
  Type,
  update,
  type WorkflowError,
  workflow,
} from "@wovyr/sdk";
import { decodePayload, encodePayload } from "@wovyr/sdk/internal";
import { inEachCache } from "./case.ts";

const anything = event("anything", Type.Unknown());
const once = { retry: { maxAttempts: 1 } } as const;

class OutOfStock extends Error {
  override readonly name = "OutOfStock";
  readonly sku: string;
  readonly fatal = true;
  constructor(sku: string, options?: ErrorOptions) {
    super(`out of ${sku}`, options);
    this.sku = sku;
  }
}

type Chain = { name: string; message: string; cause?: Chain };
const chain = (error: unknown): Chain => {
  if (!(error instanceof Error)) return { name: typeof error, message: String(error) };
  return { name: error.name, message: error.message, ...(error.cause !== undefined && { cause: chain(error.cause) }) };
};

test("H071 the chain of causes survives the journey from activity to workflow, child, parent and client", async () => {
  const thrown = () => new Error("q", { cause: new TypeError("t", { cause: new OutOfStock("S1") }) });
  const fails = activity("fails", { ...once, errors: [OutOfStock] }, async () => {
    throw thrown();
  });
  const middle = workflow("middle", { errors: [OutOfStock] }, async function* () {
    try {
      yield* fails();
    } catch (error) {
      assert.ok(error instanceof ActivityError && error.cause instanceof Error);
      assert.match(error.cause.stack ?? "", /values\.test\.ts/);
      assert.deepEqual(chain(error.cause), chain(thrown()));
      throw error.cause;
    }
  });
  const outer = workflow("outer", async function* () {
    yield* child(middle);
  });
  await inEachCache({ workflows: [outer, middle] }, async (env) => {
    await assert.rejects(env.execute(outer), (error: WorkflowError) => {
      const child = error.cause as WorkflowError;
      assert.deepEqual([child.name, child.status], ["WorkflowError", "Failed"]);
      assert.deepEqual(chain(child.cause), chain(thrown()));
      return true;
    });
  });
});

test("H071 odd causes are kept or cut, and never stop an error from being stored", async () => {
  const circle = new Error("a", { cause: new Error("b") });
  (circle.cause as Error).cause = circle;
  let deep: Error = new Error("bottom");
  for (let depth = 0; depth < 50; depth++) deep = new Error(`level ${depth}`, { cause: deep });
  const causes: Error[] = [new Error("text", { cause: "a text" }), circle, deep];
  const fails = activity("fails", once, async (n: number) => {
    throw causes[n] as Error;
  });
  const catcher = workflow("catcher", async function* (n: number) {
    try {
      yield* fails(n);
    } catch (error) {
      yield* sleep(1);
      return chain((error as Error).cause);
    }
    return undefined;
  });
  await inEachCache({ workflows: [catcher] }, async (env) => {
    assert.deepEqual(await env.execute(catcher, 0), { name: "Error", message: "text", cause: { name: "string", message: "a text" } });
    const cut = await env.execute(catcher, 1);
    assert.deepEqual([cut?.message, cut?.cause?.message], ["a", "b"]);
    assert.match(cut?.cause?.cause?.message ?? "", /cycle/);
    assert.match(JSON.stringify(await env.execute(catcher, 2)), /level 49.*level 45.*further causes are not recorded/);
  });
});

test("H072 class, fields and retry rules of custom errors are the same before and after a replay", async () => {
  const fails = activity("fails", { errors: [OutOfStock], retry: { maxAttempts: 3, initialDelay: "1s" } }, async (kind: string, ctx) => {
    if (kind === "final") throw new NonRetryableError("final", { cause: new OutOfStock("F") });
    throw Object.assign(new OutOfStock(`A${ctx.attempt}`), { code: "E_STOCK" });
  });
  const helper = async function* (kind: string) {
    yield* all([fails(kind)]);
  };
  const sub = workflow("sub", { errors: [OutOfStock] }, async function* (kind: string) {
    try {
      yield* helper(kind);
    } catch (error) {
      throw kind === "final" ? ((error as Error).cause as Error).cause : (error as Error).cause;
    }
  });
  const outer = workflow("outer", async function* (kind: string) {
    try {
      yield* child(sub, kind);
    } catch (error) {
      yield* sleep("1s");
      const stock = (error as Error).cause as OutOfStock & { code?: string };
      return [stock instanceof OutOfStock, stock.sku, stock.fatal, stock.code];
    }
    return [];
  });
  const catcher = workflow("catcher", async function* (kind: string) {
    try {
      yield* helper(kind);
    } catch (error) {
      yield* sleep("1s");
      const { cause, attempts } = error as ActivityError;
      const stock = (kind === "final" ? (cause as Error).cause : cause) as OutOfStock & { code?: string };
      return [stock instanceof OutOfStock, stock.sku, stock.fatal, stock.code, attempts];
    }
    return [];
  });
  await inEachCache({ workflows: [catcher, outer, sub], end: { everyAttemptExecuted: true } }, async (env) => {
    assert.deepEqual(await env.execute(catcher, "stock"), [true, "A3", true, "E_STOCK", 3]);
    assert.deepEqual(await env.execute(catcher, "final"), [true, "F", true, undefined, 1]);
    assert.deepEqual(await env.execute(outer, "stock"), [true, "A3", true, "E_STOCK"]);
    assert.deepEqual(await env.execute(outer, "final"), [true, "F", true, undefined]);
  });
});

test("H073 whatever is thrown is stored with a readable message", async () => {
  const spiteful = new Proxy(
    {},
    {
      get: () => {
        throw new Error("do not touch");
      },
    },
  );
  const table: [unknown, RegExp][] = [
    [vm.runInNewContext('new RangeError("other realm")'), /^RangeError: other realm/],
    [{ message: "an object", stack: "at nowhere" }, /an object/],
    [null, /null/],
    [undefined, /undefined/],
    [0, /0/],
    [Symbol("sign"), /sign/],
    [spiteful, /./],
    [() => {}, /./],
  ];
  const throws = activity("throws", once, (n: number) => {
    throw table[n]?.[0];
  });
  const catcher = workflow("catcher", async function* (n: number) {
    try {
      yield* throws(n);
    } catch (error) {
      yield* sleep(1);
      return String((error as Error).cause instanceof Error ? (error as Error).cause : (error as Error).message);
    }
    return "";
  });
  const direct = workflow("direct", async function* (n: number) {
    yield* sleep(1);
    throw table[n]?.[0];
  });
  await inEachCache({ workflows: [catcher, direct] }, async (env) => {
    for (const [n, [, expected]] of table.entries()) {
      assert.match(await env.execute(catcher, n), expected);
      await assert.rejects(
        env.execute(direct, n),
        (error: WorkflowError) => error.status === "Failed" && expected.test(String(error.cause)),
      );
    }
  });
});

const values: Record<string, unknown> = {
  bigint: 10n ** 30n,
  date: new Date("2026-02-03T04:05:06.789Z"),
  "no date": new Date(Number.NaN),
  map: new Map<unknown, unknown>([
    ["a", new Set([1])],
    [2, new Date(0)],
  ]),
  set: new Set([1, "a"]),
  bytes: new Uint8Array([0, 255]),
  nothing: undefined,
  undefinedInside: { a: undefined, b: [undefined, null] },
  numbers: [Number.NaN, Number.POSITIVE_INFINITY, Number.NEGATIVE_INFINITY, -0],
  url: new URL("https://example.org/?a=1"),
  regexp: /a+/gi,
  error: new TypeError("wrong"),
  large: 1e21,
  lone: "\ud800 and \u0000",
  sparse: Object.assign(new Array(3), { 0: 1, 2: 3 }),
  bare: Object.assign(Object.create(null), { a: 1 }),
  deep: Array.from({ length: 100 }).reduce<unknown>((inner) => [inner], "bottom"),
  keys: JSON.parse('{"__proto__":{"x":1},"constructor":{"prototype":{"x":1}},"$type":"Error"}'),
};

/** Equal in every bit that is stored; `deepEqual` takes two dates that are none for different ones. */
const same = (got: unknown, value: unknown, what: string) => assert.equal(encodePayload(got), encodePayload(value), what);

const look = query("look", { input: Type.Unknown(), output: Type.Unknown() });
const change = update("change", { input: Type.Unknown(), output: Type.Unknown() });

/** Every value on every path that a run has. */
test("H074 each value has one outcome, the same on every path and after every replay", async () => {
  const echo = activity("echo", async (value: unknown) => value);
  const sub = workflow("sub", async function* (value: unknown) {
    yield* sleep(1);
    return value;
  });
  const listener = workflow("listener", async function* () {
    return yield* awaitEvent(anything);
  });
  const paths = workflow("paths", { variables: () => ({ value: undefined as unknown }) }, async function* (input: unknown, ctx) {
    const name = ctx.memo.name as string;
    const value = values[name];
    const told: Record<string, unknown> = {};
    ctx.onQuery(look, (given) => ({ given, value: ctx.variables.value }));
    ctx.onUpdate(change, {
      handler: (given) => {
        told.update = given;
        return given;
      },
    });
    ctx.variables.value = value;
    const listening = yield* spawn(child(listener, undefined, { id: `${ctx.id}-listener` }));
    yield* send(`${ctx.id}-listener`, anything, value);
    const seen = {
      input,
      activity: yield* echo(value),
      step: yield* step("step", async () => value),
      child: yield* child(sub, value),
      side: yield* sideEffect(() => value),
      sent: yield* listening,
      event: yield* awaitEvent(anything),
      memo: ctx.memo.value,
      variables: ctx.variables.value,
    };
    yield* condition(() => "update" in told);
    yield* sleep("1s");
    return { ...seen, ...told };
  });
  const next = workflow("next", { input: Type.Object({ left: Type.Number(), value: Type.Unknown() }) }, async function* (input, ctx) {
    if (input.left === 0) return input.value;
    return yield* ctx.continueAsNew({ left: input.left - 1, value: values[ctx.memo.name as string] });
  });
  await inEachCache({ workflows: [paths, sub, listener, next] }, async (env) => {
    for (const [name, value] of Object.entries(values)) {
      const run = await env.start(paths, value, { memo: { name, value } });
      await run.send(anything, value);
      const asked = (await run.query(look, value)) as { given: unknown; value: unknown };
      same(asked.given, value, `${name} to and from a query`);
      same(asked.value, value, `${name} in variables, by a query`);
      same(await run.update(change, value), value, `${name} by an update`);
      const seen = await run.result();
      for (const [path, got] of Object.entries(seen)) same(got, value, `${name} by ${path}`);
      const about = await run.describe();
      same(about.memo.value, value, `${name} by the description's memo`);
      same(about.variables.value, value, `${name} by the description's variables`);
      same(await env.execute(next, { left: 1, value: undefined }, { memo: { name } }), value, `${name} by continue-as-new`);
    }
    assert.equal(({} as { x?: number }).x, undefined);
  });
});

test("H074 the same object twice is kept as two on every path, and a Buffer as its bytes", async () => {
  const shared = { same: true };
  const echo = activity("echo", async (value: unknown) => value);
  const sub = workflow("sub", async function* (value: unknown) {
    return value;
  });
  const twice = workflow("twice", async function* (input: unknown) {
    const given = { twice: [shared, shared], bytes: Buffer.from("abc") };
    const seen = [input, yield* echo(given), yield* child(sub, given), yield* sideEffect(() => given), yield* awaitEvent(anything)];
    yield* sleep(1);
    return seen;
  });
  await inEachCache({ workflows: [twice, sub] }, async (env) => {
    const value = { twice: [shared, shared], bytes: Buffer.from("abc") };
    const run = await env.start(twice, value);
    await run.send(anything, value);
    for (const got of (await run.result()) as (typeof value)[]) {
      assert.deepEqual(got.twice, [shared, shared]);
      assert.notEqual(got.twice[0], got.twice[1]);
      assert.deepEqual(got.bytes, new Uint8Array(Buffer.from("abc")));
    }
  });
});

class Getter {
  get broken(): never {
    throw new Error("no");
  }
}
const cycle: Record<string, unknown> = {};
cycle.self = { cycle };
const unserializable: Record<string, [value: unknown, path: RegExp]> = {
  "a function": [{ a: [1, 2, 3, { fn: () => 1 }] }, /\$\.a\[3\]\.fn/],
  "a symbol": [{ s: Symbol("s") }, /\$\.s/],
  "a promise": [[Promise.resolve(1)], /\$\[0\]/],
  "a cycle": [{ cycle }, /\$\.cycle\.self\.cycle/],
  "a class instance": [{ g: new Getter() }, /\$\.g/],
  "a getter that throws": [
    {
      get broken() {
        throw new Error("no");
      },
    },
    /\$\.broken/,
  ],
  "a stream": [{ body: [new ReadableStream()] }, /\$\.body\[0\]/],
  "an object with toJSON": [{ at: { toJSON: () => "text" } }, /\$\.at\.toJSON/],
  "a weak map": [{ w: new WeakMap() }, /\$\.w/],
};

for (const [what, [value, path]] of Object.entries(unserializable))
  test(`H076 ${what} as an argument is an error that can be caught, names its place, and schedules nothing`, async () => {
    const echo = activity("echo", async (given: unknown) => given);
    const sub = workflow("sub", async function* (given: unknown) {
      return given;
    });
    const returnsIt = activity("returnsIt", { retry: { maxAttempts: 5 } }, async () => value);
    const catcher = workflow("catcher", async function* (_: unknown, ctx) {
      ctx.onQuery(look, () => value);
      ctx.onUpdate(change, { handler: () => value });
      const seen: string[] = [];
      for (const make of [() => echo(value), () => child(sub, value), () => ctx.continueAsNew(value), () => sideEffect(() => value)]) {
        try {
          yield make();
          seen.push("taken");
        } catch (error) {
          seen.push((error as { code: string }).code);
          assert.match((error as Error).message, path);
        }
      }
      try {
        yield* returnsIt();
      } catch (error) {
        assert.match((error as Error).message, path);
        seen.push(`${(error as ActivityError).attempts}`);
      }
      yield* awaitEvent(anything);
      return seen;
    });
    const careless = workflow("careless", async function* () {
      yield* echo(value);
    });
    const hasty = workflow("hasty", async function* (_: unknown, ctx) {
      yield* ctx.continueAsNew(value);
    });
    const returning = workflow("returning", async function* () {
      yield* sleep(1);
      return value;
    });
    const keeping = workflow("keeping", { variables: () => ({ value: undefined as unknown }) }, async function* (_: undefined, ctx) {
      ctx.variables.value = value;
      yield* sleep(1);
    });
    await inEachCache({ workflows: [catcher, careless, hasty, returning, keeping, sub] }, async (env) => {
      const run = await env.start(catcher);
      await env.settle();
      await assert.rejects(run.query(look, 1), (error: Error) => (error as ApiError).code === "QUERY_FAILED" && path.test(error.message));
      await assert.rejects(run.update(change, 1), (error: Error) => path.test(String(error.cause)));
      await assert.rejects(run.query(look, value), { code: "PAYLOAD_UNSERIALIZABLE" });
      await assert.rejects(run.update(change, value), { code: "PAYLOAD_UNSERIALIZABLE" });
      await assert.rejects(run.send(anything, value), { code: "PAYLOAD_UNSERIALIZABLE" });
      await run.send(anything, 1);
      assert.deepEqual(await run.result(), [...Array(4).fill("PAYLOAD_UNSERIALIZABLE"), "1"]);
      const types = (await env.turns(run.id)).flatMap((turn) => turn.events).map((fact) => fact.type);
      assert.deepEqual(
        types.filter((type) => !/^Update|^Event/.test(type)),
        ["InstanceStarted", "SideEffectRecorded", "ActivityScheduled", "ActivityFailed", "InstanceCompleted"],
      );
      await assert.rejects(env.execute(keeping), /ctx\.variables cannot be stored: \$\.value/);
      for (const failing of [careless, hasty, returning])
        await assert.rejects(env.execute(failing), (error: WorkflowError) => error.status === "Failed" && path.test(String(error.cause)));
      await assert.rejects(env.start(sub, value), { code: "PAYLOAD_UNSERIALIZABLE" });
      await assert.rejects(env.start(sub, 1, { memo: { value } }), { code: "PAYLOAD_UNSERIALIZABLE" });
    });
  });

test("H077 NUL characters and lone surrogates travel unchanged; in names they are refused", async () => {
  const nul = "\u0000a\u0000b\ud800\u0000";
  const echo = activity("echo", async (value: unknown) => value);
  const fails = activity("fails", once, async () => {
    throw Object.assign(new Error(nul), { stack: `Error: ${nul}\n    at ${nul}`, field: nul });
  });
  const printed = activity("printed", () => new Uint8Array([0x00, 0xff, 0xfe, 0xc3, 0x28]));
  const carrier = workflow("carrier", async function* (value: unknown, ctx) {
    ctx.log.info(nul);
    (ctx.variables as Record<string, unknown>).text = nul;
    let message = "";
    try {
      yield* fails();
    } catch (error) {
      const cause = (error as Error).cause as Error & { field: string };
      message = [cause.message, cause.field, cause.stack?.split("    at ")[1]].join();
    }
    yield* sleep(1);
    return [value, yield* echo({ [nul]: [nul] }), yield* awaitEvent(anything), message, ctx.memo.text, yield* printed()];
  });
  await inEachCache({ workflows: [carrier] }, async (env) => {
    const run = await env.start(carrier, nul, { memo: { text: nul } });
    await run.send(anything, nul);
    const bytes = new Uint8Array([0x00, 0xff, 0xfe, 0xc3, 0x28]);
    assert.deepEqual(await run.result(), [nul, { [nul]: [nul] }, nul, [nul, nul, nul].join(), nul, bytes]);
    assert.deepEqual(decodePayload((await env.state(run.id)).variables ?? ""), { text: nul });
    await assert.rejects(env.start(carrier, 1, { id: "a\u0000b" }), { code: "INVALID_NAME" });
    assert.throws(() => event("a\u0000b"), { code: "INVALID_NAME" });
  });
});

test("H079 a payload above the limit is refused where it is used, with size and limit, and below it is not", async () => {
  const limit = 10_000;
  const text = (length: number) => "x".repeat(length - 2);
  const echo = activity("echo", async (value: string) => value);
  const grow = activity("grow", async (length: number) => text(length));
  const sub = workflow("sub", async function* (value: string) {
    return value.length;
  });
  const listener = workflow("listener", async function* (_: undefined, ctx) {
    ctx.onQuery(look, (given) => (typeof given === "number" ? text(given) : 0));
    ctx.onUpdate(change, { handler: (given) => (typeof given === "number" ? text(given) : 0) });
    while (true) yield* awaitEvent(anything);
  });
  const next = workflow("next", { input: Type.Union([Type.Number(), Type.String()]) }, async function* (given, ctx) {
    if (typeof given === "number") yield* ctx.continueAsNew(text(given));
  });
  const returning = workflow("returning", async function* (length: number) {
    return text(length);
  });
  const user = workflow("user", async function* (length: number) {
    const seen: unknown[] = [];
    for (const make of [
      () => echo(text(length)),
      () => child(sub, text(length)),
      () => sideEffect(() => text(length)),
      () => grow(length),
    ]) {
      try {
        yield make();
        seen.push("taken");
      } catch (error) {
        const failure = ((error as Error).cause ?? error) as { code: string; message: string };
        assert.match(failure.message, new RegExp(`${limit}|10[ ,]?000`));
        seen.push(failure.code);
      }
    }
    return seen;
  });
  const workflows = [user, sub, listener, next, returning];
  await inEachCache({ workflows, limits: { payload: limit }, end: { everyAttemptExecuted: true } }, async (env) => {
    const run = await env.start(listener);
    for (const length of [limit - 1, limit, limit + 1, 1_000_000]) {
      const fits = length <= limit;
      assert.deepEqual(await env.execute(user, length), Array(4).fill(fits ? "taken" : "PAYLOAD_TOO_LARGE"));
      const calls: Record<string, () => Promise<unknown>> = {
        start: () => env.execute(sub, text(length)),
        memo: () => env.execute(sub, "", { memo: { t: text(length - '{"t":}'.length) } }),
        result: () => env.execute(returning, length),
        "the next run": () => env.execute(next, length),
        event: () => run.send(anything, text(length)),
        query: () => run.query(look, text(length)),
        "answer of a query": () => run.query(look, length),
        update: () => run.update(change, text(length)),
        "answer of an update": () => run.update(change, length),
      };
      for (const [what, call] of Object.entries(calls)) {
        const told = await call().then(
          () => "taken",
          (error: Error) => [error.message, (error as ApiError).code, (error.cause as ApiError | undefined)?.code].join(" "),
        );
        if (fits) assert.equal(told, "taken", what);
        else assert.match(told, new RegExp(`${length}.*${limit}.*PAYLOAD_TOO_LARGE|${length}.*${limit}.*QUERY_FAILED`), what);
      }
    }
  });
});

test("H081 keys that name prototypes stay data, and nothing outside makes a class of itself", async () => {
  const hostile = JSON.parse('{"__proto__":{"polluted":1},"list":[{"constructor":{"prototype":{"polluted":1}}}],"$type":"Error","~":"x"}');
  const echo = activity("echo", async (value: unknown) => value);
  const keys = new Map<unknown, unknown>([
    ["__proto__", { polluted: 1 }],
    ["constructor", { prototype: { polluted: 1 } }],
  ]);
  const carrier = workflow(
    "carrier",
    { variables: () => JSON.parse('{"__proto__":{"polluted":1}}') },
    async function* (value: unknown, ctx) {
      const got = [value, yield* echo(hostile), yield* awaitEvent(anything), ctx.memo.hostile];
      assert.deepEqual(yield* echo(keys), keys);
      yield* sleep(1);
      return got;
    },
  );
  await inEachCache({ workflows: [carrier] }, async (env) => {
    const attributes = JSON.parse('{"__proto__":"x","constructor":"y"}') as Record<string, string>;
    const run = await env.start(carrier, hostile, { memo: { hostile }, attributes });
    await run.send(anything, hostile);
    assert.deepEqual(Object.entries((await run.describe()).attributes).sort(), Object.entries(attributes).sort());
    const found: string[] = [];
    for await (const { id } of env.client.list({ attributes: { constructor: "y" } })) found.push(id);
    assert.deepEqual(found, [run.id]);
    for (const got of await run.result()) {
      assert.deepEqual(got, hostile);
      assert.ok(Object.hasOwn(got as object, "__proto__"));
      assert.equal(Object.getPrototypeOf(got), Object.prototype);
    }
    assert.equal(({} as { polluted?: number }).polluted, undefined);
  });
});

test("what a workflow changes in its variables in its last steps is kept, and what cannot be stored fails it", async () => {
  const last = workflow("last", { variables: () => ({ stage: "new" as unknown }) }, async function* (value: string, ctx) {
    yield* sleep("1s");
    ctx.variables.stage = value === "unstorable" ? () => value : value;
    if (value === "fails") throw new Error("at the end");
    return value;
  });
  await inEachCache({ workflows: [last] }, async (env) => {
    for (const value of ["done", "fails"]) {
      const run = await env.start(last, value);
      await run.result().catch(() => {});
      assert.deepEqual(await env.variables(run.id), { stage: value });
    }
    await assert.rejects(env.execute(last, "unstorable"), /variables/);
  });
});

test("variables may be as long as any other value, whatever the limit", async () => {
  const keeper = workflow("keeper", { variables: () => ({ kept: "x".repeat(3 * 1_024 * 1_024) }) }, async function* (_: null, ctx) {
    const { length } = ctx.variables.kept;
    ctx.variables.kept += "y";
    yield* sleep("1s");
    return [length, ctx.variables.kept.length];
  });
  const length = 3 * 1_024 * 1_024;
  await inEachCache({ workflows: [keeper], limits: { payload: 2 * length } }, async (env) => {
    assert.deepEqual(await env.execute(keeper, null), [length, length + 1]);
  });
  await inEachCache({ workflows: [keeper] }, async (env) => {
    await assert.rejects(env.execute(keeper, null), /variables/);
  });
});
