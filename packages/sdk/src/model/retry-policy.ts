/**
 * When a failed activity is tried again.
 *
 * 1. A delay is always a finite whole number of milliseconds between 0 and `maxDelay`.
 * 2. Before jitter, delays never decrease from attempt to attempt.
 */
import { type Duration, milliseconds } from "./duration.ts";
import { WovyrError } from "./errors.ts";
import { checkOptions, wholeNumber } from "./option.ts";

export type Backoff = "fixed" | "linear" | "exponential";
export type Jitter = "none" | "full" | "equal";

/** As users write it; what is left out comes from `defaultRetry`. */
export type RetryPolicy = {
  /** The first attempt counts; `Infinity` never gives up. */
  readonly maxAttempts?: number | undefined;
  readonly backoff?: Backoff | undefined;
  /** The delay before the second attempt. */
  readonly initialDelay?: Duration | undefined;
  readonly maxDelay?: Duration | undefined;
  /** What an exponential delay is multiplied with from attempt to attempt, at least 1. */
  readonly factor?: number | undefined;
  /** `full`: anywhere between 0 and the delay. `equal`: in the upper half of it. */
  readonly jitter?: Jitter | undefined;
};

/** Delays in milliseconds. */
export type ResolvedRetry = {
  readonly maxAttempts: number;
  readonly backoff: Backoff;
  readonly initialDelay: number;
  readonly maxDelay: number;
  readonly factor: number;
  readonly jitter: Jitter;
};

export const defaultRetry: ResolvedRetry = Object.freeze({
  maxAttempts: 5,
  backoff: "exponential",
  initialDelay: 1_000,
  maxDelay: 60_000,
  factor: 2,
  jitter: "full",
});

const backoffs: readonly string[] = ["fixed", "linear", "exponential"] satisfies Backoff[];
const jitters: readonly string[] = ["none", "full", "equal"] satisfies Jitter[];

/** Merges policies, later ones over earlier ones, over the defaults; throws INVALID_OPTION or INVALID_DURATION. */
export function resolveRetry(...policies: readonly (RetryPolicy | undefined)[]): ResolvedRetry {
  const given: { -readonly [Key in keyof RetryPolicy]: RetryPolicy[Key] } = {};
  for (const policy of policies) {
    if (policy === undefined) continue;
    checkOptions(policy, ["maxAttempts", "backoff", "initialDelay", "maxDelay", "factor", "jitter"], "retry");
    for (const [key, value] of Object.entries(policy)) if (value !== undefined) Object.assign(given, { [key]: value });
  }
  const initialDelay =
    given.initialDelay === undefined ? defaultRetry.initialDelay : milliseconds(given.initialDelay, "retry.initialDelay");
  const maxDelay =
    given.maxDelay === undefined ? Math.max(defaultRetry.maxDelay, initialDelay) : milliseconds(given.maxDelay, "retry.maxDelay");
  if (given.initialDelay !== undefined && initialDelay > maxDelay) {
    throw new WovyrError(`retry.initialDelay (${initialDelay} ms) is longer than retry.maxDelay (${maxDelay} ms)`, {
      code: "INVALID_OPTION",
    });
  }
  return Object.freeze({
    maxAttempts: attempts(given.maxAttempts ?? defaultRetry.maxAttempts),
    backoff: oneOf(given.backoff ?? defaultRetry.backoff, backoffs, "retry.backoff"),
    initialDelay: Math.min(initialDelay, maxDelay),
    maxDelay,
    factor: multiplier(given.factor ?? defaultRetry.factor),
    jitter: oneOf(given.jitter ?? defaultRetry.jitter, jitters, "retry.jitter"),
  });
}

/** Milliseconds between the end of attempt number `attempt` (from 1) and the next; `fraction` in [0, 1) is the luck of the draw. */
export function retryDelay(policy: ResolvedRetry, attempt: number, fraction: number): number {
  const delay = delayBeforeJitter(policy, attempt);
  switch (policy.jitter) {
    case "none":
      return delay;
    case "full":
      return Math.round(delay * fraction);
    case "equal":
      return Math.round(delay / 2 + (delay / 2) * fraction);
  }
}

/** The delay that jitter starts from. */
export function delayBeforeJitter(policy: ResolvedRetry, attempt: number): number {
  if (policy.initialDelay === 0) return 0; // 0 × Infinity is no number
  const steps = Math.max(0, attempt - 1);
  const growth = policy.backoff === "fixed" ? 1 : policy.backoff === "linear" ? steps + 1 : policy.factor ** steps;
  return Math.min(policy.maxDelay, Math.round(policy.initialDelay * growth));
}

function attempts(value: unknown): number {
  return value === Number.POSITIVE_INFINITY ? value : wholeNumber(value, 1, "retry.maxAttempts");
}

function multiplier(value: unknown): number {
  if (typeof value === "number" && Number.isFinite(value) && value >= 1) return value;
  throw new WovyrError("retry.factor must be a finite number of at least 1", {
    code: "INVALID_OPTION",
  });
}

function oneOf<Text extends string>(value: Text, choices: readonly string[], what: string): Text {
  if (choices.includes(value)) return value;
  throw new WovyrError(`${what} must be one of ${choices.join(", ")}`, {
    code: "INVALID_OPTION",
  });
}
