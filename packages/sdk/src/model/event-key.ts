import { WovyrError } from "./errors.ts";

/** 1 to 255 characters, none of which is a control character; a pattern that OpenAPI can say. */
export const eventKeyPattern = "^[^\\u0000-\\u001f\\u007f]{1,255}$";
const allowed = new RegExp(eventKeyPattern);

/** How messages name the key of a wait or a publication, after the name of its event. */
export const keyText = (key: string | undefined): string => (key === undefined ? "" : ` with the key ${JSON.stringify(key)}`);

/** Returns `key` when an event may be published and awaited with it; throws INVALID_OPTION for any other. */
export function checkEventKey(key: unknown, what: string): string {
  if (typeof key === "string" && allowed.test(key) && key.isWellFormed()) return key;
  const shown = typeof key === "string" ? `a text of ${key.length} characters` : key === null ? "null" : typeof key;
  throw new WovyrError(`the key of ${what} must be a text of 1 to 255 characters without control characters, not ${shown}`, {
    code: "INVALID_OPTION",
  });
}
