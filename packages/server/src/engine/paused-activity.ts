/**
 * Activities that have failed for good and wait for a person, instead of failing.
 *
 * 1. Whether a failure pauses its activity is asked when it is recorded, and recorded with it: a replay follows history, whatever the code says by then.
 * 2. What undoes has a policy of its own for what cannot be undone: what the workflow says of its activities does not hold there.
 * 3. A pause ends at the latest when the time of all attempts is over (`scheduleToClose`).
 */
import { WovyrError } from "@wovyr/sdk";
import {
  type ActivityEffect,
  decodePayload,
  type EffectId,
  encodePayload,
  failureOf,
  type Incoming,
  type InstanceState,
  isUndoing,
  parse,
  type WorkflowDefinition,
} from "@wovyr/sdk/internal";
import { limitsOf, outOfTime } from "./attempt.ts";

type ActivityFailed = Extract<Incoming, { type: "ActivityFailed" }>;
type ActivityDecided = Extract<Incoming, { type: "ActivityDecided" }>;

/** The failure as it is to be recorded: with a pause, where it is final, the code says so, and there is time left. */
export function pausedIfAsked(
  failed: ActivityFailed,
  state: InstanceState,
  call: ActivityEffect<unknown> | undefined,
  workflow: WorkflowDefinition | undefined,
): ActivityFailed {
  const activity = state.activities.get(failed.effect);
  if (failed.retryAt !== undefined || activity === undefined || call === undefined) return failed;
  const ofWorkflow = isUndoing(failed.effect) ? undefined : workflow?.onExhausted;
  if ((call.options.onExhausted ?? call.definition.onExhausted ?? ofWorkflow) !== "pause") return failed;
  const scheduleToClose = limitsOf(call)?.scheduleToClose;
  if (scheduleToClose === undefined) return { ...failed, paused: true };
  const pausedUntil = activity.scheduledAt + scheduleToClose;
  return pausedUntil <= state.at ? failed : { ...failed, paused: true, pausedUntil };
}

/** What a paused activity fails with when its time is over; undefined when it is not paused any more. */
export function outOfPause(effect: EffectId, state: InstanceState): ActivityFailed | undefined {
  const activity = state.activities.get(effect);
  if (activity?.pausedUntil === undefined) return undefined;
  const error = outOfTime(activity, "scheduleToClose", activity.pausedUntil - activity.scheduledAt);
  const failure = { ...failureOf(error), kind: "timeout" as const };
  return { type: "ActivityFailed", effect, attempt: activity.attempt, failure, noRetry: "scheduleToClose" };
}

/** The decision with the output as the activity would have recorded it; an error when it does not fit. */
export function resolvedDecision(
  decided: ActivityDecided,
  call: ActivityEffect<unknown> | undefined,
  limit: number,
): ActivityDecided | WovyrError {
  // What a transactional step came to, as it was found, has been through the schema.
  if (decided.output === undefined || decided.said === undefined || call === undefined) return decided;
  const what = `output of activity "${call.definition.name}"`;
  try {
    return { ...decided, output: encodePayload(parse(call.definition.output, decodePayload(decided.output), what), { limit, what }) };
  } catch (error) {
    return error instanceof WovyrError ? error : new WovyrError(String(error), { code: "INVALID_INPUT" });
  }
}
