/**
 * When a failed activity is tried again.
 *
 * 1. A delay is always a finite whole number of milliseconds between 0 and `maxDelay`.
 * 2. Before jitter, delays never decrease from attempt to attempt.
 * 3. Policies are merged option by option, later over earlier; rules of a later one are asked before those of an earlier one.
 */
import { type Duration, milliseconds } from "./duration.ts";
import { WovyrError } from "./errors.ts";
import type { FailureKind } from "./failure-kind.ts";
import { checkOptions, oneOf, wholeNumber } from "./option.ts";
import { checkRules, type RetryRule } from "./retry-rules.ts";

export type Backoff = "fixed" | "linear" | "exponential";
export type Jitter = "none" | "full" | "equal" | "decorrelated";

/** What a backoff function is told of the attempt that failed. */
export type BackoffContext = {
  /** Counts from 1. */
  readonly attempt: number;
  readonly error: unknown;
  readonly kind: FailureKind;
  /** Milliseconds that were waited before this attempt; 0 before the first. */
  readonly previousDelay: number;
  /** Milliseconds since the activity was scheduled. */
  readonly elapsed: number;
  /** A number in [0, 1), for jitter. */
  random(): number;
};

/** A strategy of one's own: how long to wait before the next attempt. `maxDelay` bounds it, `jitter` leaves it alone. */
export type BackoffFunction = (context: BackoffContext) => Duration;

export type RetryDelays = {
  /** The first attempt counts; `Infinity` never gives up. */
  readonly maxAttempts?: number | undefined;
  /** No attempt begins later than this after the activity was scheduled. */
  readonly maxDuration?: Duration | undefined;
  readonly backoff?: Backoff | BackoffFunction | undefined;
  /** The delay before the second attempt. */
  readonly initialDelay?: Duration | undefined;
  readonly maxDelay?: Duration | undefined;
  /** What an exponential delay is multiplied with from attempt to attempt, at least 1. */
  readonly factor?: number | undefined;
  /**
   * `full`: anywhere between 0 and the delay. `equal`: in the upper half of it. `decorrelated`: between `initialDelay` and three times the delay before,
   * whatever `backoff` says.
   */
  readonly jitter?: Jitter | undefined;
};

/** As users write it; what is left out comes from `defaultRetry`. */
export type RetryPolicy = RetryDelays & {
  /** What is different for certain errors: the first that fits counts. */
  readonly rules?: readonly RetryRule[] | undefined;
};

/** Durations in milliseconds. */
export type ResolvedRetry = {
  readonly maxAttempts: number;
  readonly maxDuration: number;
  readonly backoff: Backoff | BackoffFunction;
  readonly initialDelay: number;
  readonly maxDelay: number;
  readonly factor: number;
  readonly jitter: Jitter;
  readonly rules: readonly RetryRule[];
};

export const defaultRetry: ResolvedRetry = Object.freeze({
  maxAttempts: 5,
  maxDuration: Number.POSITIVE_INFINITY,
  backoff: "exponential",
  initialDelay: 1_000,
  maxDelay: 60_000,
  factor: 2,
  jitter: "full",
  rules: Object.freeze([]),
});

const backoffs: readonly Backoff[] = ["fixed", "linear", "exponential"];
const jitters: readonly Jitter[] = ["none", "full", "equal", "decorrelated"];
const delayOptions = ["maxAttempts", "maxDuration", "backoff", "initialDelay", "maxDelay", "factor", "jitter"];

/** Merges policies, later ones over earlier ones, over the defaults; throws INVALID_OPTION or INVALID_DURATION. */
export function resolveRetry(...policies: readonly (RetryPolicy | undefined)[]): ResolvedRetry {
  let resolved = defaultRetry;
  for (const policy of policies) {
    if (policy === undefined) continue;
    checkOptions(policy, [...delayOptions, "rules"], "retry");
    const { rules } = policy;
    if (rules !== undefined) checkRules(rules, (delays, what) => overridden(defaultRetry, delays, what));
    resolved = { ...overridden(resolved, policy, "retry"), rules: rules === undefined ? resolved.rules : [...rules, ...resolved.rules] };
  }
  return resolved;
}

/** `base` with what `given` says over it. Of two delays that contradict each other, the one that is given now wins. */
export function overridden(base: ResolvedRetry, given: RetryDelays, what: string): ResolvedRetry {
  const { maxAttempts, maxDuration, backoff, factor, jitter } = given;
  return {
    ...base,
    ...(maxAttempts !== undefined && { maxAttempts: attempts(maxAttempts, `${what}.maxAttempts`) }),
    ...(maxDuration !== undefined && { maxDuration: milliseconds(maxDuration, `${what}.maxDuration`) }),
    ...(backoff !== undefined && { backoff: typeof backoff === "function" ? backoff : oneOf(backoff, backoffs, `${what}.backoff`) }),
    ...(factor !== undefined && { factor: multiplier(factor, `${what}.factor`) }),
    ...(jitter !== undefined && { jitter: oneOf(jitter, jitters, `${what}.jitter`) }),
    ...delaysOf(base, given, what),
  };
}

function delaysOf(base: ResolvedRetry, given: RetryDelays, what: string): Pick<ResolvedRetry, "initialDelay" | "maxDelay"> {
  const initialDelay = given.initialDelay === undefined ? base.initialDelay : milliseconds(given.initialDelay, `${what}.initialDelay`);
  const maxDelay = given.maxDelay === undefined ? base.maxDelay : milliseconds(given.maxDelay, `${what}.maxDelay`);
  if (initialDelay <= maxDelay) return { initialDelay, maxDelay };
  if (given.initialDelay === undefined) return { initialDelay: maxDelay, maxDelay };
  if (given.maxDelay === undefined) return { initialDelay, maxDelay: initialDelay };
  throw new WovyrError(`${what}.initialDelay (${initialDelay} ms) is longer than ${what}.maxDelay (${maxDelay} ms)`, {
    code: "INVALID_OPTION",
  });
}

/**
 * Milliseconds between the end of attempt number `attempt` (from 1) and the next; `fraction` in [0, 1) is the luck of the draw, `previousDelay` what was
 * waited before this attempt. Of a policy whose backoff is a function, the delay that stands in for one that it does not give.
 */
export function retryDelay(policy: ResolvedRetry, attempt: number, fraction: number, previousDelay = 0): number {
  if (policy.jitter === "decorrelated") return decorrelated(policy, fraction, previousDelay);
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

function decorrelated({ initialDelay, maxDelay }: ResolvedRetry, fraction: number, previousDelay: number): number {
  const highest = Math.max(initialDelay, Math.min(maxDelay, previousDelay) * 3);
  return Math.min(maxDelay, Math.round(initialDelay + (highest - initialDelay) * fraction));
}

/** The delay that jitter starts from. */
export function delayBeforeJitter(policy: ResolvedRetry, attempt: number): number {
  if (policy.initialDelay === 0) return 0; // 0 × Infinity is no number
  const steps = Math.max(0, attempt - 1);
  const growth = policy.backoff === "fixed" ? 1 : policy.backoff === "linear" ? steps + 1 : policy.factor ** steps;
  return Math.min(policy.maxDelay, Math.round(policy.initialDelay * growth));
}

function attempts(value: unknown, what: string): number {
  return value === Number.POSITIVE_INFINITY ? value : wholeNumber(value, 1, what);
}

function multiplier(value: unknown, what: string): number {
  if (typeof value === "number" && Number.isFinite(value) && value >= 1) return value;
  throw new WovyrError(`${what} must be a finite number of at least 1`, {
    code: "INVALID_OPTION",
  });
}
