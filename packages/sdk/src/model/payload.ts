/**
 * Values as text.
 *
 * 1. `decodePayload(encodePayload(value))` equals `value`, or `encodePayload` throws a `PayloadError`: nothing changes silently.
 * 2. Text is plain JSON when the value is plain; else `~` and devalue's JSON. It holds no NUL and no lone surrogate.
 * 3. Every decoding gives a fresh value, whose prototypes no text can reach.
 * 4. Size, depth and the number of values are bounded on both sides.
 */
import { stringify, unflatten } from "devalue";
import { type ErrorRecord, putTogether } from "./error-record.ts";
import { PayloadError } from "./errors.ts";
import type { Payload } from "./history.ts";
import { checkGraph } from "./payload-graph.ts";
import { Survey } from "./survey.ts";
import { kindOf, tagOf } from "./value-kind.ts";

/** 2 MiB of UTF-8. */
export const defaultPayloadLimit = 2 * 1_024 * 1_024;

/** Compresses or encrypts payloads outside of turns; `decode` undoes `encode`. */
export interface PayloadCodec {
  readonly name: string;
  encode(payload: Payload): Payload | Promise<Payload>;
  decode(payload: Payload): Payload | Promise<Payload>;
}

export type EncodeOptions = {
  /** In bytes of UTF-8. */
  readonly limit?: number;
  /** How messages call the value: "the input of activity reserve". */
  readonly what?: string;
};

/** Throws `PayloadError`: PAYLOAD_UNSERIALIZABLE with the `path` of the culprit, or PAYLOAD_TOO_LARGE. */
export function encodePayload(value: unknown, options?: EncodeOptions): Payload {
  const limit = options?.limit ?? defaultPayloadLimit;
  const text = plainText(value, limit) ?? surveyedText(value, limit, options?.what ?? "the value");
  if (text.length * 3 > limit) checkSize(text, limit, options?.what ?? "the value");
  return text;
}

const richPrefix = "~";

/** A fresh value on each call. Throws `PayloadError` (PAYLOAD_MALFORMED) for what `encodePayload` did not write. */
export function decodePayload(payload: Payload): unknown {
  try {
    if (!payload.startsWith(richPrefix)) return JSON.parse(payload);
    const flat: unknown = JSON.parse(payload.slice(1));
    checkGraph(flat);
    return unflatten(flat as number | unknown[], revivers);
  } catch (cause) {
    throw new PayloadError(`the payload cannot be read: ${cause instanceof Error ? cause.message : String(cause)}`, {
      code: "PAYLOAD_MALFORMED",
      cause,
    });
  }
}

// ── plain values ──

const plainDepth = 64;
let nodesLeft = 0;

/** JSON, or undefined when a closer look is needed. */
function plainText(value: unknown, limit: number): string | undefined {
  nodesLeft = limit;
  try {
    return isPlain(value, 0) ? JSON.stringify(value) : undefined;
  } catch {
    return undefined; // a getter or a proxy threw: the survey says where
  }
}

function isPlain(value: unknown, depth: number): boolean {
  if (--nodesLeft < 0) return false;
  switch (typeof value) {
    case "string":
    case "boolean":
      return true;
    case "number":
      return value - value === 0 && (value !== 0 || 1 / value > 0);
    case "object":
      return value === null || (depth < plainDepth && isPlainObject(value, depth + 1));
    default:
      return false;
  }
}

function isPlainObject(value: object, depth: number): boolean {
  if (Array.isArray(value)) {
    if (Object.getPrototypeOf(value) !== Array.prototype) return false;
    for (let index = 0; index < value.length; index++) if (!isPlain(value[index], depth)) return false;
    return Object.keys(value).length === value.length; // else it has holes or named properties
  }
  if (Object.getPrototypeOf(value) !== Object.prototype) return false;
  for (const key in value) if (!isPlain((value as Record<string, unknown>)[key], depth)) return false;
  return Object.getOwnPropertySymbols(value).length === 0;
}

// ── everything else ──

function surveyedText(value: unknown, limit: number, what: string): string {
  const survey = new Survey(limit, what);
  try {
    survey.visit(value);
    return survey.rich ? richPrefix + stringify(value, reducersOf(survey), { operations }) : JSON.stringify(value);
  } catch (cause) {
    if (cause instanceof PayloadError) throw cause;
    const why = cause instanceof Error ? cause.message : String(cause); // no stack left, or a getter that throws the second time
    throw new PayloadError(`${what} cannot be stored: ${why}`, { code: "PAYLOAD_UNSERIALIZABLE", path: "$", cause });
  }
}

/** What devalue cannot write, as what it can; the first that gives something is taken. */
function reducersOf(survey: Survey): Record<string, (value: unknown) => unknown> {
  return {
    Error: (value) => isObject(value) && survey.errors.get(value),
    Fields: (value) => isObject(value) && hasProto(value) && Object.getPrototypeOf(value) !== null && Object.entries(value).flat(),
    BareFields: (value) => isObject(value) && hasProto(value) && Object.entries(value).flat(),
    Holes: (value) =>
      Array.isArray(value) && hasHoles(value) && [value.length, ...Object.keys(value).flatMap((key) => [+key, value[+key]])],
  };
}

function hasProto(value: object): boolean {
  return Object.hasOwn(value, "__proto__");
}

function hasHoles(value: readonly unknown[]): boolean {
  return Object.keys(value).length < value.length;
}

const operations = {
  // Every object is written where it stands, so that the text is a tree.
  identify: (value: unknown) => (isObject(value) ? {} : value),
  // A symbol as a tag convinces nobody.
  tagOf: (value: object) => {
    const kind = kindOf(value);
    return kind === "view" ? tagOf(value).slice("[object ".length, -1) : kind === "object" ? "Object" : kind === "array" ? "Array" : kind;
  },
  // Only the bytes that are seen, not the whole buffer behind them.
  viewInfo: (view: ArrayBufferView & { length: number }) => {
    const buffer = new Uint8Array(view.buffer, view.byteOffset, view.byteLength).slice().buffer;
    return {
      buffer,
      byteOffset: 0,
      byteLength: view.byteLength,
      length: view.length,
      bufferByteLength: view.byteLength,
    };
  },
};

const revivers: Record<string, (value: unknown) => unknown> = {
  Error: (value) => putTogether(checkedRecord(value)),
  Fields: (value) => withFields({}, value),
  BareFields: (value) => withFields(Object.create(null), value),
  Holes: (value) => {
    const [length, ...items] = value as [number, ...unknown[]];
    const array: unknown[] = [];
    array.length = length;
    for (let at = 0; at < items.length; at += 2) {
      const index = items[at] as number;
      if (!(Number.isInteger(index) && index >= 0 && index < length)) throw new Error("an item lies outside of its array");
      array[index] = items[at + 1];
    }
    return array;
  },
};

function withFields(object: object, list: unknown): object {
  if (!Array.isArray(list)) throw new Error("fields are a list");
  for (let at = 0; at < list.length; at += 2) {
    Object.defineProperty(object, String(list[at]), { value: list[at + 1], enumerable: true, writable: true, configurable: true });
  }
  return object;
}

function checkedRecord(value: unknown): ErrorRecord {
  if (!isObject(value)) throw new Error("an error is an object");
  const { name, message, code, stack, cause, fields, thrown } = value as Record<string, unknown>;
  const isText = (item: unknown) => item === undefined || typeof item === "string";
  if (typeof name !== "string" || typeof message !== "string" || !isText(code) || !isText(stack)) throw new Error("an error is malformed");
  if ((fields !== undefined && !isObject(fields)) || (thrown !== undefined && !isObject(thrown))) throw new Error("an error is malformed");
  if (cause !== undefined) checkedRecord(cause);
  return value as ErrorRecord;
}

function isObject(value: unknown): value is object {
  return typeof value === "object" && value !== null;
}

// ── size ──

function checkSize(text: string, limit: number, what: string): void {
  const size = text.length > limit ? text.length : utf8Length(text);
  if (size <= limit) return;
  throw new PayloadError(`${what} is too large to be stored: ${utf8Length(text)} bytes, and the limit is ${limit}`, {
    code: "PAYLOAD_TOO_LARGE",
  });
}

/** Bytes of `text` in UTF-8. */
export function utf8Length(text: string): number {
  let bytes = text.length;
  for (let index = 0; index < text.length; index++) {
    const unit = text.charCodeAt(index);
    if (unit < 0x80) continue;
    bytes += unit < 0x800 || (unit >= 0xd800 && unit <= 0xdfff) ? 1 : 2; // each half of a pair stands for 2 of its 4 bytes
  }
  return bytes;
}
