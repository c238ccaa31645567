/**
 * Bodies against their schemas.
 *
 * 1. A schema is compiled once, when its route is registered.
 * 2. All violations are reported, one per place, up to `maxViolations`. Where the only thing wrong is a name, the code says so.
 * 3. Of what may be one of several things, and says by its `type` which, the violations of that one are reported.
 * 4. A typed body may hold a Map, a Date or another object where the schema says object. They have no own properties to find fault with, so they are refused by their prototype.
 */
import type { TObject, TSchema } from "@sinclair/typebox";
import type { ValueError } from "@sinclair/typebox/compiler";
import { isNameSchema, maxViolations, ruleOf, TypeCompiler, ValueErrorType, type Violation, violation } from "@wovyr/sdk/internal";

/** Returns a function that throws an `ApiError` unless a body fits the schema. */
export function bodyCheck(schema: TObject): (body: unknown) => void {
  const compiled = TypeCompiler.Compile(schema);
  return (body) => {
    if (!compiled.Check(body)) refuse(compiled.Errors(body));
    const exotic = exoticObjects(schema, body, "");
    if (exotic.length > 0) throw violation("The body", exotic);
  };
}

function refuse(errors: Iterable<ValueError>): never {
  const found = new Map<string, Violation>();
  let onlyNames = true;
  for (const error of inVariants(errors)) {
    if (found.has(error.path)) continue;
    if (found.size === maxViolations) break;
    found.set(error.path, { pointer: error.path, message: messageOf(error) });
    onlyNames &&= isNameSchema(error.schema) && typeof error.value === "string";
  }
  throw violation("The body", [...found.values()], onlyNames ? "INVALID_NAME" : "SCHEMA_VIOLATION");
}

/** Where a body may be one of several objects that a property tells apart: what is wrong with the one that it says it is. */
function* inVariants(errors: Iterable<ValueError>): Generator<ValueError> {
  for (const error of errors) {
    const variants = error.type === ValueErrorType.Union ? variantsOf(error.schema) : undefined;
    if (variants === undefined || typeof error.value !== "object" || error.value === null) {
      yield error;
      continue;
    }
    const type: unknown = Reflect.get(error.value, "type");
    const variant = variants.findIndex((names) => names.includes(type as string));
    if (variant >= 0) yield* inVariants(error.errors[variant] ?? []);
    else yield { ...error, path: `${error.path}/type`, schema: { ...error.schema, enum: variants.flat() } };
  }
}

/** The values of `type` of each variant of a union; undefined when that does not tell them apart. */
function variantsOf(schema: TSchema): readonly (readonly string[])[] | undefined {
  const members: readonly TSchema[] = schema.anyOf ?? [];
  const variants = members.map(({ properties }): readonly string[] | undefined => properties?.type?.enum);
  return variants.every((names) => names !== undefined) ? variants : undefined;
}

function messageOf(error: ValueError): string {
  const { schema, type } = error;
  if (type === ValueErrorType.ObjectRequiredProperty) return "is missing";
  if (type === ValueErrorType.ObjectAdditionalProperties) return "is no property that may stand here";
  if (Array.isArray(schema.enum)) return `must be one of ${schema.enum.join(", ")}`;
  const rule = ruleOf(schema);
  if (rule !== undefined) return `must be ${rule}`;
  return error.message
    .replace("Expected", "must be")
    .replace("must be string length", "must have a length")
    .replace("must be array length", "must have a length");
}

function exoticObjects(schema: TSchema, value: unknown, pointer: string): Violation[] {
  if (typeof value !== "object" || value === null) return [];
  if (Array.isArray(value)) {
    const items: TSchema | undefined = schema.items;
    return items?.type === "object" ? value.flatMap((item, index) => exoticObjects(items, item, `${pointer}/${index}`)) : [];
  }
  if (schema.type !== "object") return [];
  const prototype: unknown = Object.getPrototypeOf(value);
  if (prototype !== Object.prototype && prototype !== null) return [{ pointer, message: "must be a plain object" }];
  const properties: Record<string, TSchema> = schema.properties ?? {};
  return Object.keys(properties).flatMap((key) => exoticObjects(properties[key] as TSchema, Reflect.get(value, key), `${pointer}/${key}`));
}
