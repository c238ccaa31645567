/**
 * A short fingerprint of a value, compared on replay.
 *
 * 1. Equal values have equal digests, before and after they were stored.
 * 2. It is a function of the value alone, never throws, and is bounded in time and depth, whatever it is given.
 * 3. It is fast and not cryptographic: 64 bits.
 *
 * The order of keys does not count, nor keys whose value is undefined, stacks of errors, the sign of 0, or the difference between `{}` and an object
 * without prototype. What cannot be stored counts by its kind only.
 */
import type { ErrorRecord } from "./error-record.ts";
import { maxDepth, Survey } from "./survey.ts";
import { kindOf, tagOf } from "./value-kind.ts";

const tags = {
  null: 1,
  undefined: 2,
  true: 3,
  false: 4,
  integer: 5,
  number: 6,
  text: 7,
  bigint: 8,
  object: 9,
  array: 10,
  sparse: 11,
  date: 12,
  map: 13,
  set: 14,
  regExp: 15,
  url: 16,
  view: 17,
  buffer: 18,
  error: 19,
  other: 20,
  tooDeep: 21,
} as const;

const maxNodes = 4_000_000;

// Two accumulators of 32 bits, kept in the module because a function call for every word would cost more than the mixing.
let a = 0;
let b = 0;
let nodes = 0;

let root: unknown;
/** What errors of the value are recorded as, once one was met. */
let errors: ReadonlyMap<object, ErrorRecord> | undefined;

/** 14 characters of base 36. */
export function digest(value: unknown): string {
  seed();
  nodes = 0;
  root = value;
  try {
    add(value, 0);
  } catch {
    word(tags.other); // a getter or a proxy threw
  }
  root = undefined;
  errors = undefined;
  finish();
  return pad((a >>> 0).toString(36)) + pad((b >>> 0).toString(36));
}

function pad(text: string): string {
  return text.length === 7 ? text : text.padStart(7, "0");
}

function seed(): void {
  a = 0x243f6a88;
  b = 0x85a308d3 | 0;
}

function word(bits: number): void {
  const x = a ^ Math.imul(bits, 0xcc9e2d51);
  a = (Math.imul((x << 13) | (x >>> 19), 5) + 0xe6546b64) | 0;
  const y = (b + Math.imul(bits ^ 0x5bd1e995, 0x1b873593)) | 0;
  b = (Math.imul((y << 17) | (y >>> 15), 9) + 0x38495ab5) | 0;
}

/** Spreads every bit over both accumulators. */
function finish(): void {
  let x = a ^ Math.imul(b, 0x9e3779b1);
  let y = b ^ Math.imul(a, 0x85ebca77);
  x = Math.imul(x ^ (x >>> 16), 0x85ebca6b);
  y = Math.imul(y ^ (y >>> 15), 0xc2b2ae35);
  x = Math.imul(x ^ (x >>> 13), 0xc2b2ae35);
  y = Math.imul(y ^ (y >>> 14), 0x27d4eb2f);
  a = x ^ (x >>> 16) ^ Math.imul(y, 0x165667b1);
  b = y ^ (y >>> 16);
}

function add(value: unknown, depth: number): void {
  if (++nodes > maxNodes) return;
  switch (typeof value) {
    case "string":
      word(tags.text);
      text(value);
      return;
    case "number":
      number(value);
      return;
    case "boolean":
      word(value ? tags.true : tags.false);
      return;
    case "undefined":
      word(tags.undefined);
      return;
    case "bigint":
      word(tags.bigint);
      text(value.toString(36));
      return;
    case "object":
      if (value === null) word(tags.null);
      else if (depth >= maxDepth) word(tags.tooDeep);
      else object(value, depth + 1);
      return;
    default:
      word(tags.other);
  }
}

function text(value: string): void {
  const { length } = value;
  word(length);
  let index = 0;
  for (; index + 1 < length; index += 2) word(value.charCodeAt(index) | (value.charCodeAt(index + 1) << 16));
  if (index < length) word(value.charCodeAt(index));
}

const double = new Float64Array(1);
const halves = new Int32Array(double.buffer);

function number(value: number): void {
  const integer = value | 0;
  if (integer === value) {
    word(tags.integer);
    word(integer);
    return;
  }
  word(tags.number);
  double[0] = Number.isNaN(value) ? Number.NaN : value; // one NaN of many
  word(halves[0] as number);
  word(halves[1] as number);
}

function object(value: object, depth: number): void {
  switch (kindOf(value)) {
    case "object":
      word(tags.object);
      entries(value as Record<string, unknown>, depth);
      break;
    case "array":
      array(value as unknown[], depth);
      break;
    case "Date":
      word(tags.date);
      number(Date.prototype.getTime.call(value));
      break;
    case "Map":
      word(tags.map);
      for (const [key, item] of Map.prototype.entries.call(value)) {
        add(key, depth);
        add(item, depth);
      }
      break;
    case "Set":
      word(tags.set);
      for (const item of Set.prototype.values.call(value)) add(item, depth);
      break;
    case "RegExp":
      word(tags.regExp);
      text((value as RegExp).source);
      text((value as RegExp).flags);
      break;
    case "URL":
      word(tags.url);
      text((value as URL).href);
      break;
    case "view": {
      const { buffer, byteOffset, byteLength } = value as ArrayBufferView;
      word(tags.view);
      text(tagOf(value));
      bytes(new Uint8Array(buffer, byteOffset, byteLength));
      break;
    }
    case "ArrayBuffer":
      word(tags.buffer);
      bytes(new Uint8Array(value as ArrayBuffer));
      break;
    case "Error":
      word(tags.error);
      errors ??= errorsIn(root);
      record(errors.get(value), depth);
      break;
    case "other":
      word(tags.other);
  }
}

function array(value: readonly unknown[], depth: number): void {
  const startA = a;
  const startB = b;
  word(tags.array);
  word(value.length);
  for (let index = 0; index < value.length; index++) {
    const item = value[index];
    if (item === undefined && !Object.hasOwn(value, index)) {
      a = startA;
      b = startB;
      word(tags.sparse);
      word(value.length);
      entries(value as unknown as Record<string, unknown>, depth);
      return;
    }
    add(item, depth);
  }
}

/** Adds up the hashes of the entries, so that their order does not count. */
function entries(value: Readonly<Record<string, unknown>>, depth: number): void {
  const startA = a;
  const startB = b;
  let sumA = 0;
  let sumB = 0;
  for (const key of Object.keys(value)) {
    const item = value[key];
    if (item === undefined) continue;
    seed();
    text(key);
    add(item, depth);
    finish();
    sumA = (sumA + a) | 0;
    sumB = (sumB + b) | 0;
  }
  a = startA;
  b = startB;
  word(sumA);
  word(sumB);
}

function bytes(value: Uint8Array): void {
  const { length } = value;
  word(length);
  let index = 0;
  for (; index + 3 < length; index += 4) {
    word(
      (value[index] as number) |
        ((value[index + 1] as number) << 8) |
        ((value[index + 2] as number) << 16) |
        ((value[index + 3] as number) << 24),
    );
  }
  for (; index < length; index++) word(value[index] as number);
}

/** The whole value is surveyed, as when it is stored: what is recorded of an error depends on what contains it. */
function errorsIn(value: unknown): ReadonlyMap<object, ErrorRecord> {
  const survey = new Survey(maxNodes, "the value");
  try {
    survey.visit(value);
  } catch {
    // It cannot be stored; what was found up to there must do.
  }
  return survey.errors;
}

function record(error: ErrorRecord | undefined, depth: number): void {
  if (error === undefined) return;
  text(error.name);
  text(error.message);
  add(error.code, depth);
  if (error.fields !== undefined) entries(error.fields, depth);
  if (error.thrown !== undefined) add(error.thrown.value, depth);
  record(error.cause, depth);
}
