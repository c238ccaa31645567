/** Whether a run that failed is tried again, by its workflow's `retry`: decided when it closes, and recorded with it. */
import type { WorkflowDefinition } from "../define/workflow-definition.ts";
import type { FailureKind } from "../model/failure-kind.ts";
import type { Incoming } from "../model/history.ts";
import { decideRetry } from "../model/retry-decision.ts";
import { resolveRetry } from "../model/retry-policy.ts";
import { executionEndsAt } from "./deadline.ts";
import type { Logger } from "./log-line.ts";
import { SeededRandom } from "./seeded-random.ts";

export type FailedRun = {
  readonly definition: WorkflowDefinition;
  readonly start: Extract<Incoming, { type: "InstanceStarted" }>;
  /** When its function was to be entered; milliseconds since the epoch. */
  readonly began: number;
  readonly now: number;
  readonly error: unknown;
  readonly kind: FailureKind;
};

/** When the next attempt is due; undefined when there is none. */
export function runRetryAt({ definition, start, began, now, error, kind }: FailedRun, logger: Logger): number | undefined {
  if (definition.retry === undefined) return undefined;
  const decision = decideRetry(resolveRetry(definition.retry), {
    attempt: start.retry?.attempt ?? 1,
    error,
    kind,
    scheduledAt: start.retry?.since ?? began,
    now,
    previousDelay: start.retry?.delay ?? 0,
    deadline: executionEndsAt(start, began),
    random: () => new SeededRandom(start.seed).fraction(),
    broken: (what, cause) =>
      logger.log("error", `${what} of workflow "${definition.name}" does not work and was passed over`, { error: cause }),
  });
  return "retryAt" in decision ? decision.retryAt : undefined;
}
