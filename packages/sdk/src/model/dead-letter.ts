/** Work that was given up, and waits for a person. */

/**
 * `activity`: one that is paused. `compensation`: one that is stuck. `workflow`: a run that did not come to its end. `event`: one that a workflow sent, and that
 * reached no run.
 */
export type DeadLetterKind = "activity" | "workflow" | "compensation" | "event";
/** It is done anew; it came to this value; it failed, and whoever waits for it learns so; nobody wants it any more. */
export type DeadLetterDecision = "retry" | "resolve" | "fail" | "discard";

export const deadLetterKinds = ["activity", "workflow", "compensation", "event"] as const satisfies readonly DeadLetterKind[];

export const deadLetterDecisions = ["retry", "resolve", "fail", "discard"] as const satisfies readonly DeadLetterDecision[];

/** What can be decided: a run waits for the first two, and for the others nobody does. */
export const possibleDecisions: Readonly<Record<DeadLetterKind, readonly DeadLetterDecision[]>> = {
  activity: ["retry", "resolve", "fail"],
  compensation: ["retry", "resolve", "fail"],
  workflow: ["retry", "discard"],
  event: ["retry", "discard"],
};
