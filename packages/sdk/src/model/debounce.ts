/** Starts of a workflow that come one soon after another are one start, with the input of the last. */
import { checkKeyFunction } from "./concurrency.ts";
import { type Duration, milliseconds } from "./duration.ts";
import { WovyrError } from "./errors.ts";
import { checkOptions } from "./option.ts";

export type DebounceOptions<Input = unknown> = {
  /** Starts with the same key are one. Default: all of the workflow. */
  readonly key?: ((input: Input) => string) | undefined;
  /** How long no other start may have come. */
  readonly period: Duration;
  /** From the first start on it is not put off for longer than this; default 12 hours, which is the most. */
  readonly maxWait?: Duration | undefined;
};

/** As a definition keeps it; durations in milliseconds. */
export type Debounce = { readonly key?: (input: never) => string; readonly period: number; readonly maxWait: number };

/** What is known of a start for a day is enough for one that is put off for less. */
const longestWait = 12 * 3_600_000;

/** Throws INVALID_OPTION or INVALID_DURATION. */
export function resolveDebounce(options: DebounceOptions<never>, what: string): Debounce {
  checkOptions(options, ["key", "period", "maxWait"], what);
  const { key } = options;
  const period = milliseconds(options.period, `${what}.period`);
  const maxWait = milliseconds(options.maxWait ?? longestWait, `${what}.maxWait`);
  if (period < 1 || period > maxWait || maxWait > longestWait)
    throw new WovyrError(`${what}: period must be at least 1 ms and at most maxWait, and maxWait at most 12 hours`, {
      code: "INVALID_OPTION",
    });
  return Object.freeze({ ...(key !== undefined && { key: checkKeyFunction(key, `${what}.key`) }), period, maxWait });
}
