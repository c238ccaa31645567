/**
 * The plain view of values, for people and for clients in other languages.
 *
 * | value                                  | in JSON                                                            |
 * | -------------------------------------- | ------------------------------------------------------------------ |
 * | null, boolean, string, finite number   | itself (−0 is 0)                                                   |
 * | NaN, Infinity, −Infinity               | the strings "NaN", "Infinity", "-Infinity"                         |
 * | bigint                                 | its decimal digits as a string                                     |
 * | undefined                              | left out of objects; null in arrays, in maps, in sets and alone    |
 * | Date                                   | RFC 3339 in UTC; "Invalid Date"                                    |
 * | URL, RegExp                            | its text                                                           |
 * | Map                                    | an object when every key is a string, else a list of [key, value]  |
 * | Set, array                             | an array; holes are null                                           |
 * | typed array, ArrayBuffer, Buffer       | its bytes in base64                                                |
 * | Error                                  | { name, message, code?, …own fields, cause? }, without its stack   |
 * | anything else                          | null: it cannot be stored in the first place                       |
 *
 * The view goes one way: it does not tell a Date from its text. The typed view (`encodePayload`) does.
 */
import type { ErrorRecord } from "./error-record.ts";
import { errorRecord, maxDepth } from "./survey.ts";
import { kindOf } from "./value-kind.ts";

export type PlainJson = null | boolean | number | string | PlainJson[] | { [key: string]: PlainJson };

/** What `JSON.stringify` may be given to show `value`. */
export function toPlainJson(value: unknown): PlainJson {
  return plain(value, 0);
}

function plain(value: unknown, depth: number): PlainJson {
  switch (typeof value) {
    case "string":
    case "boolean":
      return value;
    case "number":
      return Number.isFinite(value) ? value : String(value);
    case "bigint":
      return value.toString();
    case "object":
      if (value === null) return null;
      return depth < maxDepth ? plainObject(value, depth + 1) : "[nested too deep to be shown]";
    default:
      return null;
  }
}

function plainObject(value: object, depth: number): PlainJson {
  switch (kindOf(value)) {
    case "object":
      return fromEntries(Object.entries(value), depth);
    case "array":
      return Array.from(value as unknown[], (item) => plain(item, depth));
    case "Date":
      return Number.isNaN(Date.prototype.getTime.call(value)) ? "Invalid Date" : Date.prototype.toISOString.call(value);
    case "RegExp":
    case "URL":
      return String(value);
    case "Map":
      return fromMap([...Map.prototype.entries.call(value)], depth);
    case "Set":
      return Array.from(Set.prototype.values.call(value), (item) => plain(item, depth));
    case "view": {
      const { buffer, byteOffset, byteLength } = value as ArrayBufferView;
      return base64(new Uint8Array(buffer, byteOffset, byteLength));
    }
    case "ArrayBuffer":
      return base64(new Uint8Array(value as ArrayBuffer));
    case "Error":
      return fromRecord(errorRecord(value), depth);
    case "other":
      return null;
  }
}

function fromEntries(entries: readonly (readonly [string, unknown])[], depth: number): { [key: string]: PlainJson } {
  const object: { [key: string]: PlainJson } = {};
  for (const [key, item] of entries) {
    if (item === undefined) continue;
    if (key === "__proto__") {
      Object.defineProperty(object, key, { value: plain(item, depth), enumerable: true, writable: true, configurable: true });
    } else {
      object[key] = plain(item, depth);
    }
  }
  return object;
}

function fromMap(entries: readonly [unknown, unknown][], depth: number): PlainJson {
  if (entries.every(([key]) => typeof key === "string")) {
    return fromEntries(
      entries.map(([key, item]) => [key as string, item === undefined ? null : item]),
      depth,
    );
  }
  return entries.map(([key, item]) => [plain(key, depth), plain(item, depth)]);
}

function fromRecord(record: ErrorRecord, depth: number): PlainJson {
  if (record.thrown !== undefined) return plain(record.thrown.value, depth);
  return {
    ...fromEntries(Object.entries(record.fields ?? {}), depth),
    name: record.name,
    message: record.message,
    ...(record.code !== undefined && { code: record.code }),
    ...(record.cause !== undefined && { cause: fromRecord(record.cause, depth) }),
  };
}

const chunk = 8_192;

function base64(bytes: Uint8Array): string {
  let binary = "";
  for (let at = 0; at < bytes.length; at += chunk) binary += String.fromCharCode(...bytes.subarray(at, at + chunk));
  return btoa(binary);
}
