/**
 * Texts and numbers of the API that are more than their JSON type. A schema says the JSON type, for OpenAPI and for the check of a body's shape;
 * what the text means is read by the function of the model that knows (`checkName`, `milliseconds`, `instant`), with its own error.
 */
import { Kind, type TSchema, type TUnsafe, Type, TypeRegistry } from "@sinclair/typebox";
import type { Duration } from "../model/duration.ts";

TypeRegistry.Set<{ enum: readonly string[] }>("wovyr:choice", (schema, value) => typeof value === "string" && schema.enum.includes(value));
TypeRegistry.Set("wovyr:timestamp", (_, value) => typeof value === "string");
TypeRegistry.Set("wovyr:duration", (_, value) => typeof value === "string" || typeof value === "number");

/** One of some texts, as `enum`: a union of literals would become `anyOf`, which client generators render badly. */
export function choice<const T extends string>(values: readonly T[], options: { $id?: string; description?: string } = {}): TUnsafe<T> {
  return Type.Unsafe<T>({
    ...options,
    [Kind]: "wovyr:choice",
    type: "string",
    enum: [...values],
  });
}

export const timestamp: TUnsafe<string> = Type.Unsafe<string>({
  [Kind]: "wovyr:timestamp",
  type: "string",
  format: "date-time",
  description: "RFC 3339, with its zone",
});

const durationText = "milliseconds, a text such as `90s`, `3 days` or `1h30m`, or ISO 8601 such as `P1DT2H`";

export const durationSchema: TUnsafe<Duration> = Type.Unsafe<Duration>({
  [Kind]: "wovyr:duration",
  type: ["string", "number"],
  description: durationText,
});

/** Name of an id or of anything that users name; a text that breaks the rule is answered with INVALID_NAME. */
export const nameSchema = Type.String({
  title: "Name",
  pattern: "^(?!\\.{1,2}$)[A-Za-z0-9_.:~@-]{1,255}$",
  description: "1 to 255 characters of `A-Z a-z 0-9 _ . : ~ @ -`, but neither `.` nor `..`",
});

export function isNameSchema(schema: TSchema): boolean {
  return schema.title === nameSchema.title;
}

/** What a value must be, by the constraints of its schema: its description says what it is for, unless only that can tell the rule. */
export function ruleOf(schema: TSchema): string | undefined {
  const {
    minimum = Number.NEGATIVE_INFINITY,
    maximum = Number.POSITIVE_INFINITY,
    minItems = 0,
    maxItems = Number.POSITIVE_INFINITY,
  } = schema;
  switch (schema[Kind]) {
    case "wovyr:duration":
      return `a duration: ${durationText}`;
    case "Integer":
      return `a whole number${rangeOf(minimum, maximum)}`;
    case "Number":
      return `a number${rangeOf(minimum, maximum)}`;
    case "Boolean":
      return "true or false";
    case "Object":
    case "Record":
      return "an object";
    case "Array":
      return minItems === 0 && maxItems === Number.POSITIVE_INFINITY ? "a list" : `a list of ${countOf(minItems, maxItems)} items`;
    case "String":
      if (schema.pattern === undefined)
        return schema.maxLength === undefined ? "a text" : `a text of ${countOf(schema.minLength, schema.maxLength)} characters`;
  }
  return schema.description;
}

const rangeOf = (least: number, most: number): string =>
  Number.isFinite(most)
    ? Number.isFinite(least)
      ? ` from ${grouped(least)} to ${grouped(most)}`
      : ` of at most ${grouped(most)}`
    : Number.isFinite(least)
      ? ` of at least ${grouped(least)}`
      : "";

const countOf = (least = 0, most = Number.POSITIVE_INFINITY): string =>
  Number.isFinite(most)
    ? least === 0
      ? `at most ${grouped(most)}`
      : `${grouped(least)} to ${grouped(most)}`
    : `at least ${grouped(least)}`;

const grouped = (count: number): string => String(count).replace(/\B(?=(\d{3})+$)/g, ",");

/** Any JSON value. */
export const anyValue = Type.Unknown();
