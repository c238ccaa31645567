/**
 * Values that JSON does not know, as devalue's JSON: Date, Map, Set, bigint, URL and others are its own, the rest are tags of ours.
 *
 * | tag                    | holds                                                                |
 * | ---------------------- | -------------------------------------------------------------------- |
 * | Error                  | an `ErrorRecord`                                                     |
 * | Fields, BareFields     | keys and values of an object that has a key `__proto__`; bare: without prototype |
 * | Holes                  | the length of an array with holes, then index and value of each item |
 */
import { stringify, unflatten } from "devalue";
import { type ErrorRecord, putTogether } from "./error-record.ts";
import { checkGraph } from "./payload-graph.ts";
import { kindOf, tagOf } from "./value-kind.ts";

/** Writes a value that a `Survey` found storable; `errors` are those that it took apart. */
export function writeRich(value: unknown, errors: ReadonlyMap<object, ErrorRecord>): string {
  return stringify(value, reducersOf(errors), { operations });
}

/** Throws when the text is not what `writeRich` could have written. */
export function readRich(text: string): unknown {
  const flat: unknown = JSON.parse(text);
  checkGraph(flat);
  return unflatten(flat as number | unknown[], revivers);
}

/** What devalue cannot write, as what it can; the first that gives something is taken. */
function reducersOf(errors: ReadonlyMap<object, ErrorRecord>): Record<string, (value: unknown) => unknown> {
  return {
    Error: (value) => isObject(value) && errors.get(value),
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
