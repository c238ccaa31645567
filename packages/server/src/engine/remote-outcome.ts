/**
 * What a run makes of the outcome of an attempt that a worker made.
 *
 * 1. The worker says what came of it; what follows is decided here, by the run: the output is checked against the schema, a failure is classified, and
 *    whether another attempt follows is decided as for attempts in this process. So it does not matter in which language a worker is written.
 * 2. What was decided before (the time is over, the activity is given up) stays.
 */
import {
  type ActivityEffect,
  type Classifier,
  classify,
  decodePayload,
  encodePayload,
  errorOf,
  type Failure,
  failureOf,
  type Incoming,
  type OpenActivity,
  parse,
  type RetryPolicy,
} from "@wovyr/sdk/internal";
import { limitsOf, outcomeUnknown } from "./attempt.ts";
import { type RetrySurroundings, retryOf } from "./attempt-retry.ts";
import type { EngineLog } from "./ports/log.ts";

export type RemoteAttempt = {
  readonly call: ActivityEffect<unknown>;
  readonly activity: Readonly<OpenActivity>;
  readonly workflowRetry: RetryPolicy | undefined;
};

export type RemoteSurroundings = Pick<RetrySurroundings, "retry" | "clock" | "random"> & {
  readonly classify?: Classifier | undefined;
  readonly log: EngineLog;
  readonly payloadLimit: number;
};

type Completed = Extract<Incoming, { type: "ActivityCompleted" }>;
type Failed = Extract<Incoming, { type: "ActivityFailed" }>;

/** Whether it is still to be decided what follows. */
export const isUndecided = (fact: Completed | Failed): boolean =>
  fact.type === "ActivityCompleted" || (fact.retryAt === undefined && fact.noRetry === undefined);

export function judgedOutcome(fact: Completed | Failed, attempt: RemoteAttempt, surroundings: RemoteSurroundings): Completed | Failed {
  return fact.type === "ActivityCompleted" ? completed(fact, attempt, surroundings) : failed(fact, attempt, surroundings);
}

function completed({ type, effect, attempt, output }: Completed, remote: RemoteAttempt, surroundings: RemoteSurroundings) {
  const { output: schema } = remote.call.definition;
  if (schema === undefined) return { type, effect, attempt, output };
  const what = `output of activity "${remote.activity.name}"`;
  try {
    const value = parse(schema, decodePayload(output), what, "INVALID_OUTPUT");
    return { type, effect, attempt, output: encodePayload(value, { limit: surroundings.payloadLimit, what }) };
  } catch (error) {
    return failed({ type: "ActivityFailed", effect, attempt, failure: failureOf(error) }, remote, surroundings);
  }
}

function failed(fact: Failed, remote: RemoteAttempt, surroundings: RemoteSurroundings): Failed {
  const { call, activity } = remote;
  const { failure } = fact;
  const error = errorOf(failure, call.definition.errors ?? []);
  const ranOut = isTimeLimit(failure);
  if (ranOut && activity.semantics === "atMostOnce")
    return {
      ...fact,
      failure: kindred(failureOf(outcomeUnknown(activity, "ran out of time", error)), "timeout"),
      noRetry: "outcomeUnknown",
    };
  const broken = (what: string, cause: unknown) =>
    surroundings.log.error(`${what} of activity "${activity.name}" does not work and was passed over`, { error: cause });
  const said: Classifier = () => failure.kind;
  const kind = ranOut
    ? "timeout"
    : classify(error, [call.definition.classify, surroundings.classify, said], (cause) => broken("`classify`", cause));
  const decision = retryOf(remote, error, kind, { ...surroundings, scheduleToClose: limitsOf(call)?.scheduleToClose, broken });
  if ("retryAt" in decision) return { ...fact, failure: kindred(failure, kind), retryAt: decision.retryAt };
  const { noRetry, instead } = decision;
  return instead === undefined
    ? { ...fact, failure: kindred(failure, kind), noRetry }
    : { ...fact, failure: kindred(failureOf(instead), "permanent"), noRetry };
}

/** Whether the engine found that the attempt was out of time. */
const isTimeLimit = ({ name, kind }: Failure): boolean => name === "TimeoutError" && kind === "timeout";

const kindred = (failure: Failure, kind: Failure["kind"]): Failure => ({ ...failure, ...(kind !== undefined && { kind }) });
