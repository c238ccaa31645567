import { WovyrError } from "./errors.ts";

/** 1 to 255 characters, none of which is a control character; a pattern that OpenAPI can say. */
export const eventKeyPattern = "^[^\\u0000-\\u001f\\u007f]{1,255}$";
const allowed = new RegExp(eventKeyPattern);
const longest = 255;

/** What keeps a value from being a key, after "not"; undefined when nothing does. */
export function keyProblem(key: unknown): string | undefined {
  if (typeof key !== "string") {
    if (typeof (key as { then?: unknown } | null | undefined)?.then === "function") return "a promise";
    return key === null || key === undefined ? String(key) : `a value of type ${typeof key}`;
  }
  if (key === "") return "an empty text";
  if (key.length > longest) return `a text of ${key.length} characters`;
  return allowed.test(key) && key.isWellFormed() ? undefined : "a text that holds control characters or halves of a character";
}

/** How messages name the key of a wait or a publication, after the name of its event. */
export const keyText = (key: string | undefined): string => (key === undefined ? "" : ` with the key ${JSON.stringify(key)}`);

/** Returns `key` when an event may be published and awaited with it; throws INVALID_OPTION for any other. */
export function checkEventKey(key: unknown, what: string): string {
  const problem = keyProblem(key);
  if (problem === undefined) return key as string;
  throw new WovyrError(`the key of ${what} must be a text of 1 to ${longest} characters without control characters, not ${problem}`, {
    code: "INVALID_OPTION",
  });
}
