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

/** What `check` refuses is told with what it is an option of. */
export function checkedFor<T>(what: string, check: () => T): T {
  try {
    return check();
  } catch (error) {
    if (!(error instanceof WovyrError)) throw error;
    throw new WovyrError(`${what}: ${error.message}`, { code: error.code });
  }
}

/** Returns `value` when it is a whole number from `least` to `most`; throws INVALID_OPTION, which names the option `what`. */
export function wholeNumber(value: unknown, least: number, what: string, most = Number.MAX_SAFE_INTEGER): number {
  if (typeof value === "number" && Number.isSafeInteger(value) && value >= least && value <= most) return value;
  const upTo = most === Number.MAX_SAFE_INTEGER ? "" : ` and at most ${most}`;
  throw new WovyrError(
    `${what} must be a whole number of at least ${least}${upTo}, not ${typeof value === "number" ? value : typeof value}`,
    { code: "INVALID_OPTION" },
  );
}

/** Throws INVALID_OPTION unless `value` is true, false or undefined. */
export function checkFlag(value: unknown, what: string): void {
  if (value === undefined || typeof value === "boolean") return;
  throw new WovyrError(`${what} must be true or false, not ${typeof value === "string" ? JSON.stringify(value) : typeof value}`, {
    code: "INVALID_OPTION",
  });
}

/** Returns `value` when it is one of `choices`; throws INVALID_OPTION, which names the option `what`. */
export function oneOf<Text extends string>(value: Text, choices: readonly Text[], what: string): Text {
  if (choices.includes(value)) return value;
  throw new WovyrError(`${what} must be one of ${choices.join(", ")}`, { code: "INVALID_OPTION" });
}

export type Defined<T> = { [K in keyof T]?: Exclude<T[K], undefined> };

/** Without the properties that are undefined. */
export function defined<T extends object>(options: T): Defined<T> {
  return Object.fromEntries(Object.entries(options).filter(([, value]) => value !== undefined)) as Defined<T>;
}
