import { type ErrorClass, WovyrError } from "../model/errors.ts";

export type FunctionKind = "function" | "async function" | "function*" | "async function*";

const kinds: Readonly<Record<string, FunctionKind>> = {
  "[object AsyncFunction]": "async function",
  "[object GeneratorFunction]": "function*",
  "[object AsyncGeneratorFunction]": "async function*",
};

/** What sort of function `fn` is, as far as it can be told without calling it; undefined when it is none. */
export function functionKind(fn: unknown): FunctionKind | undefined {
  return typeof fn === "function" ? (kinds[Object.prototype.toString.call(fn)] ?? "function") : undefined;
}

/** Throws INVALID_DEFINITION unless `classes` is undefined or a list of error classes. */
export function checkErrorClasses(classes: readonly ErrorClass[] | undefined, what: string): void {
  if (classes === undefined) return;
  const isErrorClass = (item: unknown) => typeof item === "function" && item.prototype instanceof Error;
  if (Array.isArray(classes) && classes.every(isErrorClass)) return;
  throw new WovyrError(`the \`errors\` of ${what} must be a list of classes that extend Error`, { code: "INVALID_DEFINITION" });
}

/** Throws INVALID_DEFINITION unless `classify` is undefined or a synchronous function. */
export function checkClassifier(classify: unknown, what: string): void {
  if (classify === undefined || functionKind(classify) === "function") return;
  throw new WovyrError(`the \`classify\` of ${what} must be a synchronous function: \`(error) => "permanent"\``, {
    code: "INVALID_DEFINITION",
  });
}
