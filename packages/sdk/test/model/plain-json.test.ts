import assert from "node:assert/strict";
import { describe, it } from "node:test";
import fc from "fast-check";
import { decodePayload, encodePayload } from "../../src/model/payload.ts";
import { toPlainJson } from "../../src/model/plain-json.ts";
import { storable, storableError } from "./storable.ts";

describe("the plain view of a value", () => {
  const table: readonly (readonly [unknown, unknown])[] = [
    [null, null],
    [undefined, null],
    [{ a: undefined, b: [undefined] }, { b: [null] }],
    [Number.NaN, "NaN"],
    [Number.POSITIVE_INFINITY, "Infinity"],
    [Number.NEGATIVE_INFINITY, "-Infinity"],
    [10n ** 30n, "1000000000000000000000000000000"],
    [new Date(0), "1970-01-01T00:00:00.000Z"],
    [new Date(Number.NaN), "Invalid Date"],
    [/a"b/g, '/a"b/g'],
    [new URL("https://a.b/c?d"), "https://a.b/c?d"],
    [
      new Map<unknown, unknown>([
        ["a", 1n],
        ["b", undefined],
      ]),
      { a: "1", b: null },
    ],
    [
      new Map<unknown, unknown>([
        [1, "a"],
        ["b", 2],
      ]),
      [
        [1, "a"],
        ["b", 2],
      ],
    ],
    [new Map(), {}],
    [new Set([1, 1n]), [1, "1"]],
    [new Uint8Array([1, 2, 255]), "AQL/"],
    [Buffer.from("hello"), "aGVsbG8="],
    [new Uint16Array([1]).buffer, "AQA="],
    [new Uint8Array(100_000), Buffer.alloc(100_000).toString("base64")],
    [Object.assign(new Array(2), { 1: 1 }), [null, 1]],
    [
      Object.assign(new RangeError("x", { cause: "y" }), { code: "E", status: 1n }),
      { name: "RangeError", message: "x", code: "E", status: "1", cause: "y" },
    ],
    [() => 1, null],
    [new WeakMap(), null],
  ];
  for (const [value, expected] of table) {
    it(`H074 is as documented: ${Object.prototype.toString.call(value)} ${String(value).slice(0, 20)}`, () =>
      assert.deepEqual(toPlainJson(value), expected));
  }

  it("H081 keeps own __proto__ as data", () => {
    const view = toPlainJson({ list: [JSON.parse('{"__proto__":{"x":1}}')], map: new Map([["__proto__", { x: 1 }]]) });
    assert.equal(JSON.stringify(view), '{"list":[{"__proto__":{"x":1}}],"map":{"__proto__":{"x":1}}}');
    assert.equal(({} as { x?: number }).x, undefined);
  });

  it("H075 is JSON, the same before and after the value was stored", () => {
    fc.assert(
      fc.property(fc.oneof(storable, storableError), (value) => {
        const view = toPlainJson(value);
        assert.equal(JSON.stringify(toPlainJson(decodePayload(encodePayload(value)))), JSON.stringify(view));
        JSON.parse(JSON.stringify(view));
      }),
    );
  });

  it("ends, whatever it is given", () => {
    const cycle: unknown[] = [];
    cycle.push(cycle);
    assert.doesNotThrow(() => toPlainJson(cycle));
  });
});
