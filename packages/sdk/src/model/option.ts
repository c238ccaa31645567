import { WovyrError } from "./errors.ts";

/** Throws INVALID_OPTION unless `options` is a plain record (or undefined) that has no keys but `known`. */
export function checkOptions(options: unknown, known: readonly string[], what: string): void {
  if (options === undefined) return;
  if (typeof options !== "object" || options === null || Array.isArray(options)) {
    throw new WovyrError(`the options of ${what} must be an object`, {
      code: "INVALID_OPTION",
    });
  }
  for (const key of Object.keys(options)) {
    if (known.includes(key)) continue;
    throw new WovyrError(`${what} has no option ${JSON.stringify(key)}; it takes ${known.join(", ")}`, { code: "INVALID_OPTION" });
  }
}

/** Returns `value` when it is a whole number of at least `least`; throws INVALID_OPTION, which names the option `what`. */
export function wholeNumber(value: unknown, least: number, what: string): number {
  if (typeof value === "number" && Number.isSafeInteger(value) && value >= least) return value;
  throw new WovyrError(`${what} must be a whole number of at least ${least}, not ${typeof value === "number" ? value : typeof value}`, {
    code: "INVALID_OPTION",
  });
}
