/** How many begin within a time, over all nodes. */
import { checkKeyFunction } from "./concurrency.ts";
import { type Duration, milliseconds } from "./duration.ts";
import { WovyrError } from "./errors.ts";
import { checkName } from "./name.ts";
import { checkOptions, wholeNumber } from "./option.ts";

export type RateLimitOptions<Input = unknown> = {
  /** How many begin within any `per`: of each key, where there is one. */
  readonly limit: number;
  readonly per: Duration;
  /** Those with the same key count together. Default: all of them. */
  readonly key?: ((input: Input) => string) | undefined;
  /** All that name the same scope count together; default: the name of the definition. */
  readonly scope?: string | undefined;
};

/** As a definition keeps it; `per` in milliseconds. */
export type RateLimit = {
  readonly limit: number;
  readonly per: number;
  readonly key?: (input: never) => string;
  readonly scope?: string;
};

const maxLimit = 1_000_000;
const longestPeriod = 31 * 24 * 3_600_000;

/** Throws INVALID_OPTION, INVALID_DURATION or INVALID_NAME, which names the option `what`. */
export function resolveRateLimit(options: RateLimitOptions<never>, what: string): RateLimit {
  checkOptions(options, ["limit", "per", "key", "scope"], what);
  const { limit, per, key, scope } = options;
  const period = milliseconds(per, `${what}.per`);
  if (period < 1 || period > longestPeriod) throw new WovyrError(`${what}.per must be from 1 ms to 31 days`, { code: "INVALID_OPTION" });
  return Object.freeze({
    limit: wholeNumber(limit, 1, `${what}.limit`, maxLimit),
    per: period,
    ...(key !== undefined && { key: checkKeyFunction(key, `${what}.key`) }),
    ...(scope !== undefined && { scope: checkName(scope, `${what}.scope`) }),
  });
}
