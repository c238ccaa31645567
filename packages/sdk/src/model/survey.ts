/**
 * A walk over a value before it is stored: whether plain JSON will do, and if it cannot be stored, where and why.
 *
 * 1. Every visit counts, also a second one of the same object, and so does every character: a value that would be huge when written out is refused
 *    before it is.
 * 2. It goes `maxDepth` deep and no deeper.
 * 3. Errors inside of values are taken apart here, once; what in their fields cannot be stored is replaced by a note.
 */
import { type ErrorRecord, takeApart } from "./error-record.ts";
import { type ErrorCode, PayloadError } from "./errors.ts";
import { unrun } from "./unrun-value.ts";
import { kindOf } from "./value-kind.ts";
import { pathText, type Step, stepOfKey } from "./value-path.ts";

export const maxDepth = 1_000;
/** How many holes all sparse arrays of a value may have together. */
export const maxHoles = 1_000_000;
/** How many characters above its limit a value may have and still be written out, so that its size can be told. */
export const maxExcess = 64 * 1_024 * 1_024;
/** How many values the fields of one error and of its causes may hold. */
const maxFieldValues = 2_000;
/** How deep errors may lie in the fields of errors. */
const maxErrorDepth = 8;

export class Survey {
  /** Set when plain JSON would lose something. */
  rich = false;
  /** The errors that were met, taken apart. */
  readonly errors = new Map<object, ErrorRecord>();
  readonly #what: string;
  readonly #limit: number;
  readonly #path: Step[] = [];
  /** The objects that the visit is in. */
  readonly #open = new Set<object>();
  #values: number;
  #characters: number;
  #holes = maxHoles;
  #errorDepth = 0;
  /** Where in the path the innermost error begins. */
  #errorStart = 0;
  #refusal = "";

  /** `limit` is how many values it may visit: each takes a byte at least. `what` is how messages call the whole. */
  constructor(limit: number, what: string) {
    this.#limit = limit;
    this.#values = limit;
    this.#characters = limit + maxExcess;
    this.#what = what;
  }

  /** Throws `PayloadError` when the value cannot be stored. */
  visit(value: unknown): void {
    if (--this.#values < 0) this.#tooLarge();
    switch (typeof value) {
      case "string":
        this.#count(value.length);
        break;
      case "boolean":
        break;
      case "number":
        if (!Number.isFinite(value) || Object.is(value, -0)) this.rich = true;
        break;
      case "bigint":
      case "undefined":
        this.rich = true;
        break;
      case "function":
        this.#refuse("is a function", "pass the data that it works on");
        break;
      case "symbol":
        this.#refuse("is a symbol", "pass a string");
        break;
      case "object":
        if (value !== null) this.#visitObject(value);
    }
  }

  /** What is recorded of something thrown, with a note where a field cannot be; never throws. */
  takeApart(thrown: unknown): ErrorRecord {
    const outer = { values: this.#values, depth: this.#path.length, open: [...this.#open], start: this.#errorStart };
    this.#errorDepth++;
    this.#errorStart = outer.depth;
    this.#values = maxFieldValues;
    const record = takeApart(thrown, (value, path) => {
      const values = this.#values;
      try {
        this.#path.push(...path);
        this.visit(value);
        return value;
      } catch {
        this.#values = values;
        this.#open.clear();
        for (const object of outer.open) this.#open.add(object);
        return `[not recorded: ${this.#refusal}]`;
      } finally {
        this.#path.length = outer.depth;
        this.#errorStart = outer.depth;
      }
    });
    this.#errorDepth--;
    this.#errorStart = outer.start;
    this.#values = outer.values - (maxFieldValues - this.#values);
    return record;
  }

  #visitObject(value: object): void {
    if (this.#open.has(value)) this.#refuse("refers back to what contains it (a cycle)", "store an id instead of the reference");
    if (this.#path.length >= maxDepth) this.#refuse(`is nested deeper than ${maxDepth} levels`, "make it flatter");
    this.#open.add(value);
    switch (this.#guarded(() => kindOf(value))) {
      case "object":
        this.#visitFields(value as Readonly<Record<string, unknown>>);
        break;
      case "array":
        this.#visitArray(value as readonly unknown[]);
        break;
      case "Map":
        this.#visitMap(value as ReadonlyMap<unknown, unknown>);
        break;
      case "Set":
        this.#visitSet(value as ReadonlySet<unknown>);
        break;
      case "Error":
        this.#visitError(value);
        break;
      case "other":
        this.#refuseOther(value);
        break;
      case "view":
      case "ArrayBuffer":
        this.rich = true;
        this.#count((value as ArrayBufferView | ArrayBuffer).byteLength);
        break;
      default:
        this.rich = true;
    }
    this.#open.delete(value);
  }

  #visitFields(value: Readonly<Record<string, unknown>>): void {
    if (Object.getPrototypeOf(value) === null) this.rich = true;
    for (const symbol of this.#guarded(() => Object.getOwnPropertySymbols(value))) {
      if (Object.prototype.propertyIsEnumerable.call(value, symbol))
        this.#refuse(`has a symbol as a key (${String(symbol)})`, "use a string");
    }
    for (const key of this.#guarded(() => Object.keys(value))) {
      this.#count(key.length);
      this.#visitField(value, key);
    }
  }

  #visitArray(value: readonly unknown[]): void {
    const { length } = value;
    const keys = this.#guarded(() => Object.keys(value));
    // Indices come first and in order: when the last key is the last index and no key is missing, there are no others.
    if (keys.length === length && (length === 0 || keys[length - 1] === String(length - 1))) {
      for (let index = 0; index < length; index++) this.#visitField(value, index);
      return;
    }
    this.rich = true;
    this.#holes -= Math.max(0, length - keys.length);
    if (this.#holes < 0) this.#tooLarge();
    for (const key of keys) {
      const index = Number(key);
      if (String(index) !== key || !Number.isInteger(index) || index < 0 || index >= length) {
        this.#refuse(`is an array with a property ${JSON.stringify(key)}`, "pass an object, or `[...value]` without it");
      }
      this.#visitField(value, index);
    }
  }

  #visitMap(map: ReadonlyMap<unknown, unknown>): void {
    this.rich = true;
    let index = 0;
    for (const [key, item] of Map.prototype.entries.call(map)) {
      this.#visitAt({ place: `key ${index}` }, key);
      this.#visitAt(stepOfKey(key, index), item);
      index++;
    }
  }

  #visitSet(set: ReadonlySet<unknown>): void {
    this.rich = true;
    let index = 0;
    for (const item of Set.prototype.values.call(set)) this.#visitAt({ place: `item ${index++}` }, item);
  }

  #visitError(error: object): void {
    if (this.#errorDepth >= maxErrorDepth) this.#refuse(`lies in the fields of ${maxErrorDepth} errors`, "make it flatter");
    this.rich = true;
    const record = this.takeApart(error);
    this.errors.set(error, record);
    if (this.#values < 0) this.#tooLarge();
    for (let at: ErrorRecord | undefined = record; at !== undefined; at = at.cause)
      this.#count(at.message.length + (at.stack?.length ?? 0));
  }

  #visitField(container: object, key: string | number): void {
    this.#path.push(key);
    let value: unknown;
    try {
      value = (container as Readonly<Record<string | number, unknown>>)[key];
    } catch (cause) {
      this.#refuseUnreadable(cause);
    }
    this.visit(value);
    this.#path.pop();
  }

  #visitAt(step: Step, value: unknown): void {
    this.#path.push(step);
    this.visit(value);
    this.#path.pop();
  }

  #refuseOther(value: object): never {
    const has = (key: string) => this.#guarded(() => typeof (value as Readonly<Record<string, unknown>>)[key] === "function");
    const left = this.#guarded(() => unrun(value));
    if (left !== undefined) return this.#refuse(left.why, left.advice, undefined, left.code);
    if (has("then")) return this.#refuse("is a promise", "wait for it in an activity and pass its value");
    if (has("pipe") || has("getReader")) return this.#refuse("is a stream", "read it, or pass a reference to what it reads");
    const name = this.#guarded(() => (value as { constructor?: { name?: unknown } }).constructor?.name);
    const instance = typeof name === "string" && name !== "" ? name : "a class";
    return this.#refuse(`is an instance of ${instance}`, "pass plain data, such as `{ ...value }`");
  }

  #count(characters: number): void {
    this.#characters -= characters;
    if (this.#characters < 0) this.#tooLarge();
  }

  #guarded<T>(read: () => T): T {
    try {
      return read();
    } catch (cause) {
      return this.#refuseUnreadable(cause);
    }
  }

  #refuseUnreadable(cause: unknown): never {
    return this.#refuse(`cannot be read (${messageOf(cause)})`, "pass plain data without getters that throw", cause);
  }

  #refuse(why: string, advice: string, cause?: unknown, code: ErrorCode = "PAYLOAD_UNSERIALIZABLE"): never {
    this.#refusal = `${pathText(this.#path.slice(this.#errorStart))} ${why}`;
    const path = pathText(this.#path);
    throw new PayloadError(`${this.#what} cannot be stored: ${path} ${why}; ${advice}`, {
      code,
      path,
      ...(cause !== undefined && { cause }),
    });
  }

  #tooLarge(): never {
    this.#refusal = "it is too large";
    throw new PayloadError(`${this.#what} is too large to be stored: more than ${this.#limit} bytes, which is the limit`, {
      code: "PAYLOAD_TOO_LARGE",
      path: pathText(this.#path),
    });
  }
}

/** What is recorded of something thrown, with a note where a field cannot be; never throws. */
export function errorRecord(thrown: unknown): ErrorRecord {
  return new Survey(maxFieldValues, "the error").takeApart(thrown);
}

function messageOf(cause: unknown): string {
  try {
    return cause instanceof Error ? cause.message : String(cause);
  } catch {
    return "it throws";
  }
}
