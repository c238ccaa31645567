/** Whether a failed attempt is followed by another, by what the engine, the workflow, the activity and its call say. */
import { decideRetry, type FailureKind, type RetryDecision, type RetryPolicy, resolveRetry } from "@wovyr/sdk/internal";
import type { Attempt } from "./attempt.ts";
import type { Clock } from "./ports/clock.ts";
import type { Random } from "./ports/random.ts";

export type RetrySurroundings = {
  readonly retry: RetryPolicy | undefined;
  readonly clock: Clock;
  readonly random: Random;
  /** Milliseconds for all attempts. */
  readonly scheduleToClose: number | undefined;
  /** Hears of what of the policy does not work. */
  readonly broken: (what: string, cause: unknown) => void;
};

export type FailedAttempt = Pick<Attempt, "call" | "activity" | "workflowRetry">;

/** A policy that does not work leaves the failure as the last one. */
export function retryOf(
  { call, activity, workflowRetry }: FailedAttempt,
  error: unknown,
  kind: FailureKind,
  { retry, clock, random, scheduleToClose, broken }: RetrySurroundings,
): RetryDecision {
  try {
    return decideRetry(resolveRetry(retry, workflowRetry, call.definition.retry, call.options.retry), {
      attempt: activity.attempt - (activity.renewed?.attempts ?? 0),
      error,
      kind,
      scheduledAt: activity.renewed?.at ?? activity.scheduledAt,
      now: clock.now(),
      previousDelay: activity.previousDelay ?? 0,
      deadline: scheduleToClose === undefined ? undefined : activity.scheduledAt + scheduleToClose,
      atMostOnce: activity.semantics === "atMostOnce",
      random: () => random.fraction(),
      broken,
    });
  } catch (cause) {
    broken("`retry`", cause);
    return { noRetry: "permanent" };
  }
}
