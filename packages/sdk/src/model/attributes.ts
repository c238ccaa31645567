/** The rules for searchable attributes. */
import { ApiError, type Violation } from "./errors.ts";
import { checkName } from "./name.ts";

export const maxAttributes = 64;
/** Characters of one text. */
export const maxAttributeText = 1_000;
export const maxAttributeItems = 100;

/** Throws SCHEMA_VIOLATION with a pointer for each attribute that cannot be searched. */
export function checkAttributes(attributes: Readonly<Record<string, unknown>>): void {
  const violations: Violation[] = [];
  const names = Object.keys(attributes);
  if (names.length > maxAttributes)
    violations.push({
      pointer: "/attributes",
      message: `${names.length} attributes; the limit is ${maxAttributes}`,
    });
  for (const name of names.slice(0, maxAttributes)) {
    const problem = problemOf(name, attributes[name]);
    if (problem !== undefined)
      violations.push({
        pointer: `/attributes/${name.replaceAll("~", "~0").replaceAll("/", "~1")}`,
        message: problem,
      });
  }
  if (violations.length > 0)
    throw new ApiError("The attributes cannot be searched as they are.", { code: "SCHEMA_VIOLATION", errors: violations });
}

function problemOf(name: string, value: unknown): string | undefined {
  try {
    checkName(name, "the name of an attribute");
  } catch (error) {
    return (error as Error).message;
  }
  if (typeof value === "boolean" || (typeof value === "number" && Number.isFinite(value))) return undefined;
  if (value instanceof Date && !Number.isNaN(value.getTime())) return undefined;
  if (typeof value === "string") return value.length > maxAttributeText ? `longer than ${maxAttributeText} characters` : undefined;
  if (Array.isArray(value) && value.every((item) => typeof item === "string" && item.length <= maxAttributeText))
    return value.length > maxAttributeItems ? `more than ${maxAttributeItems} items` : undefined;
  return "an attribute is a text, a finite number, a boolean, a date, or an array of texts";
}
