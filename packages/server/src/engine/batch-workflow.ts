/**
 * The workflow that a batch is: it finds runs (or dead letters) page by page, from the newest that was there when it began to the oldest, and does its
 * operation to each.
 *
 * 1. What was found is recorded before anything is done to it, and each run gets the operation under the batch's own key: done once, counted once.
 * 2. Progress is in its variables, page by page. A page that is at work when the batch is cancelled is finished.
 * 3. It continues as new long before its history is long.
 */
import { type AnyWorkflow, shield, workflow } from "@wovyr/sdk";
import {
  ActivityEffect,
  type BatchFailure,
  type BatchFilter,
  type BatchOperation,
  type DeadLetterFilter,
  type DeadLetterOperation,
} from "@wovyr/sdk/internal";

export const batchWorkflowName = "wovyr:batch";

export type BatchState = {
  readonly operation: BatchOperation | DeadLetterOperation;
  readonly filter: BatchFilter;
  /** Of every single operation. */
  readonly key: string;
  /** When the batch began, in milliseconds since the epoch. */
  readonly startedAt: number;
  /** The run before which to go on; of dead letters, what their list gave, or how many of the ids are done. */
  readonly cursor: string;
  readonly progress: BatchProgress;
};

export type BatchProgress = {
  readonly done: number;
  readonly failed: number;
  readonly failures: readonly BatchFailure[];
  readonly total?: number;
};

/** A run, or a dead letter of it. */
export type BatchTarget = { readonly id: string; readonly run: string };
/** What the activity that finds runs is asked for, and what it answers; without `next` there are no more. */
export type FindRuns = Pick<BatchState, "filter" | "cursor">;
export type FindDeadLetters = { readonly letters: DeadLetterFilter; readonly cursor: string; readonly startedAt: number };
export type FoundRuns = { readonly runs: readonly BatchTarget[]; readonly next?: string };
/** What the activity that operates is asked for, and what came of it. */
export type OperateOnRuns = Pick<BatchState, "operation" | "key"> & { readonly runs: readonly BatchTarget[] };
export type OperatedRuns = Pick<BatchProgress, "done" | "failed" | "failures">;

const pagesPerRun = 100;
const shownFailures = 20;
/** It is tried until it can be said of every run what came of it. */
const patient = Object.freeze({ retry: { maxAttempts: 1_000_000_000, initialDelay: "1s", maxDelay: "1m" } } as const);

const findRuns = (input: FindRuns) => new ActivityEffect<FoundRuns>({ name: "wovyr:find-runs", builtIn: "findRuns" }, input, patient);
const findDeadLetters = (input: FindDeadLetters) =>
  new ActivityEffect<FoundRuns>({ name: "wovyr:find-dead-letters", builtIn: "findDeadLetters" }, input, patient);
const operateOnRuns = (input: OperateOnRuns) =>
  new ActivityEffect<OperatedRuns>({ name: "wovyr:operate-on-runs", builtIn: "operateOnRuns" }, input, patient);

export const batchWorkflow: AnyWorkflow = workflow(batchWorkflowName, async function* (state: BatchState, ctx) {
  const { filter, operation, key } = state;
  let progress = state.progress;
  let { cursor } = state;
  const show = () => Object.assign(ctx.variables, progress);
  show();
  for (let pages = 0; ; pages += 1) {
    if (pages === pagesPerRun || ctx.shouldContinueAsNew) return yield* ctx.continueAsNew({ ...state, cursor, progress });
    const { runs, next } =
      operation.type === "decide"
        ? yield* findDeadLetters({ letters: operation.letters, cursor, startedAt: state.startedAt })
        : yield* findRuns({ filter, cursor });
    if (runs.length > 0)
      yield* shield(async function* () {
        progress = added(progress, yield* operateOnRuns({ operation, key, runs }));
        show();
      });
    if (next === undefined) break;
    cursor = next;
  }
  progress = { ...progress, total: progress.done + progress.failed };
  show();
  return progress;
});

function added(before: BatchProgress, { done, failed, failures }: OperatedRuns): BatchProgress {
  return {
    done: before.done + done,
    failed: before.failed + failed,
    failures: [...before.failures, ...failures].slice(0, shownFailures),
  };
}
