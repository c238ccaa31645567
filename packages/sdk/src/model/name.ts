import { WovyrError } from "./errors.ts";

const allowed = /^[A-Za-z0-9_.:~@-]{1,255}$/;

export function isName(text: unknown): text is string {
  return typeof text === "string" && allowed.test(text) && text !== "." && text !== "..";
}

/** Returns `text` when it may be a name or an id: 1–255 characters of `A–Z a–z 0–9 _ . : ~ @ -`, but not `.` or `..`; else INVALID_NAME. */
export function checkName(text: unknown, what: string): string {
  if (isName(text)) return text;
  throw new WovyrError(`${what} must be 1 to 255 characters of A-Z a-z 0-9 _ . : ~ @ - and neither "." nor "..", not ${shown(text)}`, {
    code: "INVALID_NAME",
  });
}

const shownLength = 80;

function shown(text: unknown): string {
  if (typeof text !== "string") return text === null ? "null" : typeof text;
  if (text === "") return "an empty text";
  return text.length <= shownLength ? JSON.stringify(text) : `${JSON.stringify(text.slice(0, shownLength))}… (${text.length} characters)`;
}
