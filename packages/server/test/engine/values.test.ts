import assert from "node:assert/strict";
import { test } from "node:test";
import vm from "node:vm";
import {
  ActivityError,
  activity,
  awaitEvent,
  child,
  event,
  NonRetryableError,
  sideEffect,
  sleep,
  Type,
  type WorkflowError,
  workflow,
} from "@wovyr/sdk";
import { decodePayload } from "@wovyr/sdk/internal";
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
    assert.equal((await env.execute(catcher, 1))?.cause?.message, "b");
    assert.match(JSON.stringify(await env.execute(catcher, 2)), /level 49.*level 45/);
  });
});

test("H072 class, fields and retry rules of custom errors are the same before and after a replay", async () => {
  const fails = activity("fails", { errors: [OutOfStock], retry: { maxAttempts: 3, initialDelay: "1s" } }, async (kind: string, ctx) => {
    if (kind === "final") throw new NonRetryableError("final", { cause: new OutOfStock("F") });
    throw Object.assign(new OutOfStock(`A${ctx.attempt}`), { code: "E_STOCK" });
  });
  const catcher = workflow("catcher", async function* (kind: string) {
    try {
      yield* fails(kind);
    } catch (error) {
      yield* sleep("1s");
      const { cause, attempts } = error as ActivityError;
      const stock = (kind === "final" ? (cause as Error).cause : cause) as OutOfStock & { code?: string };
      return [stock instanceof OutOfStock, stock.sku, stock.fatal, stock.code, attempts];
    }
    return [];
  });
  await inEachCache({ workflows: [catcher], end: { everyAttemptExecuted: true } }, async (env) => {
    assert.deepEqual(await env.execute(catcher, "stock"), [true, "A3", true, "E_STOCK", 3]);
    assert.deepEqual(await env.execute(catcher, "final"), [true, "F", true, undefined, 1]);
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

const link = { text: "" } as { text: string; self?: unknown };
link.self = link;
const values: Record<string, unknown> = {
  bigint: 10n ** 30n,
  date: new Date("2026-02-03T04:05:06.789Z"),
  map: new Map<unknown, unknown>([
    ["a", new Set([1])],
    [2, new Date(0)],
  ]),
  set: new Set([1, "a"]),
  bytes: new Uint8Array([0, 255]),
  undefinedInside: { a: undefined, b: [undefined, null] },
  nan: [Number.NaN, Number.POSITIVE_INFINITY, Number.NEGATIVE_INFINITY, -0],
  url: new URL("https://example.org/?a=1"),
  regexp: /a+/gi,
  error: new TypeError("wrong"),
  large: 1e21,
  lone: "\ud800 and \u0000",
  deep: Array.from({ length: 90 }).reduce<unknown>((inner) => [inner], "bottom"),
  keys: JSON.parse('{"__proto__":{"x":1},"constructor":{"prototype":{"x":1}},"$type":"Error"}'),
};

/** Every value on every path that a run has; what each becomes is gathered from the store's text, so that paths are compared with one another. */
test("H074 each value has one outcome, the same on every path and after every replay", async () => {
  const echo = activity("echo", async (value: unknown) => value);
  const sub = workflow("sub", async function* (value: unknown) {
    yield* sleep(1);
    return value;
  });
  const paths = workflow("paths", async function* (input: unknown, ctx) {
    const name = ctx.memo.name as string;
    const seen = {
      input,
      activity: yield* echo(values[name]),
      child: yield* child(sub, values[name]),
      side: yield* sideEffect(() => values[name]),
      event: yield* awaitEvent(anything),
      memo: ctx.memo.value,
    };
    yield* sleep("1s");
    return seen;
  });
  await inEachCache({ workflows: [paths, sub] }, async (env) => {
    for (const [name, value] of Object.entries(values)) {
      const run = await env.start(paths, value, { memo: { name, value } });
      await run.send(anything, value);
      const seen = await run.result();
      for (const [path, got] of Object.entries(seen)) assert.deepEqual(got, value, `${name} by ${path}`);
      assert.ok(Object.is((seen.activity as number[])[3], name === "nan" ? -0 : (seen.activity as number[])[3]));
    }
    assert.equal(({} as { x?: number }).x, undefined);
  });
});

test("H074 an input may be shared and circular only where the documented rule says so, on every path alike", async () => {
  const echo = activity("echo", async (value: unknown) => value);
  const outcomes = workflow("outcomes", async function* () {
    const seen: string[] = [];
    for (const make of [() => echo(link), () => sideEffect(() => link), () => child(outcomesAgain, link)]) {
      try {
        yield make();
        seen.push("taken");
      } catch (error) {
        seen.push((error as { code: string }).code);
      }
    }
    return seen;
  });
  const outcomesAgain = workflow("outcomesAgain", async function* (value: unknown) {
    yield* sleep(1);
    return value;
  });
  await inEachCache({ workflows: [outcomes, outcomesAgain] }, async (env) => {
    const seen = await env.execute(outcomes);
    assert.equal(new Set(seen).size, 1, seen.join());
  });
});

class Getter {
  get broken(): never {
    throw new Error("no");
  }
}
const unserializable: Record<string, [value: unknown, path: RegExp]> = {
  "a function": [{ a: [1, 2, 3, { fn: () => 1 }] }, /\$\.a\[3\]\.fn/],
  "a symbol": [{ s: Symbol("s") }, /\$\.s/],
  "a promise": [[Promise.resolve(1)], /\$\[0\]/],
  "a class instance": [{ g: new Getter() }, /\$\.g/],
  "a weak map": [{ w: new WeakMap() }, /\$\.w/],
};

for (const [what, [value, path]] of Object.entries(unserializable))
  test(`H076 ${what} as an argument is an error that can be caught, names its place, and schedules nothing`, async () => {
    const echo = activity("echo", async (given: unknown) => given);
    const sub = workflow("sub", async function* (given: unknown) {
      return given;
    });
    const returnsIt = activity("returnsIt", { retry: { maxAttempts: 5 } }, async () => value);
    const catcher = workflow("catcher", async function* () {
      const seen: string[] = [];
      for (const make of [() => echo(value), () => child(sub, value), () => sideEffect(() => value)]) {
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
        seen.push(`${(error as ActivityError).attempts}`);
      }
      return seen;
    });
    const careless = workflow("careless", async function* () {
      yield* echo(value);
    });
    const returning = workflow("returning", async function* () {
      yield* sleep(1);
      return value;
    });
    await inEachCache({ workflows: [catcher, careless, returning, sub] }, async (env) => {
      const run = await env.start(catcher);
      assert.deepEqual(await run.result(), [...Array(3).fill("PAYLOAD_UNSERIALIZABLE"), "1"]);
      const types = (await env.turns(run.id)).flatMap((turn) => turn.events).map((fact) => fact.type);
      assert.deepEqual(types, ["InstanceStarted", "SideEffectRecorded", "ActivityScheduled", "ActivityFailed", "InstanceCompleted"]);
      for (const failing of [careless, returning])
        await assert.rejects(env.execute(failing), (error: WorkflowError) => error.status === "Failed" && path.test(String(error.cause)));
      await assert.rejects(env.start(sub, value), { code: "PAYLOAD_UNSERIALIZABLE" });
      await assert.rejects(run.send(anything, value), { code: "PAYLOAD_UNSERIALIZABLE" });
    });
  });

test("H077 NUL characters and lone surrogates travel unchanged; in names they are refused", async () => {
  const nul = "\u0000a\u0000b\ud800\u0000";
  const echo = activity("echo", async (value: unknown) => value);
  const fails = activity("fails", once, async () => {
    throw new Error(nul);
  });
  const carrier = workflow("carrier", async function* (value: unknown, ctx) {
    ctx.log.info(nul);
    (ctx.variables as Record<string, unknown>).text = nul;
    let message = "";
    try {
      yield* fails();
    } catch (error) {
      message = ((error as Error).cause as Error).message;
    }
    yield* sleep(1);
    return [value, yield* echo({ [nul]: [nul] }), yield* awaitEvent(anything), message];
  });
  await inEachCache({ workflows: [carrier] }, async (env) => {
    const run = await env.start(carrier, nul);
    await run.send(anything, nul);
    assert.deepEqual(await run.result(), [nul, { [nul]: [nul] }, nul, nul]);
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
  await inEachCache({ workflows: [user, sub], limits: { payload: limit }, end: { everyAttemptExecuted: true } }, async (env) => {
    for (const length of [limit - 1, limit]) assert.deepEqual(await env.execute(user, length), Array(4).fill("taken"));
    for (const length of [limit + 1, 1_000_000]) assert.deepEqual(await env.execute(user, length), Array(4).fill("PAYLOAD_TOO_LARGE"));
    await assert.rejects(env.start(sub, text(limit + 1)), { code: "PAYLOAD_TOO_LARGE" });
  });
});

test("H081 keys that name prototypes stay data, and nothing outside makes a class of itself", async () => {
  const hostile = JSON.parse('{"__proto__":{"polluted":1},"list":[{"constructor":{"prototype":{"polluted":1}}}],"$type":"Error","~":"x"}');
  const echo = activity("echo", async (value: unknown) => value);
  const carrier = workflow("carrier", async function* (value: unknown) {
    const got = [value, yield* echo(hostile), yield* awaitEvent(anything)];
    yield* sleep(1);
    return got;
  });
  await inEachCache({ workflows: [carrier] }, async (env) => {
    const run = await env.start(carrier, hostile);
    await run.send(anything, hostile);
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
