/** What an object is, whatever realm it comes from; every walk over values (payload, digest, plain JSON) asks here. */

export type ValueKind = "object" | "array" | "Date" | "RegExp" | "URL" | "Map" | "Set" | "view" | "ArrayBuffer" | "Error" | "other";

/** Instances of subclasses are `other` (their class would be lost), except for views (a `Buffer` counts as its `Uint8Array`) and errors. */
export function kindOf(value: object): ValueKind {
  const prototype = Object.getPrototypeOf(value);
  if (prototype === Object.prototype || prototype === null) return "object";
  if (Array.isArray(value)) return isRoot(Object.getPrototypeOf(prototype)) ? "array" : "other";
  if (ArrayBuffer.isView(value)) return value instanceof DataView || tagOf(value) === "[object DataView]" ? "other" : "view";
  if (isError(value)) return "Error";
  if (isRoot(prototype)) return "object";
  if (!isRoot(Object.getPrototypeOf(prototype))) return "other";
  switch (tagOf(value)) {
    case "[object Date]":
      return holds(dateTime, value) ? "Date" : "other";
    case "[object RegExp]":
      return holds(regExpSource, value) ? "RegExp" : "other";
    case "[object URL]":
      return holds(urlText, value) ? "URL" : "other";
    case "[object Map]":
      return holds(mapSize, value) ? "Map" : "other";
    case "[object Set]":
      return holds(setSize, value) ? "Set" : "other";
    case "[object ArrayBuffer]":
      return holds(bufferLength, value) ? "ArrayBuffer" : "other";
    default:
      return "other";
  }
}

/** Whether `value` is an error: of this realm or another, or a `DOMException`. */
export function isError(value: object): boolean {
  if (value instanceof Error) return true;
  const tag = tagOf(value);
  return tag === "[object Error]" || tag === "[object DOMException]";
}

export function tagOf(value: unknown): string {
  return Object.prototype.toString.call(value);
}

/** Whether `prototype` is the `Object.prototype` of some realm. */
function isRoot(prototype: object | null): boolean {
  return (
    prototype !== null &&
    (prototype === Object.prototype || (Object.getPrototypeOf(prototype) === null && Object.hasOwn(prototype, "isPrototypeOf")))
  );
}

// Built-in accessors throw unless `this` has the internal slot: a forged Symbol.toStringTag does not pass, another realm's object does.
type Read = (this: unknown) => unknown;
const dateTime: Read = Date.prototype.getTime;
const regExpSource = getter(RegExp.prototype, "source");
const urlText = getter(URL.prototype, "href");
const mapSize = getter(Map.prototype, "size");
const setSize = getter(Set.prototype, "size");
const bufferLength = getter(ArrayBuffer.prototype, "byteLength");

function getter(prototype: object, key: string): Read {
  return Object.getOwnPropertyDescriptor(prototype, key)?.get as Read;
}

function holds(read: Read, value: object): boolean {
  try {
    read.call(value);
    return true;
  } catch {
    return false;
  }
}
