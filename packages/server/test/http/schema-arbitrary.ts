/** Values for a schema of the API, and schemas that a value may not exceed. */
import type { TSchema } from "@sinclair/typebox";
import fc from "fast-check";

const names = fc.oneof(fc.stringMatching(/^[A-Za-z0-9_.:~@-]{1,12}$/), fc.constantFrom("waiting", "a", "x".repeat(255)));
const durations = fc.oneof(fc.nat(50), fc.constantFrom("5ms", "PT0.01S", "0"));
const times = fc.date({ min: new Date(0), max: new Date("9999-01-01T00:00:00Z"), noInvalidDate: true }).map((date) => date.toISOString());

/** JSON values that fit the schema. */
export function fitting(schema: TSchema): fc.Arbitrary<unknown> {
  if (Array.isArray(schema.enum)) return fc.constantFrom(...schema.enum);
  if (Array.isArray(schema.anyOf)) return fc.oneof(...schema.anyOf.map(fitting));
  if (schema.title === "Name") return names.filter((name) => name !== "." && name !== "..");
  if (schema.format === "date-time") return times;
  if (Array.isArray(schema.type)) return durations;
  switch (schema.type) {
    case "object":
      return schema.patternProperties === undefined ? objects(schema) : records(schema);
    case "array":
      return fc.array(fitting(schema.items), { minLength: schema.minItems ?? 0, maxLength: 4 });
    case "string":
      return schema.pattern === undefined
        ? fc.string({ maxLength: Math.min(schema.maxLength ?? 20, 20) })
        : fc.stringMatching(new RegExp(schema.pattern));
    case "number":
      return fc.double({ noNaN: true, noDefaultInfinity: true });
    case "integer":
      return fc.integer({ min: schema.minimum ?? 0, max: schema.maximum ?? 1_000 });
    case "boolean":
      return fc.boolean();
    default:
      return fc.jsonValue({ maxDepth: 3 });
  }
}

function objects(schema: TSchema): fc.Arbitrary<unknown> {
  const fields = Object.entries<TSchema>(schema.properties ?? {}).map(([key, value]) => [key, fitting(value)] as const);
  return fc.record(Object.fromEntries(fields), { requiredKeys: schema.required ?? [], noNullPrototype: true });
}

function records(schema: TSchema): fc.Arbitrary<unknown> {
  const [[pattern, value] = ["", {} as TSchema]] = Object.entries<TSchema>(schema.patternProperties);
  return fc.dictionary(pattern.startsWith("^(?!") ? names : fc.string(), fitting(value), { maxKeys: 4, noNullPrototype: true });
}

/** The same schema, but nothing that it does not name may stand anywhere: to find what an answer says beside its schema. */
export function closed<T extends TSchema>(schema: T): T {
  return closedNode(schema) as T;
}

function closedNode(node: unknown): unknown {
  if (Array.isArray(node)) return node.map(closedNode);
  if (typeof node !== "object" || node === null) return node;
  const copy: Record<PropertyKey, unknown> = {};
  for (const key of Reflect.ownKeys(node))
    copy[key] = typeof key === "symbol" ? Reflect.get(node, key) : closedNode(Reflect.get(node, key));
  if (copy.type === "object" && "properties" in copy && Object.keys(copy.properties as object).length > 0)
    copy.additionalProperties ??= false;
  return copy;
}
