import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { inspect, types } from "node:util";
import vm from "node:vm";
import { MessageChannel, receiveMessageOnPort } from "node:worker_threads";
import fc from "fast-check";
import {
  ActivityError,
  ApiError,
  CancelledError,
  DeterminismError,
  NonRetryableError,
  PayloadError,
  RetryAfterError,
  TimeoutError,
  ValidationError,
  WorkflowError,
  WovyrError,
} from "../../src/model/errors.ts";
import { errorOf, type Failure, failureOf } from "../../src/model/failure.ts";
import { isNonRetryable } from "../../src/model/failure-kind.ts";
import { decodePayload } from "../../src/model/payload.ts";
import { storable, storableError } from "./storable.ts";

/** Through JSON, as history and the wire have it. */
const stored = (thrown: unknown): Failure => JSON.parse(JSON.stringify(failureOf(thrown)));
const back = (thrown: unknown, ...classes: Parameters<typeof errorOf>[1][]) =>
  errorOf(stored(thrown), ...classes) as Error & Record<string, unknown>;

class OutOfStock extends Error {
  readonly sku: string;
  readonly left: number;
  constructor(sku: string, left: number) {
    constructed++;
    super(`out of stock: ${sku}`);
    this.sku = sku;
    this.left = left;
  }
  get isEmpty() {
    return this.left === 0;
  }
}
let constructed = 0;

class Fatal extends NonRetryableError {
  readonly reason = "bad card";
}

class Declined extends Error {}
Object.defineProperty(Declined.prototype, "name", { value: "PaymentDeclined" });

class Renamed extends Error {
  override name = "PaymentDeclined";
}

describe("an error that is stored and thrown again", () => {
  it("H071 has its name, message, stack, code, cause and own fields", () => {
    const cause = Object.assign(new TypeError("t", { cause: new OutOfStock("a-1", 0) }), { at: new Date(5), big: 5n });
    const error = Object.assign(new Error("q", { cause }), { code: "E_Q", status: 503 });
    const again = back(error);
    assert.equal(again.name, "Error");
    assert.equal(again.message, "q");
    assert.equal(again.stack, error.stack);
    assert.equal(again.code, "E_Q");
    assert.equal(again.status, 503);
    const inner = again.cause as TypeError & Record<string, unknown>;
    assert.ok(inner instanceof TypeError);
    assert.deepEqual(inner.at, new Date(5));
    assert.equal(inner.big, 5n);
    const innermost = inner.cause as Error & Record<string, unknown>;
    assert.equal(innermost.name, "OutOfStock");
    assert.equal(innermost.sku, "a-1");
    assert.match(String(innermost.stack), /failure\.test/);
  });

  it("H071 has a cause that is no error as it was", () => {
    for (const cause of ["text", 5, null, { a: [1n] }, 0, false]) assert.deepStrictEqual(back(new Error("x", { cause })).cause, cause);
  });

  it("H071 has a cycle of causes cut and marked", () => {
    const [a, b] = [new Error("a"), new Error("b")];
    a.cause = b;
    b.cause = a;
    const again = back(a);
    assert.equal((again.cause as Error).message, "b");
    assert.match(((again.cause as Error).cause as Error).message, /cycle/);
    const self = new Error("self");
    self.cause = self;
    assert.match((back(self).cause as Error).message, /cycle/);
  });

  it("H071 has a long chain of causes cut and marked", () => {
    let error = new Error("innermost");
    for (let level = 0; level < 50; level++) error = new Error(`level ${level}`, { cause: error });
    const messages: string[] = [];
    for (let at: unknown = back(error); at instanceof Error; at = at.cause) messages.push(at.message);
    assert.equal(messages.length, 20);
    assert.equal(messages[0], "level 49");
    assert.match(messages.at(-1) ?? "", /further causes are not recorded/);
  });

  it("H072 is of its class when that is listed, without a run of its constructor", () => {
    const error = new OutOfStock("a-1", 0);
    constructed = 0;
    const again = back(error, [RangeError, OutOfStock]) as unknown as OutOfStock;
    assert.ok(again instanceof OutOfStock);
    assert.equal(again.sku, "a-1");
    assert.equal(again.isEmpty, true);
    assert.equal(constructed, 0);
    assert.ok(back(new Error("x", { cause: error }), [OutOfStock]).cause instanceof OutOfStock);
    assert.ok(back(new Declined("no"), [Declined]) instanceof Declined);
    assert.equal(back(new Declined("no"), [Declined]).name, "PaymentDeclined");
  });

  it("H072 has at least the name of its class when that is not listed", () => {
    const again = back(new OutOfStock("a-1", 3));
    assert.equal(again.name, "OutOfStock");
    assert.equal(again.left, 3);
    assert.equal(Object.getPrototypeOf(again), Error.prototype);
    assert.equal(back(new Renamed("no")).name, "PaymentDeclined");
    assert.equal(back(new (class extends TypeError {})("anonymous")).name, "TypeError");
  });

  const ours: readonly [WovyrError, Record<string, unknown>][] = [
    [
      new ActivityError("m", { activity: "charge", attempts: 3, cause: new TimeoutError("t", "startToClose") }),
      { activity: "charge", attempts: 3 },
    ],
    [
      new WorkflowError("m", { instanceId: "i", workflow: "w", status: "TimedOut" }),
      { instanceId: "i", workflow: "w", status: "TimedOut" },
    ],
    [new TimeoutError("m", "scheduleToClose"), { timeout: "scheduleToClose" }],
    [new CancelledError("m"), {}],
    [new DeterminismError("m", { seq: 5, site: "a.ts:1:2" }), { seq: 5, site: "a.ts:1:2" }],
    [new PayloadError("m", { code: "PAYLOAD_TOO_LARGE", path: "$.a" }), { path: "$.a" }],
    [new ValidationError("m", { violations: [{ pointer: "/a", message: "b" }] }), { violations: [{ pointer: "/a", message: "b" }] }],
    [new ApiError("m", { code: "OVERLOADED", retryAfter: 5 }), { status: 429, retryable: true, retryAfter: 5 }],
    [new NonRetryableError("m"), {}],
    [new RetryAfterError("m", new Date(5)), { after: new Date(5) }],
    [new WovyrError("m", { code: "OVERLOADED" }), {}],
  ];
  for (const [error, fields] of ours) {
    it(`H072 is of Wovyr's class: ${error.name}`, () => {
      const again = back(error) as unknown as WovyrError & Record<string, unknown>;
      assert.equal(Object.getPrototypeOf(again), Object.getPrototypeOf(error));
      assert.equal(again.code, error.code);
      assert.equal(again.name, error.name);
      assert.equal(String(again), String(error));
      for (const [key, value] of Object.entries(fields)) assert.deepStrictEqual(again[key], value);
      assert.ok(types.isNativeError(again), "tools recognise it");
      assert.match(inspect(again), /failure\.test/);
    });
  }

  it("is not taken for Wovyr's own because of its name", () => {
    assert.ok(!(back(new DOMException("late", "TimeoutError")) instanceof TimeoutError));
    assert.equal(back(new DOMException("late", "TimeoutError")).name, "TimeoutError");
    assert.equal(Object.getPrototypeOf(errorOf({ name: "constructor", message: "" })), Error.prototype);
  });

  it("has the errors of an AggregateError, up to a number", () => {
    const error = new AggregateError([new TypeError("a"), "b", new TimeoutError("c")], "all failed");
    const again = back(error) as unknown as AggregateError;
    assert.ok(again instanceof AggregateError);
    assert.ok(again.errors[0] instanceof TypeError);
    assert.equal(again.errors[1], "b");
    assert.ok(again.errors[2] instanceof TimeoutError);
    assert.deepEqual(Object.keys(again), []);
    const many = stored(
      new AggregateError(
        Array.from({ length: 10_000 }, (_, index) => new Error(`${index}`)),
        "all failed",
      ),
    );
    assert.ok(JSON.stringify(many).length < 200_000);
  });

  it("has errors of the listed classes in a list of errors, and as their causes", () => {
    const inner = new OutOfStock("a", 0);
    const error = new AggregateError([inner, new Error("b", { cause: inner }), new AggregateError([inner], "deep")], "all failed");
    const [first, second, third] = (back(error, [OutOfStock]) as unknown as AggregateError).errors;
    assert.ok(first instanceof OutOfStock && first.isEmpty);
    assert.ok(second.cause instanceof OutOfStock);
    assert.ok(third.errors[0] instanceof OutOfStock);
  });

  it("is the same data after it was thrown again", () => {
    fc.assert(
      fc.property(storableError, (error) => {
        const failure = failureOf(error);
        assert.deepEqual(failureOf(errorOf(failure)), failure);
      }),
    );
  });
});

describe("what was thrown", () => {
  it("H073 may come from another realm", () => {
    const context = vm.createContext({});
    const foreign = vm.runInContext(
      `
      class Custom extends RangeError { constructor(m) { super(m); this.limit = 5; } }
      const error = new Custom("foreign", { cause: new TypeError("inner") });
      error.cause = new TypeError("inner");
      error`,
      context,
    );
    const again = back(foreign);
    assert.equal(again.name, "Custom");
    assert.equal(again.message, "foreign");
    assert.equal(again.limit, 5);
    assert.match(String(again.stack), /evalmachine/);
    assert.ok(again.cause instanceof TypeError);
  });

  it("H073 may come from a worker", () => {
    const { port1, port2 } = new MessageChannel();
    port1.postMessage(new RangeError("cloned"));
    const again = back(receiveMessageOnPort(port2)?.message);
    port1.close();
    assert.ok(again instanceof RangeError);
    assert.equal(again.message, "cloned");
  });

  it("H073 may be an object with a message and a stack", () => {
    const again = back({ message: "m", stack: "s at x", code: "C", detail: 1n });
    assert.equal(again.message, "m");
    assert.equal(again.stack, "s at x");
    assert.equal(again.code, "C");
    assert.equal(again.detail, 1n);
  });

  const hostile = new Proxy(new Error("x"), {
    get() {
      throw new Error("no");
    },
    getPrototypeOf() {
      throw new Error("no");
    },
    ownKeys() {
      throw new Error("no");
    },
    has() {
      throw new Error("no");
    },
    getOwnPropertyDescriptor() {
      throw new Error("no");
    },
  });
  const halfHostile = new Proxy(new Error("x"), {
    get() {
      throw new Error("no");
    },
  });
  const revoked = Proxy.revocable({}, {});
  revoked.revoke();
  const odd: readonly [string, unknown, RegExp][] = [
    ["a text", "boom", /^boom$/],
    ["null", null, /^null was thrown$/],
    ["undefined", undefined, /^undefined was thrown$/],
    ["0", 0, /^0 was thrown$/],
    ["a bigint", 5n, /^5 was thrown$/],
    ["a symbol", Symbol("s"), /^Symbol\(s\) was thrown$/],
    ["a function", () => 1, /^a function was thrown$/],
    ["an object", { a: 1 }, /^an object that is no error was thrown$/],
    ["an array", [1], /^an object/],
    ["a promise", Promise.resolve(), /^an object/],
    ["a hostile proxy", hostile, /./],
    ["a proxy of an error that throws on get", halfHostile, /^$/],
    ["a revoked proxy", revoked.proxy, /./],
    [
      "an error with getters that throw",
      Object.defineProperties(new Error("x"), {
        message: {
          get() {
            throw new Error("no");
          },
        },
        a: {
          enumerable: true,
          get() {
            throw new Error("no");
          },
        },
      }),
      /^$/,
    ],
    [
      "an error with odd parts",
      Object.assign(new Error("x"), {
        name: 5,
        stack: { a: 1 },
        code: Symbol("c"),
        message: {
          toString() {
            throw new Error("no");
          },
        },
      }),
      /^$/,
    ],
    ["an object without prototype", Object.create(null), /^an object/],
  ];
  for (const [name, thrown, message] of odd) {
    it(`H073 may be ${name}`, () => {
      const failure = stored(thrown);
      assert.match(failure.message, message);
      assert.equal(typeof failure.name, "string");
      assert.ok(errorOf(failure) instanceof Error);
    });
  }

  it("H073 is kept when it was no error", () => {
    assert.equal(decodePayload(stored("boom").thrown ?? ""), "boom");
    assert.deepEqual(back({ a: 1n }).thrown, { a: 1n });
    assert.equal(stored(new Error("x")).thrown, undefined);
  });

  it("H073 H077 is stored, whatever it is", () => {
    fc.assert(
      fc.property(
        fc.oneof(
          fc.anything({ withBigInt: true, withDate: true, withMap: true, withSet: true, withSparseArray: true }),
          storable,
          storableError,
        ),
        (thrown) => {
          const failure = failureOf(thrown);
          const text = JSON.stringify(failure);
          // What databases refuse, and what separates texts in a flush; DEL and beyond are like any other.
          assert.ok(![...text].some((character) => character < " "));
          assert.ok(text.isWellFormed());
          assert.deepEqual(JSON.parse(text), failure);
          assert.ok(errorOf(failure) instanceof Error);
        },
      ),
    );
  });

  it("H077 keeps NUL and lone surrogates in messages", () => {
    assert.equal(back(new Error("a\u0000b\ud800")).message, "a\u0000b\ud800");
  });

  it("is bounded in every direction", () => {
    const error = new Error("m".repeat(1_000_000));
    error.stack = "s".repeat(1_000_000);
    Object.assign(error, {
      name: "n".repeat(10_000),
      big: "b".repeat(1_000_000),
      small: 1,
      fn() {},
      many: Array.from({ length: 1e6 }, () => 0),
    });
    for (let index = 0; index < 1_000; index++) Object.assign(error, { [`field${index}`]: index });
    const failure = stored(error);
    assert.ok(failure.message.length <= 32_768 && /1000000 characters in all\]$/.test(failure.message));
    assert.ok((failure.stack?.length ?? 0) <= 8_192);
    const fields = decodePayload(failure.fields ?? "") as Record<string, unknown>;
    assert.equal(fields.small, 1);
    assert.match(String(fields.big), /not recorded: too large/);
    assert.match(String(fields.fn), /not recorded: \$\.fn is a function/);
    assert.match(String(fields.many), /not recorded: it is too large/);
    assert.ok(Object.keys(fields).length <= 101);
    let chain = error;
    for (let level = 0; level < 30; level++)
      chain = Object.assign(new Error("m".repeat(1e6), { cause: chain }), { big: "b".repeat(30_000) });
    assert.ok(JSON.stringify(failureOf(chain)).length < 1_500_000);
  });

  it("is readable when its parts are malformed", () => {
    const again = errorOf({ name: "X", message: "m", fields: "~[[broken", thrown: "{", cause: { name: "Y", message: "n", thrown: "" } });
    assert.equal(again.message, "m");
    assert.equal(again.cause, undefined);
  });
});

describe("whether another attempt is in vain", () => {
  const inVain: readonly unknown[] = [
    new NonRetryableError("x"),
    new Fatal("x"),
    new PayloadError("x", { code: "PAYLOAD_TOO_LARGE" }),
    new ValidationError("x", { violations: [] }),
    new ApiError("x", { code: "INSTANCE_NOT_FOUND" }),
    new WovyrError("x", { code: "INVALID_DURATION" }),
  ];
  for (const error of inVain) {
    it(`H072 is said of ${(error as Error).name} ${(error as WovyrError).code}, also across processes`, () => {
      assert.equal(isNonRetryable(error), true);
      assert.equal(isNonRetryable(back(error)), true);
    });
  }
  const worthwhile = [
    new Error("x"),
    new TypeError("x"),
    new OutOfStock("a", 1),
    new RetryAfterError("x", "1s"),
    new TimeoutError("x"),
    new ApiError("x", { code: "OVERLOADED" }),
    Object.assign(new Error("x"), { code: "INVALID_INPUT" }),
    "NonRetryableError",
    null,
    undefined,
  ];
  for (const error of worthwhile) {
    it(`is not said of ${String(error)}`, () => {
      assert.equal(isNonRetryable(error), false);
      assert.equal(isNonRetryable(back(error)), false);
    });
  }
  it("H073 is not said of what cannot be read, and does not throw", () => {
    const proxy = new Proxy(
      {},
      {
        get() {
          throw new Error("no");
        },
      },
    );
    assert.equal(isNonRetryable(proxy), false);
  });
});
