/** How much of something runs at once, over all nodes. */
import { WovyrError } from "./errors.ts";
import { keyProblem } from "./event-key.ts";
import { checkName } from "./name.ts";
import { checkOptions, oneOf, wholeNumber } from "./option.ts";

/** What happens to what comes when as much runs as may. */
export type OnLimit = "queue" | "cancelNewest" | "cancelInProgress";

export type ConcurrencyOptions<Input = unknown> = {
  /** How many run at once: of each key, where there is one. */
  readonly limit: number;
  /** Those with the same key count together. Default: all of them. */
  readonly key?: ((input: Input) => string) | undefined;
  /** It waits (default), fails, or ends what has run longest and takes its place. */
  readonly onLimit?: OnLimit | undefined;
  /** All that name the same scope count together; default: the name of the definition, apart for activities and workflows. */
  readonly scope?: string | undefined;
};

/** As a definition keeps it. */
export type Concurrency = {
  readonly limit: number;
  readonly key?: (input: never) => string;
  readonly onLimit: OnLimit;
  readonly scope?: string;
};

export const onLimits: readonly OnLimit[] = ["queue", "cancelNewest", "cancelInProgress"];
const maxLimit = 1_000_000;

/** Throws INVALID_OPTION or INVALID_NAME, which names the option `what`. */
export function resolveConcurrency(options: ConcurrencyOptions<never>, what: string): Concurrency {
  checkOptions(options, ["limit", "key", "onLimit", "scope"], what);
  const { limit, key, onLimit = "queue", scope } = options;
  return Object.freeze({
    limit: wholeNumber(limit, 1, `${what}.limit`, maxLimit),
    ...(key !== undefined && { key: checkKeyFunction(key, `${what}.key`) }),
    onLimit: oneOf(onLimit, onLimits, `${what}.onLimit`),
    ...(scope !== undefined && { scope: checkName(scope, `${what}.scope`) }),
  });
}

/** Throws INVALID_OPTION. */
export function checkKeyFunction<Input>(key: (input: Input) => string, what: string): (input: Input) => string {
  if (typeof key === "function") return key;
  throw new WovyrError(`${what} must be a function of the input that returns a text`, { code: "INVALID_OPTION" });
}

/** What a key function makes of an input. Throws INVALID_OPTION for whatever is no text of 1 to 255 characters. */
export function keyOf(key: (input: never) => string, input: unknown, what: string): string {
  let made: unknown;
  try {
    made = key(input as never);
  } catch (error) {
    throw new WovyrError(`${what} threw: ${error instanceof Error ? error.message : String(error)}`, {
      code: "INVALID_OPTION",
      cause: error,
    });
  }
  const problem = keyProblem(made);
  if (problem === undefined) return made as string;
  throw new WovyrError(`${what} must return a text of 1 to 255 characters without control characters, not ${problem}`, {
    code: "INVALID_OPTION",
  });
}
