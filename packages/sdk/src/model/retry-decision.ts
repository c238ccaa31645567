/**
 * Whether a failure is followed by another attempt, and when.
 *
 * 1. Pure: time, chance and what happened before are handed in.
 * 2. What the author of the error said comes first (`NonRetryableError`), then the first rule that fits, then the kind of the failure, then the policy.
 * 3. No attempt is waited for that would begin after `maxDuration`, or when the time of all attempts is over.
 */
import { type Duration, instant, milliseconds } from "./duration.ts";
import { WovyrError } from "./errors.ts";
import { type FailureKind, isNonRetryable } from "./failure-kind.ts";
import { overridden, type ResolvedRetry, retryDelay } from "./retry-policy.ts";
import { ruleFor } from "./retry-rules.ts";

/** Why there is no further attempt. */
export type NoRetry =
  /** The error, or its kind, says that another one would be in vain. */
  | "permanent"
  | "rule"
  | "maxAttempts"
  | "maxDuration"
  | "scheduleToClose"
  | "scheduleToStart"
  /** The run has used up what its workflow allows. */
  | "retryBudget"
  /** The attempt may have done its work, and is to do it once at most. */
  | "outcomeUnknown"
  /** An activity that runs once at most is tried again only when a rule, or a `RetryAfterError`, says that nothing happened. */
  | "atMostOnce"
  /** The process died too often while it ran. */
  | "attemptsLost"
  /** As many run at once as may. */
  | "concurrencyLimit"
  /** The time of the run, or of all its runs, is over. */
  | "execution";

export type FailedAttempt = {
  /** Counts from 1. */
  readonly attempt: number;
  readonly error: unknown;
  readonly kind: FailureKind;
  /** Milliseconds since the epoch. */
  readonly scheduledAt: number;
  readonly now: number;
  /** Milliseconds that were waited before the attempt. */
  readonly previousDelay: number;
  /** Nothing begins from then on; milliseconds since the epoch. */
  readonly deadline?: number | undefined;
  /** Whether it is to do its work once at most. */
  readonly atMostOnce?: boolean;
  random(): number;
  /** Hears of a function of the policy that throws, or gives what is no duration. */
  broken(what: string, cause: unknown): void;
};

export type RetryDecision =
  | { readonly retryAt: number }
  | {
      readonly noRetry: NoRetry;
      /** What is recorded instead of the error: why it could not be followed. */
      readonly instead?: Error;
    };

export function decideRetry(policy: ResolvedRetry, failed: FailedAttempt): RetryDecision {
  const { attempt, error, kind, scheduledAt, now, deadline } = failed;
  if (isNonRetryable(error)) return { noRetry: "permanent" };
  const rule = ruleFor(policy.rules, error, kind, (cause) => failed.broken("a rule of `retry`", cause));
  if (rule?.retry === false) return { noRetry: "rule" };
  const isAsked = rule !== undefined || isRetryAfter(error);
  if (failed.atMostOnce === true && !isAsked) return { noRetry: "atMostOnce" };
  if ((kind === "permanent" || kind === "cancelled") && !isAsked) return { noRetry: "permanent" };
  const effective = rule === undefined ? policy : overridden(policy, rule.retry, "retry");
  if (attempt >= effective.maxAttempts) return { noRetry: "maxAttempts" };
  let retryAt: number;
  try {
    retryAt = isRetryAfter(error) ? afterOf(error, now) : now + delayOf(effective, failed);
  } catch (instead) {
    return { noRetry: "permanent", instead: instead as Error };
  }
  if (retryAt > scheduledAt + effective.maxDuration) return { noRetry: "maxDuration" };
  if (deadline !== undefined && retryAt >= deadline) return { noRetry: "scheduleToClose" };
  return { retryAt };
}

function delayOf(policy: ResolvedRetry, failed: FailedAttempt): number {
  const { attempt, error, kind, scheduledAt, now, previousDelay } = failed;
  const { backoff, maxDelay } = policy;
  if (typeof backoff === "function") {
    try {
      const random = () => failed.random();
      const delay = milliseconds(
        backoff({ attempt, error, kind, previousDelay, elapsed: now - scheduledAt, random }),
        "what retry.backoff returned",
      );
      return Math.min(delay, maxDelay);
    } catch (cause) {
      failed.broken("`retry.backoff`", cause);
    }
  }
  return retryDelay(policy, attempt, failed.random(), previousDelay);
}

type RetryAfter = { readonly after: Duration | Date };

function isRetryAfter(error: unknown): error is RetryAfter {
  try {
    return typeof error === "object" && error !== null && "code" in error && error.code === "RETRY_AFTER" && "after" in error;
  } catch {
    return false; // a proxy or a getter threw
  }
}

/** When an error asks to be followed; one that names no time is a mistake that stays one. */
function afterOf(error: RetryAfter, now: number): number {
  const { after } = error;
  try {
    return after instanceof Date
      ? Math.max(now, instant(after, "`after` of RetryAfterError"))
      : now + milliseconds(after, "`after` of RetryAfterError");
  } catch (mistake) {
    throw new WovyrError((mistake as Error).message, { code: "INVALID_DURATION", cause: error });
  }
}
