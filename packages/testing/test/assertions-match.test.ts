import assert from "node:assert/strict";
import { test } from "node:test";
import { matches } from "@wovyr/testing";

const yes = (actual: unknown, shape: unknown) => assert.equal(matches(actual, shape), true);
const no = (actual: unknown, shape: unknown) => assert.equal(matches(actual, shape), false);

test("objects match in part, at any depth", () => {
  yes({ a: 1, b: { c: 2, d: 3 } }, { b: { c: 2 } });
  yes({ a: 1 }, {});
  no({ a: 1 }, { b: 1 });
  no({ a: { b: 1 } }, { a: { b: 2 } });
  no(undefined, {});
  no("text", { length: 4 });
  yes({}, { a: undefined });
  no({ a: null }, { a: undefined });
  yes(Object.assign(Object.create(null), { a: 1 }), { a: 1 });
});

test("arrays match as a whole, their items in part", () => {
  yes([{ a: 1, b: 2 }, 2], [{ a: 1 }, 2]);
  no([1, 2], [1]);
  no([1], [1, 2]);
  no([1, 2], [2, 1]);
  no({ 0: 1, length: 1 }, [1]);
});

test("NaN is NaN, and 0 is -0", () => {
  yes(Number.NaN, Number.NaN);
  no(Number.NaN, 0);
  no("NaN", Number.NaN);
  yes(-0, 0);
  yes(3n, 3n);
  no(3, 3n);
});

test("text matches a regular expression, whatever state that is in", () => {
  const shape = /b+/g;
  for (let time = 0; time < 3; time++) yes("abbb", shape);
  no("aaa", shape);
  no(5, /5/);
  yes(/a/g, /a/g);
  no(/a/g, /a/);
});

test("a function is a question, and one that throws is answered with no", () => {
  yes(5, (value: number) => value > 4);
  no(3, (value: number) => value > 4);
  yes({ a: [1, 2] }, { a: (value: unknown[]) => value.length === 2 });
  no(undefined, (value: { a: number }) => value.a === 1);
});

test("dates are their times, maps match by keys, sets as a whole", () => {
  yes(new Date(5), new Date(5));
  no(new Date(5), new Date(6));
  no(5, new Date(5));
  yes(new Date(Number.NaN), new Date(Number.NaN));
  const map = new Map<unknown, unknown>([
    ["a", { x: 1, y: 2 }],
    ["b", 2],
    [{ k: 1 }, 3],
  ]);
  yes(map, new Map([["a", { x: 1 }]]));
  yes(map, new Map([[{ k: 1 }, 3]]));
  no(map, new Map([["c", 1]]));
  no(map, new Map([["b", 3]]));
  yes(new Set([1, 2]), new Set([2, 1]));
  no(new Set([1, 2, 3]), new Set([2, 1]));
  no([1], new Set([1]));
  // The first wanted item fits both; the second only the first.
  yes(new Set([{ a: 1, b: 1 }, { a: 1 }]), new Set([{ a: 1 }, { b: 1 }]));
  no(new Set([{ a: 1 }, { c: 1 }]), new Set([{ a: 1 }, { b: 1 }]));
});

test("an instance of a class wants one of the same class; a plain object is content with its fields", () => {
  class Money {
    readonly amount: number;
    constructor(amount: number) {
      this.amount = amount;
    }
    get double() {
      return this.amount * 2;
    }
  }
  yes(new Money(5), new Money(5));
  no(new Money(5), new Money(6));
  no({ amount: 5 }, new Money(5));
  yes(new Money(5), { amount: 5, double: 10 });
  yes(new RangeError("no"), new RangeError("no"));
  no(new Error("no"), new RangeError("no"));
  yes(Object.assign(new Error("no", { cause: new Error("why") }), { code: 7 }), { message: /n/, code: 7, cause: { message: "why" } });
  no(new Error("no"), new Error("no", { cause: new Error("why") }));
  yes(new URL("http://a/b"), new URL("http://a/b"));
  no(new URL("http://a/b"), new URL("http://a/c"));
  yes(Uint8Array.of(1, 2), Uint8Array.of(1, 2));
  no(Uint8Array.of(1, 2), Uint8Array.of(1, 3));
});

test("cyclic values and shapes are compared, and end", () => {
  type Node = { name: string; next?: Node; more?: number };
  const ring = (name: string): Node => {
    const node: Node = { name, more: 1 };
    node.next = { name: `${name}2`, next: node };
    return node;
  };
  yes(ring("a"), ring("a"));
  no(ring("a"), ring("b"));
  const self: Node = { name: "a" };
  self.next = self;
  const unrolled: Node = { name: "a" };
  unrolled.next = { name: "a", next: unrolled };
  yes(self, unrolled);
  yes(unrolled, self);
  const list: unknown[] = [];
  list.push(list);
  yes(list, list);
});
