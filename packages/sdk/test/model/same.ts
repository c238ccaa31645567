import assert from "node:assert/strict";
import { inspect } from "node:util";

/** Fails unless two values are the same in everything that a payload keeps: more than `deepStrictEqual` sees, and invalid dates too. */
export function assertSame(actual: unknown, expected: unknown): void {
  if (!same(actual, expected)) assert.fail(`expected ${inspect(expected, { depth: 9 })}, got ${inspect(actual, { depth: 9 })}`);
}

function same(a: unknown, b: unknown): boolean {
  if (typeof a !== "object" || typeof b !== "object" || a === null || b === null) return Object.is(a, b);
  if (Object.getPrototypeOf(a) !== Object.getPrototypeOf(b)) return false;
  if (a instanceof Date) return Object.is(a.getTime(), (b as Date).getTime());
  if (a instanceof RegExp || a instanceof URL) return String(a) === String(b);
  if (a instanceof Map) return same([...a], [...(b as Map<unknown, unknown>)]);
  if (a instanceof Set) return same([...a], [...(b as Set<unknown>)]);
  if (ArrayBuffer.isView(a)) return Buffer.from(bytesOf(a)).equals(bytesOf(b as ArrayBufferView));
  if (a instanceof ArrayBuffer) return Buffer.from(a).equals(Buffer.from(b as ArrayBuffer));
  const keys = Reflect.ownKeys(a);
  if (keys.length !== Reflect.ownKeys(b).length) return false;
  return keys.every(
    (key) => Object.hasOwn(b, key) && same((a as Record<PropertyKey, unknown>)[key], (b as Record<PropertyKey, unknown>)[key]),
  );
}

function bytesOf(view: ArrayBufferView): Uint8Array {
  return new Uint8Array(view.buffer, view.byteOffset, view.byteLength);
}
