/**
 * Schemas: TypeBox, or anything that speaks Standard Schema.
 *
 * 1. Validation is synchronous.
 * 2. A TypeBox value is only checked: nothing is coerced and no default filled in. A Standard Schema's output is what is recorded.
 * 3. A value that does not fit is a `ValidationError`; a schema that does not work is INVALID_DEFINITION, never blamed on the value. That of what an activity
 *    or a run comes to is looked at before it begins: afterwards it would be too late.
 * 4. An effect or a generator in a value that a schema would refuse, or change, is told as that: EFFECT_NOT_YIELDED, as where there is no schema.
 */
import { FormatRegistry, Kind, type Static, type TSchema } from "@sinclair/typebox";
import { type TypeCheck, TypeCompiler, TypeCompilerUnknownTypeError, ValueErrorType } from "@sinclair/typebox/compiler";
import type { StandardSchemaV1 } from "@standard-schema/spec";
import { ValidationError, type Violation, WovyrError } from "../model/errors.ts";
import { checkRun } from "../model/unrun-value.ts";
import { registerFormats } from "./formats.ts";

export type Schema = TSchema | StandardSchemaV1;
/** What a caller passes: before defaults and transforms. */
export type InputOf<S> = S extends TSchema ? Static<S> : S extends StandardSchemaV1 ? StandardSchemaV1.InferInput<S> : never;
/** What the function behind the schema sees, and what is recorded. */
export type OutputOf<S> = S extends TSchema ? Static<S> : S extends StandardSchemaV1 ? StandardSchemaV1.InferOutput<S> : never;
export type MaybeSchema = Schema | undefined;

type InvalidCode = "INVALID_INPUT" | "INVALID_OUTPUT";

/**
 * Returns what `schema` makes of `value`, or `value` itself when there is no schema.
 * Throws `ValidationError` (with `code`), `PayloadError` for an effect that was not run, or INVALID_DEFINITION when the schema itself does not work.
 */
export function parse(schema: Schema | undefined, value: unknown, what: string, code: InvalidCode = "INVALID_INPUT"): unknown {
  if (schema === undefined) return value;
  return isTypeBox(schema) ? checked(schema, value, what, code) : validated(schema, value, what, code);
}

/** Throws INVALID_DEFINITION unless `schema` is undefined or a schema. */
export function checkSchema(schema: unknown, what: string): void {
  if (schema === undefined) return;
  const isObject = (typeof schema === "object" && schema !== null) || typeof schema === "function";
  if (isObject && (Kind in schema || "~standard" in schema)) return;
  throw new WovyrError(`${what} must be a TypeBox schema (Type.Object({ … })) or a Standard Schema (zod, valibot, arktype, …)`, {
    code: "INVALID_DEFINITION",
  });
}

/** Throws INVALID_DEFINITION when a schema can check nothing, whatever the value: it uses a format or a kind that nobody registered, or a pattern that is none. */
export function checkWorks(schema: Schema | undefined, what: string): void {
  if (schema !== undefined && isTypeBox(schema) && !checks.has(schema)) compiled(schema, what);
}

/** The JSON Schema of what callers pass, or null when the schema does not give one. */
export function jsonSchemaOf(schema: Schema): object | null {
  if (isTypeBox(schema)) return schema;
  const { jsonSchema } = schema["~standard"] as { jsonSchema?: { input?: (options: { target: string }) => unknown } };
  const { toJSONSchema, toJsonSchema } = schema as { toJSONSchema?: () => unknown; toJsonSchema?: () => unknown };
  try {
    const made = jsonSchema?.input?.({ target: "draft-2020-12" }) ?? toJSONSchema?.call(schema) ?? toJsonSchema?.call(schema);
    return typeof made === "object" ? made : null;
  } catch {
    return null; // a schema with transforms, or one that its library cannot express
  }
}

function isTypeBox(schema: Schema): schema is TSchema {
  return Kind in schema;
}

// ── TypeBox ──

const checks = new WeakMap<TSchema, TypeCheck<TSchema>>();

function checked(schema: TSchema, value: unknown, what: string, code: InvalidCode): unknown {
  const check = checks.get(schema) ?? compiled(schema, what);
  let violations: Violation[];
  try {
    if (check.Check(value)) return value;
    violations = violationsOf(check, value, what);
  } catch (cause) {
    if (cause instanceof WovyrError) throw cause;
    violations = [{ pointer: "", message: `cannot be read (${messageOf(cause)})` }]; // a cycle, or a getter that throws
  }
  // Whatever the schema accepts stays as it is, and is found when it is stored.
  checkRun(value, what);
  throw invalid(violations, what, code);
}

function compiled(schema: TSchema, what: string): TypeCheck<TSchema> {
  registerFormats();
  for (const { format } of formatsIn(schema)) if (!FormatRegistry.Has(format)) throw unknownFormat(format, what);
  try {
    const check = TypeCompiler.Compile(schema);
    checks.set(schema, check);
    return check;
  } catch (cause) {
    if (cause instanceof TypeCompilerUnknownTypeError && typeof cause.schema[Kind] === "string")
      throw unknownKind(cause.schema[Kind], what);
    throw new WovyrError(`the schema of ${what} cannot be compiled: ${messageOf(cause)}`, { code: "INVALID_DEFINITION", cause });
  }
}

/** The texts with a format in a schema, however deep. */
function* formatsIn(part: unknown, seen = new Set<unknown>()): Generator<{ readonly format: string }> {
  if (typeof part !== "object" || part === null || seen.has(part)) return;
  seen.add(part);
  if ((part as Partial<TSchema>)[Kind] === "String" && "format" in part && typeof part.format === "string") yield { format: part.format };
  for (const inner of Object.values(part)) yield* formatsIn(inner, seen);
}

function unknownFormat(name: unknown, what: string): WovyrError {
  const format = JSON.stringify(name);
  return new WovyrError(
    `the schema of ${what} uses the format ${format}, which has no check: FormatRegistry.Set(${format}, (text) => …), of @wovyr/sdk, before it is used`,
    { code: "INVALID_DEFINITION" },
  );
}

function unknownKind(name: string, what: string): WovyrError {
  const kind = JSON.stringify(name);
  return new WovyrError(
    `the schema of ${what} is of the kind ${kind}, which has no check: TypeRegistry.Set(${kind}, (schema, value) => …), of @wovyr/sdk, before it is used`,
    { code: "INVALID_DEFINITION" },
  );
}

const maxViolations = 100;

function violationsOf(check: TypeCheck<TSchema>, value: unknown, what: string): Violation[] {
  const violations: Violation[] = [];
  const missing = new Set<string>();
  for (const error of check.Errors(value)) {
    // Somebody has taken it away since.
    if (error.type === ValueErrorType.StringFormatUnknown) throw unknownFormat(error.schema.format, what);
    // What is missing is of no type either.
    if (missing.has(error.path)) continue;
    if (error.type === ValueErrorType.ObjectRequiredProperty) missing.add(error.path);
    violations.push({ pointer: error.path, message: error.message });
    if (violations.length === maxViolations) break;
  }
  return violations;
}

// ── Standard Schema ──

function validated(schema: StandardSchemaV1, value: unknown, what: string, code: InvalidCode): unknown {
  checkRun(value, what);
  let result: ReturnType<StandardSchemaV1["~standard"]["validate"]>;
  try {
    result = schema["~standard"].validate(value);
  } catch (cause) {
    throw invalid([{ pointer: "", message: `the schema threw (${messageOf(cause)})` }], what, code, cause);
  }
  if (isPromise(result)) {
    result.then(undefined, () => {}); // nobody else listens to it
    throw new WovyrError(
      `the schema of ${what} answers with a promise: it validates asynchronously (do that in an activity), or one of its functions threw`,
      { code: "INVALID_DEFINITION" },
    );
  }
  if (result.issues === undefined) return result.value;
  const violations = result.issues.slice(0, maxViolations).map((issue) => ({ pointer: pointerOf(issue.path), message: issue.message }));
  throw invalid(violations, what, code);
}

function isPromise<T>(value: T | Promise<T>): value is Promise<T> {
  return typeof (value as { then?: unknown }).then === "function";
}

function pointerOf(path: StandardSchemaV1.Issue["path"]): string {
  const escaped = (step: PropertyKey) => String(step).replaceAll("~", "~0").replaceAll("/", "~1");
  return (path ?? []).map((step) => `/${escaped(typeof step === "object" ? step.key : step)}`).join("");
}

// ── both ──

const shownViolations = 5;

function invalid(violations: readonly Violation[], what: string, code: InvalidCode, cause?: unknown): ValidationError {
  const lines = violations.slice(0, shownViolations).map(({ pointer, message }) => `${pointer === "" ? "the value" : pointer}: ${message}`);
  const more = violations.length > shownViolations ? `; and ${violations.length - shownViolations} more` : "";
  return new ValidationError(`${what} does not fit its schema: ${lines.join("; ")}${more}`, {
    violations,
    code,
    ...(cause !== undefined && { cause }),
  });
}

function messageOf(cause: unknown): string {
  return cause instanceof Error ? cause.message : String(cause);
}
