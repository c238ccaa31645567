/**
 * A value as compact text in one line: like the literal that makes it, with `Map`, `Set`, dates, bigints and `undefined` as what they are.
 *
 * 1. It never throws and calls no code of the value's own, but for accessors of its own fields.
 * 2. Its work is bounded (`longest` characters), and its result by the given bound: what is longer is cut, and says how long it was.
 * 3. Equal values give equal text.
 */

export type ValueTextOptions = {
  /** Characters; default 200. */
  readonly bound?: number;
  /** What stands for a text, when it is to be another. */
  readonly text?: (text: string) => string;
  /** What stands for a date; undefined: the date as it is. */
  readonly date?: (date: Date) => string | undefined;
  /** What stands for a number; undefined: the number as it is. */
  readonly number?: (value: number) => string | undefined;
};

export const defaultBound = 200;
/** Characters after which a value is not read on. */
const longest = 200_000;

export function valueText(value: unknown, options: ValueTextOptions = {}): string {
  const writer = new ValueWriter(options);
  writer.write(value);
  return cut(writer.text, options.bound ?? defaultBound, writer.full);
}

/** At most `bound` characters of a text, and its length when there are more. */
export function cut(text: string, bound: number, more = false): string {
  if (text.length <= bound && !more) return text;
  // Half a surrogate pair is no character.
  const end = /[\ud800-\udbff]/.test(text.charAt(bound - 1)) ? bound - 1 : bound;
  return `${text.slice(0, end)}… (${more ? "more than " : ""}${text.length} characters)`;
}

class ValueWriter {
  text = "";
  /** Whether there was more than is read. */
  full = false;
  readonly #options: ValueTextOptions;
  readonly #within: object[] = [];

  constructor(options: ValueTextOptions) {
    this.#options = options;
  }

  write(value: unknown): void {
    if (this.text.length > longest) {
      this.full = true;
      return;
    }
    switch (typeof value) {
      case "string":
        this.text += JSON.stringify(this.#options.text?.(value) ?? value);
        return;
      case "number":
        this.text += this.#options.number?.(value) ?? (Object.is(value, -0) ? "-0" : String(value));
        return;
      case "bigint":
        this.text += `${value}n`;
        return;
      case "function":
        this.text += value.name === "" ? "[function]" : `[function ${value.name}]`;
        return;
      case "object":
        if (value === null) this.text += "null";
        else this.#object(value);
        return;
      default:
        this.text += String(value);
    }
  }

  #object(value: object): void {
    if (this.#within.includes(value)) {
      this.text += "[circular]";
      return;
    }
    this.#within.push(value);
    try {
      this.#contents(value);
    } catch {
      this.text += "[unreadable]";
    }
    this.#within.pop();
  }

  #contents(value: object): void {
    if (value instanceof Date) {
      const time = value.getTime();
      this.text += this.#options.date?.(value) ?? (Number.isNaN(time) ? "Date(invalid)" : `Date(${value.toISOString()})`);
    } else if (value instanceof RegExp) this.text += String(value);
    else if (value instanceof URL) this.text += `URL(${value.href})`;
    else if (Array.isArray(value)) this.#list("[", value, "]");
    else if (value instanceof Set) this.#list("Set { ", value, " }");
    else if (value instanceof Map) this.#pairs("Map { ", value, " => ");
    else if (ArrayBuffer.isView(value)) this.#list(`${nameOf(value)} [`, viewItems(value), "]");
    else if (value instanceof ArrayBuffer) this.#list("ArrayBuffer [", new Uint8Array(value), "]");
    else if (value instanceof Error) this.#error(value);
    else this.#fields(value);
  }

  #error(error: Error): void {
    this.text += `${error.name}(`;
    this.write(error.message);
    this.text += ")";
    const fields = Object.entries(error).filter(([key]) => key !== "name" && key !== "stack");
    if (error.cause !== undefined && !fields.some(([key]) => key === "cause")) fields.push(["cause", error.cause]);
    if (fields.length === 0) return;
    this.text += " ";
    this.#fields(Object.fromEntries(fields));
  }

  #fields(value: object): void {
    const name = nameOf(value);
    this.#pairs(name === "" || name === "Object" ? "{ " : `${name} { `, Object.entries(value), ": ");
  }

  #list(open: string, items: Iterable<unknown>, close: string): void {
    this.text += open;
    let first = true;
    for (const item of items) {
      if (!first) this.text += ", ";
      first = false;
      this.write(item);
      if (this.full) break;
    }
    this.text = first ? `${this.text.trimEnd()}${close.trimStart()}` : this.text + close;
  }

  #pairs(open: string, pairs: Iterable<readonly [unknown, unknown]>, between: string): void {
    this.text += open;
    let first = true;
    for (const [key, item] of pairs) {
      if (!first) this.text += ", ";
      first = false;
      if (between !== ": ") this.write(key);
      else this.text += /^[A-Za-z_$][\w$]*$/.test(String(key)) ? String(key) : JSON.stringify(key);
      this.text += between;
      this.write(item);
      if (this.full) break;
    }
    this.text = first ? `${this.text.trimEnd()}}` : `${this.text} }`;
  }
}

function viewItems(view: ArrayBufferView): Iterable<unknown> {
  return view instanceof DataView ? new Uint8Array(view.buffer, view.byteOffset, view.byteLength) : (view as unknown as Iterable<unknown>);
}

function nameOf(value: object): string {
  const prototype: unknown = Object.getPrototypeOf(value);
  const maker: unknown = typeof prototype === "object" && prototype !== null ? Reflect.get(prototype, "constructor") : undefined;
  return typeof maker === "function" ? maker.name : "";
}
