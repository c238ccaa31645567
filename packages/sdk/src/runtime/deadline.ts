/**
 * The time limit of a run: its own, or that of all runs of its execution, whichever ends first.
 *
 * 1. It follows from the start fact alone, so that other code of the same version has the same limit on replay.
 */
import { TimeoutError } from "../model/errors.ts";
import type { Incoming } from "../model/history.ts";

type StartFact = Extract<Incoming, { type: "InstanceStarted" }>;

export type Deadline = {
  readonly purpose: "run" | "execution";
  /** Milliseconds since the epoch. */
  readonly at: number;
  /** Milliseconds. */
  readonly limit: number;
};

/** `began`: when the run's function was to be entered. */
export function deadlineOf(start: StartFact, began: number): Deadline | undefined {
  if (start.timeout === undefined) return undefined;
  const { run } = start.timeout;
  const ofRun: Deadline | undefined = run === undefined ? undefined : { purpose: "run", at: began + run, limit: run };
  const ofExecution = executionDeadline(start, began);
  if (ofRun === undefined || ofExecution === undefined) return ofRun ?? ofExecution;
  return ofRun.at < ofExecution.at ? ofRun : ofExecution;
}

function executionDeadline({ timeout, executionStartedAt }: StartFact, began: number): Deadline | undefined {
  const limit = timeout?.execution;
  return limit === undefined ? undefined : { purpose: "execution", at: (executionStartedAt ?? began) + limit, limit };
}

/** When the time of all runs is over; undefined when it does not end. */
export const executionEndsAt = (start: StartFact, began: number): number | undefined => executionDeadline(start, began)?.at;

/** What a run that is out of time ends with. */
export function lateness({ purpose, limit }: Deadline, workflow: string): TimeoutError {
  const what = purpose === "run" ? "a run" : "an execution";
  return new TimeoutError(`${what} of workflow "${workflow}" took longer than its ${purpose} timeout, ${limit} ms`, purpose, limit);
}
