/**
 * Query strings, read and written by the same parameters on both sides.
 *
 * 1. Nothing is guessed: a parameter that the route does not know, one given twice, and a text that its parameter cannot read are all refused.
 * 2. Every refusal of one query string is reported at once, up to `maxViolations`; a bad name, duration or cursor keeps its own code.
 */
import { type TSchema, Type } from "@sinclair/typebox";
import { type Duration, milliseconds, zonedInstant } from "../model/duration.ts";
import { ApiError, type ErrorCode, type Violation, WovyrError } from "../model/errors.ts";
import { checkName } from "../model/name.ts";
import { durationSchema, nameSchema, timestamp as timestampSchema } from "./kinds.ts";
import { maxViolations } from "./problem.ts";

type Entry = readonly [key: string, text: string];

export type QueryParameter<T = unknown> = {
  readonly description: string;
  readonly schema: TSchema;
  /** May be given more than once. */
  readonly repeats: boolean;
  /** Set when the parameter takes every key that begins so, as in `attributes.color=red`. */
  readonly prefix?: string;
  /** Throws a `WovyrError`, or a `RangeError` that says what the text must be. */
  readonly read: (entries: readonly Entry[]) => T;
  readonly write: (name: string, value: T) => readonly Entry[];
};

// biome-ignore lint/suspicious/noExplicitAny: a parameter both reads and writes its type, so no other type stands for all of them.
export type QueryShape = Readonly<Record<string, QueryParameter<any>>>;
export type QueryOf<Q extends QueryShape> = {
  readonly [K in keyof Q]?: Q[K] extends QueryParameter<infer T> ? T : never;
};

/** The values of a query string (without its `?`); throws an `ApiError`. */
export function readQuery<Q extends QueryShape>(shape: Q, text: string): QueryOf<Q> {
  const values: Record<string, unknown> = {};
  if (text === "") return values as QueryOf<Q>;
  const violations: Violation[] = [];
  const codes = new Set<ErrorCode>();
  const refuse = (key: string, message: string, code: ErrorCode = "SCHEMA_VIOLATION") => {
    violations.push({ pointer: pointerTo(key), message });
    codes.add(code);
  };
  for (const [name, entries] of grouped(shape, text, refuse)) {
    try {
      values[name] = shape[name]?.read(entries);
    } catch (error) {
      if (!(error instanceof RangeError || error instanceof WovyrError)) throw error;
      refuse(entries[0]?.[0] ?? name, withoutSubject(error.message), error instanceof WovyrError ? error.code : undefined);
    }
  }
  const [code] = codes;
  if (code !== undefined) throw violation("The query string", violations, codes.size === 1 ? code : "SCHEMA_VIOLATION");
  return values as QueryOf<Q>;
}

/** The entries of each parameter; `refuse` gets those that may not stand there. */
function grouped(shape: QueryShape, text: string, refuse: (key: string, message: string) => void): Map<string, Entry[]> {
  const found = new Map<string, Entry[]>();
  for (const entry of entriesOf(text)) {
    const name = parameterOf(shape, entry[0]);
    const entries = name === undefined ? undefined : found.get(name);
    if (name === undefined) refuse(entry[0], "is no parameter of this operation");
    else if (entries === undefined) found.set(name, [entry]);
    else if (shape[name]?.repeats === true) entries.push(entry);
    else refuse(entry[0], "is given more than once");
  }
  return found;
}

/** The query string for these values with its `?`, or an empty text. */
export function writeQuery<Q extends QueryShape>(shape: Q, values: QueryOf<Q>): string {
  let text = "";
  for (const [name, parameter] of Object.entries(shape)) {
    const value: unknown = values[name];
    if (value === undefined) continue;
    for (const [key, part] of parameter.write(name, value)) {
      text += `${text === "" ? "?" : "&"}${encoded(key)}=${encoded(part)}`;
    }
  }
  return text;
}

/** Half a surrogate pair cannot be encoded; as U+FFFD it is no name and no cursor, and the server says so. Attributes escape it. */
function encoded(text: string): string {
  return encodeURIComponent(text.replace(loneSurrogates, "\ufffd"));
}

/** What the functions that read texts are told that they read, where a pointer says it already. */
const subject = "it";

function withoutSubject(message: string): string {
  for (const start of [`${subject}: `, `${subject} `]) if (message.startsWith(start)) return message.slice(start.length);
  return message;
}

/** What `read` makes of a part of a body; what it refuses is told with the pointer to that. */
export function readAt<T>(pointer: string, read: (subject: string) => T): T {
  try {
    return read(subject);
  } catch (error) {
    if (!(error instanceof WovyrError)) throw error;
    throw violation("The body", [{ pointer, message: withoutSubject(error.message) }], error.code);
  }
}

/** An `ApiError` that lists what is wrong with a part of a request, at most `maxViolations` of them. */
export function violation(what: string, violations: readonly Violation[], code: ErrorCode = "SCHEMA_VIOLATION"): ApiError {
  const [first] = violations;
  const more = violations.length > 1 ? ` (and ${violations.length - 1} more)` : "";
  const where = first?.pointer ? `${first.pointer} ` : "";
  return new ApiError(`${what} is not as it must be: ${where}${first?.message}${more}`, {
    code,
    errors: violations.slice(0, maxViolations),
  });
}

function entriesOf(text: string): Entry[] {
  return text
    .split("&")
    .filter((part) => part !== "")
    .map((part) => {
      const at = part.indexOf("=");
      return at < 0 ? ([decoded(part), ""] as const) : ([decoded(part.slice(0, at)), decoded(part.slice(at + 1))] as const);
    });
}

function decoded(text: string): string {
  try {
    return decodeURIComponent(text.replaceAll("+", " "));
  } catch {
    throw new ApiError("The query string has a percent sign that begins no UTF-8 character", { code: "MALFORMED_REQUEST" });
  }
}

function parameterOf(shape: QueryShape, key: string): string | undefined {
  if (Object.hasOwn(shape, key)) return shape[key]?.prefix === undefined ? key : undefined;
  return Object.keys(shape).find((name) => {
    const prefix = shape[name]?.prefix;
    return prefix !== undefined && key.startsWith(prefix);
  });
}

function pointerTo(key: string): string {
  return `/query/${key.slice(0, 255).replaceAll("~", "~0").replaceAll("/", "~1")}`;
}

// ── the parameters ──

function single<T>(
  schema: TSchema,
  description: string,
  read: (text: string) => T,
  write: (value: T) => string = String,
): QueryParameter<T> {
  return {
    schema,
    description,
    repeats: false,
    read: (entries) => read(entries[0]?.[1] ?? ""),
    write: (name, value) => [[name, write(value)]],
  };
}

export function nameParameter(description: string): QueryParameter<string> {
  return single(nameSchema, description, (text) => checkName(text, subject));
}

export function wholeNumber(description: string, least: number, most: number, standard?: number): QueryParameter<number> {
  const schema = Type.Integer({
    minimum: least,
    maximum: most,
    ...(standard !== undefined && { default: standard }),
  });
  return single(schema, description, (text) => {
    const value = /^\d{1,15}$/.test(text) ? Number(text) : Number.NaN;
    if (!(value >= least && value <= most)) throw new RangeError(`must be a whole number from ${least} to ${most}`);
    return value;
  });
}

/** Milliseconds; more than `most` counts as `most`. */
export function durationParameter(description: string, most: number): QueryParameter<number> {
  return single(durationSchema, description, (text) => {
    const value = /^-?\d+(?:\.\d+)?$/.test(text) ? Number(text) : text;
    return Math.min(milliseconds(value as Duration, subject), most);
  });
}

export function timestampParameter(description: string): QueryParameter<Date> {
  return single(
    timestampSchema,
    description,
    (text) => new Date(zonedInstant(text, subject)),
    (value) => value.toISOString(),
  );
}

export function choiceParameter<T extends string>(schema: TSchema, values: readonly T[], description: string): QueryParameter<T> {
  return single(schema, description, (text) => {
    if (!(values as readonly string[]).includes(text)) throw new RangeError(`must be one of ${values.join(", ")}`);
    return text as T;
  });
}

export function choicesParameter<T extends string>(
  schema: TSchema,
  values: readonly T[],
  description: string,
): QueryParameter<readonly T[]> {
  return {
    schema: Type.Array(schema),
    description,
    repeats: true,
    read: (entries) =>
      entries.map(([, text]) => {
        if (!(values as readonly string[]).includes(text)) throw new RangeError(`must be one of ${values.join(", ")}`);
        return text as T;
      }),
    write: (name, chosen) => chosen.map((value) => [name, value] as const),
  };
}

const longestCursor = 2_048;

export const cursorParameter: QueryParameter<string> = single(
  Type.String({ minLength: 1, maxLength: longestCursor }),
  "Where the page begins: the `nextCursor` of the page before.",
  (text) => {
    if (text === "" || text.length > longestCursor)
      throw new ApiError("This is no cursor of this list", {
        code: "INVALID_CURSOR",
      });
    return text;
  },
);

export type AttributeFilter = string | number | boolean;

/** `attributes.color=red`: `true`, `false` and JSON numbers are read as such, `"42"` in quotes as the text 42, anything else as text. */
export const attributesParameter: QueryParameter<Readonly<Record<string, AttributeFilter>>> = {
  schema: Type.Unsafe({
    type: "object",
    patternProperties: { "^attributes\\.": { type: "string" } },
    additionalProperties: false,
  }),
  description:
    'Only instances with this attribute, as `attributes.color=red`. `true`, `false` and JSON numbers are read as such; in quotes (`"42"`) they are text.',
  repeats: true,
  prefix: "attributes.",
  read: (entries) => {
    const names = entries.map(([key]) => checkName(key.slice("attributes.".length), "the name of the attribute"));
    if (new Set(names).size < names.length) throw new RangeError("is given more than once");
    return Object.fromEntries(entries.map(([, text], index) => [names[index] as string, readLiteral(text)]));
  },
  write: (_, filters) =>
    Object.entries(filters).map(([name, value]) => {
      const text = String(value);
      return [
        `attributes.${name}`,
        typeof value === "string" && (!readsAsText(text) || text.search(loneSurrogates) >= 0) ? JSON.stringify(text) : text,
      ] as const;
    }),
};

const loneSurrogates = /[\ud800-\udfff]/gu;
const jsonNumber = /^-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?$/;

function readsAsText(text: string): boolean {
  return text !== "true" && text !== "false" && !jsonNumber.test(text) && !text.startsWith('"');
}

function readLiteral(text: string): AttributeFilter {
  if (readsAsText(text)) return text;
  const value = parsed(text);
  if (typeof value === "string" || typeof value === "boolean" || (typeof value === "number" && Number.isFinite(value))) return value;
  throw new RangeError("must be text, true, false or a JSON number; text that begins with a quote is a JSON string");
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}
