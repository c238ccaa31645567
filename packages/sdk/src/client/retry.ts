/**
 * When a call is tried again.
 *
 * 1. Only an error that says it may pass (`retryable`) is worth another try; every call is safe to repeat, because what changes something carries an idempotency key that stays the same.
 * 2. Waits grow exponentially, with full jitter, and are never shorter than what the server asked for.
 * 3. Tries and the time for all of them are bounded; the caller's signal ends the waiting at once.
 */
import { type Duration, milliseconds } from "../model/duration.ts";
import { ApiError } from "../model/errors.ts";
import { checkOptions, wholeNumber } from "../model/option.ts";

export type RetryOptions = {
  /** Default 5, and for what waits (results, updates, streams) as many as `maxDuration` allows; 1 means never again. */
  readonly maxAttempts?: number | undefined;
  /** For all tries together; default 30 s. */
  readonly maxDuration?: Duration | undefined;
  /** Default 100 ms. */
  readonly initialDelay?: Duration | undefined;
  /** Default 5 s. */
  readonly maxDelay?: Duration | undefined;
};

export type Retry = {
  readonly maxAttempts: number;
  /** Of calls that wait for something. */
  readonly maxWaitingAttempts: number;
  readonly maxDuration: number;
  readonly initialDelay: number;
  readonly maxDelay: number;
};

/** Throws INVALID_OPTION or INVALID_DURATION. */
export function retryOf(options: RetryOptions = {}): Retry {
  checkOptions(options, ["maxAttempts", "maxDuration", "initialDelay", "maxDelay"], "retry");
  const given = options.maxAttempts === undefined ? undefined : wholeNumber(options.maxAttempts, 1, "retry.maxAttempts");
  return {
    maxAttempts: given ?? 5,
    maxWaitingAttempts: given ?? Number.POSITIVE_INFINITY,
    maxDuration: milliseconds(options.maxDuration ?? 30_000, "retry.maxDuration"),
    initialDelay: milliseconds(options.initialDelay ?? 100, "retry.initialDelay"),
    maxDelay: milliseconds(options.maxDelay ?? 5_000, "retry.maxDelay"),
  };
}

/** For a call that waits for so many milliseconds: it is not lost when the server is away for a moment. */
export const patiently = (retry: Retry, wait: number): Retry => ({
  ...retry,
  maxAttempts: retry.maxWaitingAttempts,
  maxDuration: retry.maxDuration + wait,
});

/** What `attempt` resolves with, or the error of its last try. */
export async function retrying<T>(retry: Retry, signal: AbortSignal | undefined, attempt: (tries: number) => Promise<T>): Promise<T> {
  const deadline = performance.now() + retry.maxDuration;
  for (let tries = 1; ; tries++) {
    try {
      return await attempt(tries);
    } catch (error) {
      if (!(error instanceof ApiError && error.retryable) || tries >= retry.maxAttempts) throw error;
      const delay = delayAfter(retry, tries, error.retryAfter);
      if (performance.now() + delay > deadline) throw error;
      await pause(delay, signal);
    }
  }
}

/** Milliseconds, always finite: the power is bounded, because zero times infinity is no number. */
export function delayAfter(retry: Pick<Retry, "initialDelay" | "maxDelay">, tries: number, retryAfter: number | undefined): number {
  const jittered = Math.random() * Math.min(retry.maxDelay, retry.initialDelay * 2 ** Math.min(tries - 1, 60));
  return retryAfter === undefined ? jittered : retryAfter + Math.min(jittered, retry.initialDelay);
}

/** Resolves after so many milliseconds; rejects with the signal's reason when it is aborted. */
export async function pause(delay: number, signal: AbortSignal | undefined): Promise<void> {
  signal?.throwIfAborted();
  await new Promise<void>((resolve, reject) => {
    const stop = () => {
      clearTimeout(timer);
      reject(signal?.reason);
    };
    const timer = setTimeout(() => {
      signal?.removeEventListener("abort", stop);
      resolve();
    }, delay);
    signal?.addEventListener("abort", stop, { once: true });
  });
}
