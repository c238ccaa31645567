import assert from "node:assert/strict";
import { Readable } from "node:stream";
import { describe, it } from "node:test";
import vm from "node:vm";
import fc from "fast-check";
import { sleep } from "../../src/effects/sleep.ts";
import { ActivityError, PayloadError } from "../../src/model/errors.ts";
import { decodePayload, defaultPayloadLimit, encodePayload, utf8Length } from "../../src/model/payload.ts";
import { assertSame } from "./same.ts";
import { storable, storableError } from "./storable.ts";

const roundTrip = (value: unknown) => decodePayload(encodePayload(value));

const refusalPath = "(long)";

function sparse(length: number, entries: Record<number, unknown> = {}): unknown[] {
  return Object.assign(new Array(length), entries);
}

function own(entries: readonly (readonly [string, unknown])[], prototype: object | null = Object.prototype): object {
  const object = Object.create(prototype);
  for (const [key, value] of entries) Object.defineProperty(object, key, { value, enumerable: true, writable: true, configurable: true });
  return object;
}

function nested(depth: number): unknown {
  let value: unknown = 1;
  for (let level = 0; level < depth; level++) value = level % 2 ? [value] : { a: value };
  return value;
}

function refusal(value: unknown): PayloadError {
  try {
    encodePayload(value, { what: "the input of activity reserve" });
  } catch (error) {
    assert.ok(error instanceof PayloadError, String(error));
    return error;
  }
  throw new assert.AssertionError({ message: "it was stored" });
}

describe("a value that is stored and read", () => {
  const table: Record<string, unknown> = {
    "a big bigint": 10n ** 30n,
    "a negative bigint": -1n,
    "a date": new Date(1_234_567_890_123),
    "an invalid date": new Date(Number.NaN),
    "a map": new Map<unknown, unknown>([
      ["a", 1],
      [{ k: 1 }, [2]],
      [undefined, null],
    ]),
    "a set": new Set([1, "1", { a: 1 }]),
    bytes: new Uint8Array([0, 1, 255]),
    floats: new Float32Array([1.5, Number.NaN, -0]),
    "64-bit integers": new BigInt64Array([1n, -1n]),
    "an array buffer": new Uint8Array([1, 2, 3]).buffer,
    undefined: undefined,
    "undefined in an object": { a: undefined, b: 1 },
    "undefined in an array": [undefined, 1, undefined],
    NaN: Number.NaN,
    Infinity: Number.POSITIVE_INFINITY,
    "-Infinity in an object": { a: Number.NEGATIVE_INFINITY },
    "-0": -0,
    "-0 in an array": [-0, 0],
    "a regular expression": /a[/]b"</gimsuy,
    "a URL": new URL("https://user@example.com:8080/a%20b?c=d#e"),
    "a sparse array": sparse(3, { 1: "x" }),
    "an array with many holes": sparse(1_000, { 999: "x" }),
    "an array of holes": sparse(3),
    "an object without prototype": own([["a", 1]], null),
    "an empty object without prototype": own([], null),
    "nested 100 deep": nested(100),
    "nested 100 deep with a date": [nested(100), new Date(0)],
    "1e21": 1e21,
    "5e-324": 5e-324,
    "a lone surrogate": "\ud800",
    "a lone surrogate in a key": { "\udc00": 1 },
    "a pair of surrogates": "😀",
    "a NUL": "a\u0000b",
    "a NUL in a key": { "\u0000": "\u0000" },
    "a tilde": "~",
    "line separators": "\u2028\u2029<script>",
    "own __proto__": own([["__proto__", { x: 1 }]]),
    "own __proto__ beside a date": [
      own([
        ["__proto__", { at: new Date(0) }],
        ["b", 1n],
      ]),
    ],
    "own __proto__ without prototype": own([["__proto__", 1]], null),
    "own constructor": { constructor: { prototype: { x: 1 } } },
    "own constructor beside a bigint": { constructor: { prototype: { x: 1n } } },
    // biome-ignore lint/suspicious/noThenProperty: data may have any key
    "own toString and then": { toString: "x", then: 1, valueOf: null, at: 1n },
    "our own mark": { $type: "Error", "~standard": 1 },
    "text that looks like rich text": '~[["Date","x"]]',
    "an array that looks like a tag": [["Error", 1], ["Date", ""], -1, -2, -7],
    "the same with a bigint": [["Error", 1], ["Date", ""], -1, -2, -7, 1n],
    "an empty text": "",
    "an empty array": [],
    null: null,
  };
  for (const [name, value] of Object.entries(table)) {
    it(`H074 is the same: ${name}`, () => {
      const text = encodePayload(value);
      assertSame(decodePayload(text), value);
      assert.equal(encodePayload(decodePayload(text)), text, "and is written the same way again");
    });
  }

  it("H074 is the same, whatever it is", () => {
    fc.assert(
      fc.property(storable, (value) => assertSame(roundTrip(value), value)),
      { numRuns: 2_000 },
    );
  });

  it("H074 keeps what deep equality does not see: holes, the sign of 0, the order of maps, own keys", () => {
    const map = new Map([
      [2, 2],
      [1, 1],
    ]);
    const back = roundTrip({ holes: sparse(2, { 1: undefined }), zero: [-0], map }) as {
      holes: unknown[];
      zero: number[];
      map: Map<number, number>;
    };
    assert.deepEqual(Object.keys(back.holes), ["1"]);
    assert.ok(Object.is(back.zero[0], -0));
    assert.deepEqual([...back.map.keys()], [2, 1]);
  });

  it("H074 comes back as Uint8Array from a Buffer, with the bytes that were seen and no others", () => {
    const pool = new Uint8Array(100_000).fill(7);
    const text = encodePayload({ buffer: Buffer.from("abc"), view: pool.subarray(10, 12), wide: new Float64Array(pool.buffer, 8, 1) });
    assert.ok(text.length < 500, "the whole buffer was stored");
    const back = decodePayload(text) as { buffer: Uint8Array; view: Uint8Array; wide: Float64Array };
    assert.deepStrictEqual(back.buffer, new Uint8Array([97, 98, 99]));
    assert.deepStrictEqual(back.view, new Uint8Array([7, 7]));
    assert.equal(back.view.buffer.byteLength, 2);
    assert.equal(back.wide.length, 1);
  });

  it("H074 H073 is taken from another realm like one of this", () => {
    const foreign = vm.runInNewContext(`({
      object: { a: 1 }, list: [1, [2]], date: new Date(5), map: new Map([["a", 1n]]), set: new Set([1]), bytes: new Uint8Array([1, 2]),
      pattern: /x/g, error: new TypeError("foreign"),
    })`);
    const { error, ...back } = roundTrip(foreign) as { error: Error };
    assert.deepStrictEqual(back, {
      object: { a: 1 },
      list: [1, [2]],
      date: new Date(5),
      map: new Map([["a", 1n]]),
      set: new Set([1]),
      bytes: new Uint8Array([1, 2]),
      pattern: /x/g,
    });
    assert.ok(error instanceof TypeError);
    assert.equal(error.message, "foreign");
    assert.equal(encodePayload(vm.runInNewContext("({ a: [1] })")), '{"a":[1]}');
  });

  it("is plain JSON when the value is plain", () => {
    const plain = fc
      .jsonValue({ noUnicodeString: false })
      .filter((value) => !JSON.stringify(value, (_, item) => (Object.is(item, -0) ? "minus" : item)).includes("minus"));
    fc.assert(fc.property(plain, (value) => assert.equal(encodePayload(value), JSON.stringify(value))));
  });

  it("H036 is a fresh value on every reading", () => {
    for (const value of [{ a: [1] }, { at: new Date(0), map: new Map([["a", { b: 1 }]]) }]) {
      const text = encodePayload(value);
      const first = decodePayload(text) as Record<string, unknown>;
      (first.at as Date | undefined)?.setTime(5);
      (first.map as Map<string, unknown> | undefined)?.clear();
      (first.a as unknown[] | undefined)?.push(2);
      first.extra = 1;
      assert.deepStrictEqual(decodePayload(text), value);
    }
  });

  it("may refer to one object more than once; it comes back written out", () => {
    const shared = { at: new Date(0) };
    const back = roundTrip({ first: shared, second: shared, list: [shared, shared] }) as Record<"first" | "second", object>;
    assert.deepStrictEqual(back, { first: shared, second: shared, list: [shared, shared] });
    assert.notEqual(back.first, back.second);
  });

  it("H077 is text without NUL, control characters or lone surrogates", () => {
    fc.assert(
      fc.property(storable, (value) => {
        const text = encodePayload(value);
        assert.ok(text.isWellFormed());
        // What databases refuse, and what separates texts in a flush; DEL and beyond are like any other.
        assert.ok(![...text].some((character) => character < " "));
      }),
    );
  });

  it("H071 keeps errors: name, message, code, cause, own fields", () => {
    const error = Object.assign(new RangeError("outer", { cause: new Error("inner", { cause: "text" }) }), {
      code: "E_OUTER",
      at: new Date(5),
    });
    const [back] = roundTrip([error]) as [RangeError & { code: string; at: Date }];
    assert.ok(back instanceof RangeError);
    assert.equal(back.message, "outer");
    assert.equal(back.code, "E_OUTER");
    assert.deepStrictEqual(back.at, new Date(5));
    assert.equal((back.cause as Error).message, "inner");
    assert.equal((back.cause as Error).cause, "text");
    assert.equal(back.stack, error.stack);
    const ours = roundTrip(new ActivityError("failed", { activity: "a", attempts: 3, cause: error })) as ActivityError;
    assert.ok(ours instanceof ActivityError);
    assert.equal(ours.attempts, 3);
  });

  it("H071 writes errors the same way again after a round trip", () => {
    fc.assert(
      fc.property(storableError, (error) => {
        const text = encodePayload([error]);
        assert.equal(encodePayload(decodePayload(text)), text);
      }),
    );
  });

  it("H076 keeps an error whose fields cannot be stored, with a note instead of them", () => {
    const error = Object.assign(new Error("x"), { fn() {}, good: 1, list: [{ promise: Promise.resolve() }] });
    Object.assign(error, { self: error });
    const back = roundTrip({ error }) as { error: Record<string, unknown> };
    assert.equal(back.error.good, 1);
    assert.equal(back.error.fn, "[not recorded: $.fn is a function]");
    assert.equal(back.error.list, "[not recorded: $.list[0].promise is a promise]");
    assert.match(String(back.error.self), /cycle/);
  });
});

describe("a value that cannot be stored", () => {
  class Invoice {
    total = 1;
  }
  class Money extends Map {}
  const cycle: Record<string, unknown> = { list: [] };
  (cycle.list as unknown[]).push({ cycle });
  const deepCycle = new Map<string, unknown>();
  deepCycle.set("me", new Set([deepCycle]));
  const table: readonly [name: string, value: unknown, path: string, says: RegExp][] = [
    ["a function", { a: [1, 2, 3, { fn() {} }] }, "$.a[3].fn", /is a function/],
    ["a function alone", () => 1, "$", /is a function/],
    ["an object with toJSON", { a: { toJSON: () => 1 } }, "$.a.toJSON", /is a function/],
    ["a symbol", [Symbol("x")], "$[0]", /is a symbol/],
    ["a symbol as key", { a: { [Symbol("x")]: 1 } }, "$.a", /symbol as a key/],
    ["a cycle", cycle, "$.list[0].cycle", /cycle/],
    ["a cycle through map and set", deepCycle, '$<"me"><item 0>', /cycle/],
    ["a promise", { "odd key": Promise.resolve(1) }, '$["odd key"]', /is a promise.*activity/],
    [
      "a thenable of a class",
      {
        a: new (class Query {
          // biome-ignore lint/suspicious/noThenProperty: that is what is refused
          then() {}
        })(),
      },
      "$.a",
      /is a promise/,
    ],
    ["a node stream", { a: Readable.from([]) }, "$.a", /is a stream/],
    ["a web stream", { a: new ReadableStream() }, "$.a", /is a stream/],
    ["a generator", [(async function* () {})()], "$[0]", /generator.*forgot `yield\*`/],
    ["an instance", { a: { b: new Invoice() } }, "$.a.b", /instance of Invoice.*\{ \.\.\.value \}/],
    ["an instance of a subclass of Map", { a: new Money() }, "$.a", /instance of Money/],
    ["an instance of a subclass of Array", [new (class List extends Array {})()], "$[0]", /instance of List/],
    ["a boxed number", [Object(1)], "$[0]", /instance of Number/],
    ["a WeakMap", { a: new WeakMap() }, "$.a", /instance of WeakMap/],
    ["a DataView", { a: new DataView(new ArrayBuffer(1)) }, "$.a", /instance of DataView/],
    ["shared memory", { a: new SharedArrayBuffer(1) }, "$.a", /instance of SharedArrayBuffer/],
    ["an array with named properties", { m: "abc".match(/b/) }, "$.m", /array with a property "index"/],
    ["a map key", new Map([[() => 1, 1]]), "$<key 0>", /is a function/],
    ["a map value", new Map([["k", () => 1]]), '$<"k">', /is a function/],
    ["a set item", new Set([1, () => 1]), "$<item 1>", /is a function/],
    [
      "a class that poses as a Date",
      {
        a: new (class {
          get [Symbol.toStringTag]() {
            return "Date";
          }
        })(),
      },
      "$.a",
      /instance/,
    ],
    [
      "a getter that throws",
      {
        a: Object.defineProperty({}, "b", {
          enumerable: true,
          get() {
            throw new Error("locked");
          },
        }),
      },
      "$.a.b",
      /cannot be read \(locked\)/,
    ],
    [
      "a proxy that throws",
      {
        a: new Proxy(
          {},
          {
            ownKeys() {
              throw new Error("no");
            },
          },
        ),
      },
      "$.a",
      /cannot be read/,
    ],
    ["a revoked proxy", [revoked()], "$[0]", /cannot be read/],
    ["too deep", nested(1_001), refusalPath, /nested deeper than 1000/],
    ["far too deep", nested(200_000), refusalPath, /nested deeper than 1000/],
  ];
  it("an effect is refused by a code of its own, with its path and its line", () => {
    const error = refusal({ a: [sleep("1s")] });
    assert.equal(error.code, "EFFECT_NOT_YIELDED");
    assert.equal(error.path, "$.a[0]");
    assert.match(
      error.message,
      /^the input of activity reserve cannot be stored: \$\.a\[0\] is an effect that was not run: sleep\(…\), made at \/.*payload\.test\.ts:\d+:\d+; write `yield\* sleep\(…\)` and pass its result$/,
    );
  });
  for (const [name, value, path, says] of table) {
    it(`H076 is refused with its path: ${name}`, () => {
      const error = refusal(value);
      assert.equal(error.code, "PAYLOAD_UNSERIALIZABLE");
      if (path !== refusalPath) assert.equal(error.path, path);
      assert.match(error.message, says);
      assert.match(error.message, /^the input of activity reserve cannot be stored: \$/);
      assert.ok(error.message.length < 1_000);
    });
  }

  it("H074 is refused with its class beside a rich value too", () => {
    assert.equal(refusal({ at: new Date(), a: new Invoice() }).path, "$.a");
  });

  it("H076 is refused also when no stack is left", () => {
    const atTheEnd = (): PayloadError => {
      try {
        return atTheEnd();
      } catch {
        return refusal(nested(1_001));
      }
    };
    assert.ok(atTheEnd() instanceof PayloadError);
  });

  it("is stored at the greatest depth", () => {
    assert.deepStrictEqual(roundTrip(nested(1_000)), nested(1_000));
    assert.doesNotThrow(() => roundTrip([nested(999), 1n]));
  });
});

function revoked(): object {
  const { proxy, revoke } = Proxy.revocable({}, {});
  revoke();
  return proxy;
}

describe("a value that is too large", () => {
  const sized = (bytes: number) => "x".repeat(bytes - 2);

  it("H079 is stored up to the limit and refused one byte above it", () => {
    const limit = 1_024 * 1_024;
    for (const bytes of [limit - 1, limit]) assert.equal(encodePayload(sized(bytes), { limit }).length, bytes);
    for (const bytes of [limit + 1, 50 * limit]) {
      assert.throws(
        () => encodePayload(sized(bytes), { limit, what: "the output of activity render" }),
        (error: PayloadError) =>
          error.code === "PAYLOAD_TOO_LARGE" &&
          error.message === `the output of activity render is too large to be stored: ${bytes} bytes, and the limit is ${limit}`,
      );
    }
  });

  it("H079 is measured in bytes of UTF-8", () => {
    for (const text of ["é", "€", "😀", "aé€😀"]) {
      assert.equal(utf8Length(text.repeat(50)), Buffer.byteLength(text.repeat(50)));
      const bytes = Buffer.byteLength(JSON.stringify(text.repeat(50)));
      assert.doesNotThrow(() => encodePayload(text.repeat(50), { limit: bytes }));
      assert.throws(() => encodePayload(text.repeat(50), { limit: bytes - 1 }), { code: "PAYLOAD_TOO_LARGE" });
    }
  });

  it("H079 has 2 MiB by default, for rich values too", () => {
    assert.doesNotThrow(() => encodePayload(sized(defaultPayloadLimit)));
    assert.throws(() => encodePayload(sized(defaultPayloadLimit + 1)), { code: "PAYLOAD_TOO_LARGE" });
    assert.throws(() => encodePayload(new Uint8Array(defaultPayloadLimit)), { code: "PAYLOAD_TOO_LARGE" });
  });

  it("H079 is refused before it is written out when it is small in memory only", () => {
    let bomb: unknown = ["lol"];
    for (let level = 0; level < 40; level++) bomb = [bomb, bomb];
    const started = Date.now();
    const text = "x".repeat(1_000_000);
    const parts = [text, { [text]: 1 }, new Uint8Array(1_000_000), new Error(text)];
    const many = parts.map((part) => Array.from({ length: 2_000_000 }, () => part));
    for (const value of [bomb, [bomb, 1n], Object.assign([], { length: 4_000_000_000 }), ...many]) {
      assert.throws(() => encodePayload(value), { code: "PAYLOAD_TOO_LARGE" });
    }
    assert.ok(Date.now() - started < 20_000);
  });
});

describe("text that was not written by encodePayload", () => {
  const malformed = [
    "",
    "{",
    "undefined",
    "~",
    "~{}",
    "~[]",
    "~null",
    '~"x"',
    "~-2",
    "~-7",
    "~-8",
    "~5",
    "~[[5]]",
    "~[[0]]",
    "~[[-7,4294967295]]",
    "~[[1,1],[2],3]",
    "~[[1],[0]]",
    "~[[0.5],1]",
    '~[["Nope",1],1]',
    '~[["Date",1],"2020"]',
    '~[["Date",["x"]]]',
    '~[["URL","not a url"]]',
    '~[["RegExp","("]]',
    '~[["BigInt","x"]]',
    '~[["Uint8Array",1],5]',
    '~[["Uint8Array",1],["Set"]]',
    '~[["Uint8Array",1,1000000000,5],["ArrayBuffer","AAAA"]]',
    '~[["Float64Array",1],["ArrayBuffer","AAAA"]]',
    '~[["Object",1],5]',
    '~[["Temporal.Instant","2020-01-01T00:00Z"]]',
    '~[["DataView",1],["ArrayBuffer","AAAA"]]',
    '~[["Error",-1]]',
    '~[["Error",1],5]',
    '~[["Error",1],{"name":2},"x"]',
    '~[["Error",1],{"name":2,"message":2,"cause":3},"x",{}]',
    '~[["Error",{"name":"x"}]]',
    '~[["Fields",-1]]',
    '~[["Fields",1],{}]',
    '~[{"__proto__":1},{"x":2},1]',
    '~[["null","__proto__",1],1]',
    '~[["null","a"],1]',
    '~[["Map",1],1]',
    "~[[-2]]",
    "~[[-7,3,0,1],5]",
    '~[["Holes",1],5]',
    '~[["Holes",1],[2],-3]',
    '~[["Holes",1],[2],1000001]',
    '~[["Holes",1],[2,3,4],2,2,"x"]',
    `~[[${Array.from({ length: 4 }, (_, index) => 2 * index + 2)},1],300000${Array.from({ length: 4 }, (_, index) => `,["Holes",${2 * index + 3}],[1]`).join("")}]`,
    `~[${Array.from({ length: 3_000 }, (_, index) => `[${index + 1}]`).join(",")},1]`,
    `~[${Array.from({ length: 3_000 }, (_, index) => `["Set",${index + 1}]`).join(",")},1]`,
    `~[[${"1,".repeat(9)}1],[${"2,".repeat(9)}2],[${"3,".repeat(9)}3],"lol"]`,
    `~[[${Array.from({ length: 3 }, (_, index) => index + 1)}]${",[-7,900000]".repeat(3)}]`,
  ];
  for (const text of malformed) {
    it(`H081 is refused: ${text.slice(0, 60)}`, () => {
      assert.throws(
        () => decodePayload(text),
        (error: PayloadError) => error instanceof PayloadError && error.code === "PAYLOAD_MALFORMED",
      );
    });
  }

  it("H081 is refused when it is no text at all", () => {
    for (const value of [undefined, null, 5, {}]) assert.throws(() => decodePayload(value as never), { code: "PAYLOAD_MALFORMED" });
  });

  it("H081 reaches no prototype, and own keys survive as data", () => {
    const texts = [
      '{"__proto__":{"x":1}}',
      '{"constructor":{"prototype":{"x":1}}}',
      '[{"a":{"__proto__":{"x":1}}}]',
      '~[["Fields",1],[2,3],"__proto__",{"x":4},1]',
      '~[["Error",1],{"name":2,"message":2,"fields":3},"x",["Fields",4],[5,6],"__proto__",{"x":7},1]',
      '~[["Map",1,2],"__proto__",{"x":3},1]',
    ];
    for (const text of texts) {
      const value = decodePayload(text);
      assert.equal(({} as { x?: number }).x, undefined);
      assert.equal(Object.getPrototypeOf({}), Object.prototype);
      assert.deepStrictEqual(decodePayload(encodePayload(value)), value);
    }
    const parsed = decodePayload('{"__proto__":{"x":1}}') as Record<string, unknown>;
    assert.ok(Object.hasOwn(parsed, "__proto__"));
    assert.equal(parsed.x, undefined);
    const fields = decodePayload('~[["Fields",1],[2,3],"__proto__",{"x":4},1]') as { x?: unknown };
    assert.equal(fields.x, undefined);
    assert.equal(Object.getPrototypeOf(fields), Object.prototype);
  });

  it("H081 makes errors of known classes only, and runs no constructor", () => {
    const error = decodePayload('~[["Error",1],{"name":2,"message":3},"Date","m"]') as Error;
    assert.ok(error instanceof Error);
    assert.equal(Object.getPrototypeOf(error), Error.prototype);
    const named = decodePayload('~[["Error",1],{"name":2,"message":3},"__proto__","m"]') as Error;
    assert.equal(Object.getPrototypeOf(named), Error.prototype);
    assert.equal(named.name, "__proto__");
  });

  it("H081 is refused or harmless, however it is changed", () => {
    const edit = fc.tuple(
      fc.nat(),
      fc.constantFrom("0", "1", "-1", "-2", "-7", "9", '"Error"', '"Map"', '"Set"', '"Fields"', '"null"', "[", "]", "{}", "__proto__", ","),
    );
    fc.assert(
      fc.property(storable, fc.array(edit, { minLength: 1, maxLength: 4 }), (value, edits) => {
        let text = encodePayload([value, 1n]);
        for (const [at, piece] of edits) {
          const index = 1 + (at % text.length);
          text = text.slice(0, index) + piece + text.slice(index + (at % 3));
        }
        let decoded: unknown;
        try {
          decoded = decodePayload(text);
        } catch (error) {
          assert.ok(error instanceof PayloadError && error.code === "PAYLOAD_MALFORMED", String(error));
          return;
        }
        assert.doesNotThrow(() => encodePayload(decoded));
        assert.equal(Object.keys(Object.prototype).length, 0);
      }),
      { numRuns: 3_000 },
    );
  });
});
