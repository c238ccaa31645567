/** When the attempts of an activity are held back because those before them failed. */
import { type Duration, milliseconds } from "./duration.ts";
import { checkOptions, wholeNumber } from "./option.ts";

export type CircuitBreakerOptions = {
  /** Failures (transient ones, timeouts, infrastructure) that open the circuit. */
  readonly failureThreshold: number;
  /** Failures within this time count, whatever succeeded between them; without it, failures in a row. */
  readonly window?: Duration | undefined;
  /** How long an open circuit holds attempts back. */
  readonly openFor: Duration;
  /** Attempts that are let through to see whether it works again; default 1. All of them must succeed. */
  readonly halfOpenAttempts?: number | undefined;
};

/** Durations in milliseconds. */
export type ResolvedCircuitBreaker = {
  readonly failureThreshold: number;
  readonly window: number | undefined;
  readonly openFor: number;
  readonly halfOpenAttempts: number;
};

/** Failures that are remembered for a window are as many as the threshold. */
const maxThreshold = 10_000;

/** Throws INVALID_OPTION or INVALID_DURATION. */
export function resolveCircuitBreaker(options: CircuitBreakerOptions): ResolvedCircuitBreaker {
  checkOptions(options, ["failureThreshold", "window", "openFor", "halfOpenAttempts"], "circuitBreaker");
  const { failureThreshold, window, openFor, halfOpenAttempts = 1 } = options;
  return Object.freeze({
    failureThreshold: wholeNumber(failureThreshold, 1, "circuitBreaker.failureThreshold", maxThreshold),
    window: window === undefined ? undefined : milliseconds(window, "circuitBreaker.window"),
    openFor: milliseconds(openFor, "circuitBreaker.openFor"),
    halfOpenAttempts: wholeNumber(halfOpenAttempts, 1, "circuitBreaker.halfOpenAttempts", maxThreshold),
  });
}
