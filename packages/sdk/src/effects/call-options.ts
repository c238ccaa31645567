import { type ActivityTimeouts, resolveTimeouts } from "../model/activity-timeouts.ts";
import { WovyrError } from "../model/errors.ts";
import { checkOnExhausted, type OnExhausted } from "../model/exhaustion.ts";
import { checkName } from "../model/name.ts";
import { checkedFor, checkOptions } from "../model/option.ts";
import { checkPriority, type Priority } from "../model/priority.ts";
import { type RetryPolicy, resolveRetry } from "../model/retry-policy.ts";
import { type CallSemantics, checkCallSemantics, type Semantics } from "../model/semantics.ts";

/** What one call of an activity may say beside its input; it goes over what the definition says. */
export type CallOptions = {
  readonly retry?: RetryPolicy | undefined;
  readonly timeout?: ActivityTimeouts | undefined;
  readonly semantics?: CallSemantics | undefined;
  readonly onExhausted?: OnExhausted | undefined;
  /** The task queue whose workers run it, instead of the process of the orchestrator. */
  readonly queue?: string | undefined;
  /** Who is next when attempts wait. */
  readonly priority?: Priority | undefined;
  /** Replaces the positional effect id, so that the call may move within the code. */
  readonly id?: string | undefined;
  /** One line for people who look at the run. */
  readonly summary?: string | undefined;
};

export const noOptions: CallOptions = Object.freeze({});

export const callOptionNames = ["retry", "timeout", "semantics", "onExhausted", "queue", "priority", "id", "summary"];
const longestSummary = 1_000;

/** `defined` is how often the definition says that it runs. Throws INVALID_OPTION, INVALID_DURATION or INVALID_NAME. */
export function checkCallOptions(options: CallOptions, what: string, defined?: Semantics): void {
  checkOptions(options, callOptionNames, what);
  if (options.retry !== undefined) checkedFor(what, () => resolveRetry(options.retry));
  if (options.timeout !== undefined) checkedFor(what, () => resolveTimeouts(options.timeout));
  if (options.semantics !== undefined) checkCallSemantics(options.semantics, defined, what);
  if (options.onExhausted !== undefined) checkOnExhausted(options.onExhausted, what);
  if (options.queue !== undefined) checkName(options.queue, `the queue of ${what}`);
  if (options.priority !== undefined) checkPriority(options.priority, `the priority of ${what}`);
  if (options.id !== undefined) checkName(options.id, `the id of ${what}`);
  const { summary } = options;
  if (summary !== undefined && (typeof summary !== "string" || summary.length > longestSummary)) {
    throw new WovyrError(`the summary of ${what} must be a text of at most ${longestSummary} characters`, { code: "INVALID_OPTION" });
  }
}
