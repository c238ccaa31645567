import assert from "node:assert/strict";
import { describe, it } from "node:test";
import fc from "fast-check";
import { digest } from "../../src/model/digest.ts";
import { decodePayload, encodePayload } from "../../src/model/payload.ts";
import { storable, storableError } from "./storable.ts";

function shuffled(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(shuffled);
  if (typeof value !== "object" || value === null || Object.getPrototypeOf(value) !== Object.prototype) return value;
  return Object.fromEntries(
    Object.entries(value)
      .reverse()
      .map(([key, item]) => [key, shuffled(item)]),
  );
}

describe("a digest", () => {
  it("is the same before and after the value was stored", () => {
    fc.assert(
      fc.property(storable, (value) => assert.equal(digest(decodePayload(encodePayload(value))), digest(value))),
      { numRuns: 2_000 },
    );
  });

  it("is the same before and after an error was stored, whatever in it was not recorded", () => {
    fc.assert(
      fc.property(storableError, storable, (error, extra) => {
        const value = { error, list: [error], extra };
        Object.assign(error, {
          owner: value,
          fn() {},
          big: Array.from({ length: 1_500 }, () => 0),
          more: Array.from({ length: 1_500 }, () => 1),
        });
        assert.equal(digest(decodePayload(encodePayload(value))), digest(value));
      }),
    );
  });

  it("does not depend on the order of keys", () => {
    fc.assert(fc.property(storable, (value) => assert.equal(digest(shuffled(value)), digest(value))));
  });

  it("is 14 characters of base 36", () => {
    fc.assert(fc.property(storable, (value) => assert.match(digest(value), /^[0-9a-z]{14}$/)));
  });

  it("never changes between releases", () => {
    assert.equal(digest({ id: "order-42", total: 129.5, lines: [{ sku: "a", n: 2 }], paid: null }), "1ijs3sv1d9v5d7");
  });

  it("tells different values apart", () => {
    const now = new Date(0);
    const values: unknown[] = [
      1,
      "1",
      1n,
      true,
      "true",
      false,
      null,
      "null",
      undefined,
      0,
      "",
      Number.NaN,
      "NaN",
      Number.POSITIVE_INFINITY,
      Number.NEGATIVE_INFINITY,
      0.1,
      1e21,
      2 ** 31,
      -(2 ** 31),
      2 ** 32,
      "a",
      "b",
      "ab",
      "ba",
      "a\u0000",
      [],
      {},
      [[]],
      [{}],
      [1],
      [1, 2],
      [2, 1],
      ["1"],
      [undefined],
      [undefined, undefined],
      Object.assign(new Array(2), { 1: 1 }),
      [undefined, 1],
      [null],
      { a: 1 },
      { a: "1" },
      { b: 1 },
      { a: 1, b: 2 },
      { a: 2, b: 1 },
      { a: { b: 1 } },
      { a: {}, b: 1 },
      { a: null },
      now,
      now.toISOString(),
      0,
      new Date(1),
      new Date(Number.NaN),
      new Map(),
      new Map([["a", 1]]),
      new Map([
        ["a", 1],
        ["b", 2],
      ]),
      new Map([
        ["b", 2],
        ["a", 1],
      ]),
      new Set(),
      new Set(["a", 1]),
      new Set([1, "a"]),
      /a/,
      /a/g,
      "/a/",
      new URL("https://a.b/"),
      "https://a.b/",
      new Uint8Array([1]),
      new Int8Array([1]),
      new Uint8Array([1, 0]),
      new Uint8Array([1]).buffer,
      new Uint16Array([1]),
      "AQ==",
      new Error("a"),
      new Error("b"),
      new TypeError("a"),
      new Error("a", { cause: 1 }),
      Object.assign(new Error("a"), { code: "A" }),
      { name: "Error", message: "a" },
      Symbol.iterator,
    ];
    const distinct = new Map(values.map((value) => [digest(value), value]));
    assert.equal(distinct.size, values.length - 1, "0 is listed twice, all others differ");
  });

  it("does not collide over half a million like values", () => {
    const seen = new Set<string>();
    let count = 0;
    for (let i = 0; i < 700; i++) {
      for (let j = 0; j < 700; j++, count++) seen.add(digest({ id: `order-${i}`, at: j, tags: [i ^ j] }));
    }
    for (let bit = 0; bit < 32; bit++)
      for (let other = 0; other < 32; other++, count++) seen.add(digest([1 << bit, (1 << other) >>> 0, "x"]));
    assert.equal(seen.size, count);
  });

  it("leaves out what does not count", () => {
    assert.equal(digest({ a: 1, b: undefined }), digest({ a: 1 }));
    assert.equal(digest(-0), digest(0));
    assert.equal(digest(Object.assign(Object.create(null), { a: 1 })), digest({ a: 1 }));
    assert.equal(digest(Buffer.from("abc")), digest(new Uint8Array([97, 98, 99])));
    const [one, other] = [new Error("x"), new Error("x")];
    other.stack = "elsewhere";
    assert.equal(digest(one), digest(other));
  });

  it("H076 comes of every value without harm, also of one that cannot be stored", () => {
    const cycle: unknown[] = [];
    cycle.push(cycle, cycle);
    const hostile = new Proxy(
      {},
      {
        getPrototypeOf() {
          throw new Error("no");
        },
      },
    );
    const getter = Object.defineProperty({}, "a", {
      enumerable: true,
      get() {
        throw new Error("no");
      },
    });
    let deep: unknown = 1;
    for (let level = 0; level < 100_000; level++) deep = [deep];
    const errors = [new Error("a"), new Error("b")] as (Error & { peers?: unknown })[];
    for (const error of errors) error.peers = errors;
    const started = Date.now();
    for (const value of [
      cycle,
      hostile,
      [hostile],
      getter,
      deep,
      () => 1,
      Symbol("x"),
      Promise.resolve(),
      new WeakMap(),
      errors,
      Object.assign([], { length: 4e9 }),
    ]) {
      assert.match(digest(value), /^[0-9a-z]{14}$/);
      assert.equal(digest(value), digest(value));
    }
    assert.ok(Date.now() - started < 30_000);
  });
});
