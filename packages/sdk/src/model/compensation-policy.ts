/** When a run, or a saga in it, undoes what it has done, and how. */
import { WovyrError } from "./errors.ts";
import { checkedFor, checkOptions } from "./option.ts";
import { type RetryPolicy, resolveRetry } from "./retry-policy.ts";

/** A function is asked with what the run failed with or was cancelled with; it must answer the same on every replay. */
export type CompensateOn = "failure" | "cancel" | "always" | "manual" | "never" | ((error: unknown) => boolean);
/** `reverse`: one after another, what completed last first. `parallel`: all at once. */
export type CompensationOrder = "reverse" | "parallel";
/** What happens when something cannot be undone. `pause`: a person decides. `fail`: the rest is undone, and the run says what is not. */
export type CompensationFailurePolicy = "pause" | "fail";

export type SagaOptions = {
  readonly on?: CompensateOn | undefined;
  readonly order?: CompensationOrder | undefined;
  readonly onFailure?: CompensationFailurePolicy | undefined;
};

export type CompensationOptions = SagaOptions & {
  /** For the activities that undo: over what their definitions say, under what their calls say. */
  readonly retry?: RetryPolicy | undefined;
};

/** With everything that is left out filled in. */
export type CompensationPolicy = {
  readonly on: CompensateOn;
  readonly order: CompensationOrder;
  readonly onFailure: CompensationFailurePolicy;
  readonly retry?: RetryPolicy;
};

export const defaultCompensation: CompensationPolicy = Object.freeze({ on: "failure", order: "reverse", onFailure: "pause" });

const whens: readonly unknown[] = ["failure", "cancel", "always", "manual", "never"] satisfies CompensateOn[];
const orders: readonly unknown[] = ["reverse", "parallel"] satisfies CompensationOrder[];
const failurePolicies: readonly unknown[] = ["pause", "fail"] satisfies CompensationFailurePolicy[];

/** Throws INVALID_OPTION (or INVALID_DURATION, for a bad delay of `retry`). */
export function checkSaga(options: SagaOptions, what: string): void {
  checkOptions(options, ["on", "order", "onFailure"], what);
  checkChoices(options, what);
}

/** Throws INVALID_OPTION (or INVALID_DURATION, for a bad delay of `retry`). */
export function checkCompensation(options: CompensationOptions, what: string): void {
  checkOptions(options, ["on", "order", "onFailure", "retry"], what);
  checkChoices(options, what);
  if (options.retry !== undefined) checkedFor(what, () => resolveRetry(options.retry));
}

/** A policy with what the options say instead of its own. */
export function withCompensation(policy: CompensationPolicy, { on, order, onFailure, retry }: CompensationOptions): CompensationPolicy {
  return Object.freeze({
    ...policy,
    ...(on !== undefined && { on }),
    ...(order !== undefined && { order }),
    ...(onFailure !== undefined && { onFailure }),
    ...(retry !== undefined && { retry }),
  });
}

function checkChoices({ on, order, onFailure }: SagaOptions, what: string): void {
  if (on !== undefined && typeof on !== "function" && !whens.includes(on))
    throw invalid(`\`on\` of ${what} must be one of ${whens.join(", ")}, or a function that answers true or false`);
  if (order !== undefined && !orders.includes(order)) throw invalid(`\`order\` of ${what} must be one of ${orders.join(", ")}`);
  if (onFailure !== undefined && !failurePolicies.includes(onFailure))
    throw invalid(`\`onFailure\` of ${what} must be one of ${failurePolicies.join(", ")}`);
}

const invalid = (message: string) => new WovyrError(message, { code: "INVALID_OPTION" });
