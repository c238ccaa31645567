/**
 * Values as text.
 *
 * 1. `decodePayload(encodePayload(value))` equals `value`, or `encodePayload` throws a `PayloadError`: nothing changes silently.
 * 2. Text is plain JSON when the value is plain; else `~` and devalue's JSON. It holds no NUL and no lone surrogate.
 * 3. Every decoding gives a fresh value, whose prototypes no text can reach.
 * 4. Size, depth and the number of values are bounded on both sides.
 */
import { PayloadError, WovyrError } from "./errors.ts";
import type { Payload } from "./history.ts";
import { readRich, writeRich } from "./rich-text.ts";
import { maxExcess, Survey } from "./survey.ts";

/** 2 MiB of UTF-8. */
export const defaultPayloadLimit = 2 * 1_024 * 1_024;

/** Compresses or encrypts payloads outside of turns; `decode` undoes `encode`. */
export interface PayloadCodec {
  readonly name: string;
  encode(payload: Payload): Payload | Promise<Payload>;
  decode(payload: Payload): Payload | Promise<Payload>;
}

/** Throws INVALID_OPTION. */
export function checkCodec(codec: PayloadCodec | undefined, what: string): void {
  if (codec === undefined) return;
  const { name, encode, decode } = (codec ?? {}) as Partial<PayloadCodec>;
  if (typeof name === "string" && typeof encode === "function" && typeof decode === "function") return;
  throw new WovyrError(`the \`codec\` of ${what} must be a payload codec: { name, encode, decode }`, {
    code: "INVALID_OPTION",
  });
}

const richPrefix = "~";

export type EncodeOptions = {
  /** In bytes of UTF-8. */
  readonly limit?: number;
  /** How messages call the value: "the input of activity reserve". */
  readonly what?: string;
};

/** Throws `PayloadError`: PAYLOAD_UNSERIALIZABLE with the `path` of the culprit, or PAYLOAD_TOO_LARGE. */
export function encodePayload(value: unknown, options?: EncodeOptions): Payload {
  const limit = options?.limit ?? defaultPayloadLimit;
  const text = plainText(value, limit) ?? otherText(value, limit, options?.what ?? "the value");
  if (text.length * 3 > limit) checkSize(text, limit, options?.what ?? "the value");
  return text;
}

/** A fresh value on each call. Throws `PayloadError` (PAYLOAD_MALFORMED) for what `encodePayload` did not write. */
export function decodePayload(payload: Payload): unknown {
  try {
    if (!payload.startsWith(richPrefix)) return JSON.parse(payload);
    return readRich(payload.slice(richPrefix.length));
  } catch (cause) {
    throw new PayloadError(`the payload cannot be read: ${cause instanceof Error ? cause.message : String(cause)}`, {
      code: "PAYLOAD_MALFORMED",
      cause,
    });
  }
}

// ── plain values ──

// As in a survey: every visit counts, and so does every character.
const plainDepth = 64;
let valuesLeft = 0;
let charactersLeft = 0;

/** JSON, or undefined when a closer look is needed. */
function plainText(value: unknown, limit: number): string | undefined {
  valuesLeft = limit;
  charactersLeft = limit + maxExcess;
  try {
    return isPlain(value, 0) ? JSON.stringify(value) : undefined;
  } catch {
    return undefined; // a getter or a proxy threw: the survey says where
  }
}

function isPlain(value: unknown, depth: number): boolean {
  if (--valuesLeft < 0) return false;
  switch (typeof value) {
    case "string":
      charactersLeft -= value.length;
      return charactersLeft >= 0;
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
  for (const key in value) {
    charactersLeft -= key.length;
    if (!isPlain((value as Record<string, unknown>)[key], depth)) return false;
  }
  return Object.getOwnPropertySymbols(value).length === 0;
}

// ── everything else ──

function otherText(value: unknown, limit: number, what: string): string {
  if (valuesLeft < 0 || charactersLeft < 0) {
    throw new PayloadError(`${what} is too large to be stored: more than ${limit} bytes, which is the limit`, {
      code: "PAYLOAD_TOO_LARGE",
    });
  }
  const survey = new Survey(limit, what);
  try {
    survey.visit(value);
    return survey.rich ? richPrefix + writeRich(value, survey.errors) : JSON.stringify(value);
  } catch (cause) {
    if (cause instanceof PayloadError) throw cause;
    const why = cause instanceof Error ? cause.message : String(cause); // no stack left, or a getter that throws the second time
    throw new PayloadError(`${what} cannot be stored: ${why}`, { code: "PAYLOAD_UNSERIALIZABLE", path: "$", cause });
  }
}

// ── size ──

function checkSize(text: string, limit: number, what: string): void {
  const size = utf8Length(text);
  if (size <= limit) return;
  throw new PayloadError(`${what} is too large to be stored: ${size} bytes, and the limit is ${limit}`, {
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
