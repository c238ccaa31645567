/**
 * An error taken apart into data, and put together again.
 *
 * 1. Taking apart never throws, whatever was thrown.
 * 2. It is bounded: causes are followed `maxCauses` deep and cycles cut (both marked), long texts are cut, lists of errors shortened.
 * 3. Putting together runs no constructor but Error's own, so nothing in a record can call foreign code.
 * 4. Taking apart what was put together gives the same record.
 */
import {
  ActivityError,
  ApiError,
  AuthoringError,
  CancelledError,
  CompensationError,
  DeterminismError,
  type ErrorClass,
  errorCodes,
  NonRetryableError,
  OutcomeUnknownError,
  PayloadError,
  RetryAfterError,
  TimeoutError,
  ValidationError,
  WorkflowError,
  WovyrError,
} from "./errors.ts";
import { isError } from "./value-kind.ts";

export type ErrorRecord = {
  readonly name: string;
  readonly message: string;
  readonly code?: string;
  readonly stack?: string;
  readonly cause?: ErrorRecord;
  /** Own fields beside name, message, stack, code and cause, as they are. */
  readonly fields?: Readonly<Record<string, unknown>>;
  /** Set when something that is no error was thrown. */
  readonly thrown?: { readonly value: unknown };
};

export const maxCauses = 20;
export const maxAggregated = 50;
export const maxMessage = 32_768;
export const maxStack = 8_192;
const maxName = 255;
const maxFields = 100;

/** Returns a field's value as it may be recorded, or a note instead of it; `path` leads from the error to the field. */
export type Keep = (value: unknown, path: readonly string[]) => unknown;

/** Takes apart what was thrown. */
export function takeApart(thrown: unknown, keep: Keep): ErrorRecord {
  return recordOf(thrown, keep, []);
}

/** `chain` holds the errors that `thrown` is the cause of. */
function recordOf(thrown: unknown, keep: Keep, chain: readonly unknown[]): ErrorRecord {
  const path = chain.map(() => "cause");
  if (!isErrorLike(thrown)) return { name: "Error", message: messageOfValue(thrown), thrown: { value: keep(thrown, path) } };
  const code = read(thrown, "code");
  const stack = read(thrown, "stack");
  const cause = causeOf(thrown, keep, [...chain, thrown]);
  const fields = fieldsOf(thrown, keep, path);
  return {
    name: nameOf(thrown),
    message: cut(textOf(read(thrown, "message")), chain.length === 0 ? maxMessage : maxMessage / 4),
    ...(typeof code === "string" && { code: cut(code, maxName) }),
    ...(typeof stack === "string" && { stack: cut(stack, chain.length === 0 ? maxStack : maxStack / 4) }),
    ...(cause !== undefined && { cause }),
    ...(fields !== undefined && { fields }),
  };
}

function causeOf(thrown: object, keep: Keep, chain: readonly unknown[]): ErrorRecord | undefined {
  const cause = read(thrown, "cause");
  if (cause === undefined) return undefined;
  if (chain.includes(cause)) return { name: "Error", message: "[the cause is an error further up: a cycle]" };
  if (chain.length === maxCauses - 1 && read(cause, "cause") !== undefined)
    return { name: "Error", message: "[further causes are not recorded]" };
  return recordOf(cause, keep, chain);
}

function fieldsOf(thrown: object, keep: Keep, path: readonly string[]): Record<string, unknown> | undefined {
  const fields: Record<string, unknown> = {};
  let count = 0;
  for (const key of ownKeys(thrown)) {
    if (key === "name" || key === "message" || key === "stack" || key === "cause" || key === "errors") continue;
    const value = read(thrown, key);
    if (value === undefined || (key === "code" && typeof value === "string")) continue;
    if (count++ === maxFields) break;
    define(fields, key, keep(value, [...path, key]), true);
  }
  const errors = read(thrown, "errors");
  if (errors !== undefined) {
    fields.errors = keep(Array.isArray(errors) && errors.length > maxAggregated ? shortened(errors) : errors, [...path, "errors"]);
    count++;
  }
  return count === 0 ? undefined : fields;
}

function shortened(errors: readonly unknown[]): unknown[] {
  const note = new Error(`[${errors.length - maxAggregated + 1} more errors are not recorded]`);
  note.stack = `Error: ${note.message}`;
  return [...errors.slice(0, maxAggregated - 1), note];
}

const builtIn: Readonly<Record<string, ErrorClass>> = {
  Error,
  TypeError,
  RangeError,
  SyntaxError,
  ReferenceError,
  EvalError,
  URIError,
  AggregateError,
};

/** The name that classes are matched by: `name`, or the class's own name where nobody set one (`class OutOfStock extends Error {}`). */
function nameOf(thrown: object): string {
  const given = read(thrown, "name");
  const made = read(read(thrown, "constructor"), "name");
  const isInherited = typeof given === "string" && Object.hasOwn(builtIn, given) && !ownKey(thrown, "name");
  const name = isInherited && typeof made === "string" && made !== "" && made !== "Object" ? made : given;
  return typeof name === "string" && name !== "" ? cut(name, maxName) : "Error";
}

function isErrorLike(thrown: unknown): thrown is object {
  if (typeof thrown !== "object" || thrown === null) return false;
  try {
    return isError(thrown) || typeof (thrown as { message?: unknown }).message === "string";
  } catch {
    return false;
  }
}

function messageOfValue(thrown: unknown): string {
  if (typeof thrown === "string") return cut(thrown, maxMessage);
  if (typeof thrown === "object" && thrown !== null) return "an object that is no error was thrown";
  if (typeof thrown === "function") return "a function was thrown";
  return `${String(thrown)} was thrown`;
}

function read(from: unknown, key: string): unknown {
  try {
    return (from as Record<string, unknown> | null | undefined)?.[key];
  } catch {
    return undefined;
  }
}

function ownKeys(of: object): string[] {
  try {
    return Object.keys(of);
  } catch {
    return [];
  }
}

function ownKey(of: object, key: string): boolean {
  try {
    return Object.hasOwn(of, key);
  } catch {
    return false;
  }
}

function textOf(value: unknown): string {
  if (typeof value === "string") return value;
  if (value === undefined || typeof value === "object" || typeof value === "function") return "";
  return String(value);
}

/** At most `length` UTF-16 units of `text`, marked where it was cut. */
export function cut(text: string, length: number): string {
  if (text.length <= length) return text;
  const mark = `… [${text.length} characters in all]`;
  return `${text.slice(0, length - mark.length)}${mark}`;
}

const ours: Readonly<Record<string, ErrorClass>> = {
  WovyrError,
  ActivityError,
  WorkflowError,
  TimeoutError,
  CancelledError,
  CompensationError,
  DeterminismError,
  PayloadError,
  ValidationError,
  ApiError,
  AuthoringError,
  NonRetryableError,
  OutcomeUnknownError,
  RetryAfterError,
};

/**
 * Puts an error together: of a class in `classes` (matched by the name of the class or the `name` of its prototype), else of Wovyr's or JavaScript's own,
 * else an `Error` of that name.
 */
export function putTogether(record: ErrorRecord, classes: readonly ErrorClass[] = []): Error {
  const error = bare(record.message);
  const prototype = prototypeOf(record, classes);
  if (prototype !== Error.prototype) Object.setPrototypeOf(error, prototype);
  if (error.name !== record.name) define(error, "name", record.name, false);
  define(error, "stack", record.stack ?? `${record.name}: ${record.message}`, false);
  if (record.cause !== undefined) define(error, "cause", causeFrom(record.cause, classes), false);
  if (record.code !== undefined) define(error, "code", record.code, true);
  for (const [key, value] of Object.entries(record.fields ?? {})) {
    if (key === "errors" && Array.isArray(value)) for (const each of value) giveClass(each, classes);
    define(error, key, value, key !== "errors" || record.name !== "AggregateError");
  }
  if (record.thrown !== undefined) define(error, "thrown", record.thrown.value, true);
  return error;
}

/** What an error holds in a list is of the listed classes, too; it comes as a value, which knows none of them. */
function giveClass(error: unknown, classes: readonly ErrorClass[]): void {
  if (!(error instanceof Error)) return;
  const listed = listedAs(error.name, classes);
  if (listed !== undefined) Object.setPrototypeOf(error, listed.prototype);
  giveClass(error.cause, classes);
  const { errors } = error as { readonly errors?: unknown };
  if (Array.isArray(errors)) for (const each of errors) giveClass(each, classes);
}

/** A cause that is no error comes back as the value that it was. */
function causeFrom(record: ErrorRecord, classes: readonly ErrorClass[]): unknown {
  return record.thrown === undefined ? putTogether(record, classes) : record.thrown.value;
}

function listedAs(name: string, classes: readonly ErrorClass[]): ErrorClass | undefined {
  return classes.find((item) => item.name === name || (Object.hasOwn(item.prototype, "name") && item.prototype.name === name));
}

function prototypeOf(record: ErrorRecord, classes: readonly ErrorClass[]): object {
  const listed = listedAs(record.name, classes);
  if (listed !== undefined) return listed.prototype as object;
  const isOurs = Object.hasOwn(ours, record.name) && record.code !== undefined && Object.hasOwn(errorCodes, record.code);
  const known = isOurs ? ours[record.name] : Object.hasOwn(builtIn, record.name) ? builtIn[record.name] : undefined;
  return (known?.prototype as object | undefined) ?? Error.prototype;
}

/** A true error (with the internal slot that inspection and structuredClone look for), without the cost of a stack. */
function bare(message: string): Error {
  const limit = Error.stackTraceLimit;
  Error.stackTraceLimit = 0;
  const error = new Error(message);
  Error.stackTraceLimit = limit;
  return error;
}

function define(on: object, key: string, value: unknown, enumerable: boolean): void {
  Object.defineProperty(on, key, {
    value,
    enumerable,
    writable: true,
    configurable: true,
  });
}
