/**
 * A handle on an instance.
 *
 * 1. It addresses an id. Only `result` is tied to the run that was started, so that an id that is used again later gives no foreign result.
 * 2. It holds no connection and no state: it may be kept, dropped and made again.
 */
import { nanoid } from "nanoid";
import type { WorkflowDefinition } from "../define/workflow-definition.ts";
import { milliseconds } from "../model/duration.ts";
import { TimeoutError, WorkflowError, WovyrError } from "../model/errors.ts";
import { errorOf } from "../model/failure.ts";
import type { CompensationDecision } from "../model/history.ts";
import { checkedKey } from "../model/idempotency-key.ts";
import { checkName } from "../model/name.ts";
import { checkOptions, defined } from "../model/option.ts";
import { remark } from "../model/remark.ts";
import { failureOfView } from "../protocol/failure-view.ts";
import type { ClosedResult, HistoryEvent, InstanceSummary, Operations, ResultResponse } from "../protocol/operations.ts";
import { isClosed } from "../protocol/status.ts";
import type { DecisionOptions, Handle, ResultOptions, StreamEvent, UpdateOptions } from "./client.ts";

/** What a handle knows of its workflow; a handle made from an id alone knows nothing. */
export type KnownWorkflow = Pick<WorkflowDefinition, "name" | "errors">;

/** Milliseconds that one call for a result waits; then it is asked again. */
export const resultWait = 30_000;

export function handleOn<O>(operations: Operations, id: string, runId: string, workflow?: KnownWorkflow): Handle<O> {
  checkName(id, "the id of an instance");
  return Object.freeze<Handle<O>>({
    id,
    runId,

    async result(options) {
      const run = runId === "" ? {} : { runId };
      return outcomeOf<O>(await closedResult(operations, id, run, options), workflow);
    },

    describe: () => operations.describe(id),

    runs: () => runsOf(operations, id),

    history: ({ runId: run } = {}) => historyOf(operations, id, run),

    graph: () => operations.graph(id),

    stream: (options) => streamOf(operations, id, options?.signal),

    async send(event, ...[payload, options]) {
      await operations.sendEvent(id, event.name, payload, idempotency(options?.idempotencyKey));
    },

    async query(query, ...[input, options]) {
      options?.signal?.throwIfAborted();
      return (await operations.query(id, query.name, input)) as never;
    },

    async update(update, ...[input, options]) {
      return updated(operations, id, update.name, input, options) as never;
    },

    async wake() {
      await operations.wake(id);
    },

    async cancel({ mode, reason } = {}) {
      await operations.cancel(id, { ...(mode !== undefined && { mode }), ...remark("reason", reason) });
    },

    retryCompensation: (effect, options) => decided(operations, id, effect, "retry", options),

    skipCompensation: (effect, options) => decided(operations, id, effect, "skip", options),

    resolveCompensation: (effect, options) => decided(operations, id, effect, "resolve", options),

    async terminate({ reason } = {}) {
      await operations.terminate(id, remark("reason", reason));
    },

    async pause({ reason } = {}) {
      await operations.pause(id, remark("reason", reason));
    },

    async resume() {
      await operations.resume(id);
    },

    async fork(options = {}) {
      checkOptions(options, ["at", "id", "input", "version", "runId", "idempotencyKey"], "fork");
      const made = await operations.fork(id, keyed(options));
      return handleOn<O>(operations, made.id, made.runId, workflow);
    },

    async reset(options) {
      checkOptions(options, ["to", "reason", "runId", "idempotencyKey"], "reset");
      if (options?.to === undefined)
        throw new WovyrError('reset needs `to`: the number of the last event to keep, "first" or "last"', { code: "INVALID_OPTION" });
      const { to, reason, ...rest } = options;
      const made = await operations.reset(id, { to, ...remark("reason", reason), ...keyed(rest) });
      return handleOn<O>(operations, made.id, made.runId, workflow);
    },

    export: ({ runId: run } = {}) => operations.export(id, run === undefined ? {} : { runId: run }),

    async delete({ runId: run } = {}) {
      return (await operations.delete(id, run === undefined ? {} : { runId: run })).deleted;
    },
  });
}

async function decided(
  operations: Operations,
  id: string,
  effect: string,
  decision: CompensationDecision,
  { note, idempotencyKey }: DecisionOptions = {},
): Promise<void> {
  await operations.decideCompensation(id, effect, decision, { ...idempotency(idempotencyKey), ...remark("note", note) });
}

/** Asks with one key until the handler has ended. */
async function updated(
  operations: Operations,
  id: string,
  name: string,
  input: unknown,
  { idempotencyKey = nanoid(), signal }: UpdateOptions = {},
): Promise<unknown> {
  checkedKey(idempotencyKey);
  for (let run = {}; ; ) {
    signal?.throwIfAborted();
    const answer = await operations.update(id, name, input, {
      ...run,
      idempotencyKey,
      wait: resultWait,
      ...(signal !== undefined && { signal }),
    });
    if (answer.status === "Completed") return answer.output;
    if (answer.status === "Failed") {
      const cause = answer.failure && errorOf(failureOfView(answer.failure));
      const isTold = cause instanceof WovyrError && (cause.code === "UPDATE_UNFINISHED" || cause.code === "UPDATE_REJECTED");
      throw new WovyrError(`update "${name}" of ${id} failed: ${cause?.message}`, {
        code: isTold ? cause.code : "UPDATE_FAILED",
        cause,
      });
    }
    // It stays with the run that took it.
    run = { runId: answer.runId };
  }
}

function keyed<T extends { readonly idempotencyKey?: string | undefined }>(options: T) {
  if (options.idempotencyKey !== undefined) checkedKey(options.idempotencyKey);
  return defined(options);
}

function idempotency(idempotencyKey: string | undefined): { idempotencyKey?: string } {
  return idempotencyKey === undefined ? {} : { idempotencyKey: checkedKey(idempotencyKey) };
}

async function closedResult(
  operations: Operations,
  id: string,
  asked: { readonly runId?: string },
  { signal, timeout }: ResultOptions = {},
): Promise<ClosedResult> {
  let run = asked;
  const deadline = timeout === undefined ? Number.POSITIVE_INFINITY : performance.now() + milliseconds(timeout, "timeout");
  for (;;) {
    signal?.throwIfAborted();
    const left = deadline - performance.now();
    const wait = Math.min(resultWait, Math.max(0, Math.ceil(left)));
    const result = await operations.result(id, { ...run, wait, ...(signal !== undefined && { signal }) });
    if (isClosedResult(result)) return result;
    // The run that goes on by now; the one that was asked for may be removed meanwhile.
    if (run.runId !== undefined) run = { runId: result.runId };
    if (performance.now() >= deadline)
      throw new TimeoutError(
        `${id} did not end in time; its state is ${result.status}${result.status === "Parked" ? " (describe() says why)" : ""}`,
        "wait",
      );
  }
}

function isClosedResult(result: ResultResponse): result is ClosedResult {
  return isClosed(result.status);
}

/** The output of a completed run; throws a `WorkflowError` for any other. */
export function outcomeOf<O>({ id, status, output, failure, compensation }: ClosedResult, workflow: KnownWorkflow | undefined): O {
  if (status === "Completed") return output as O;
  const name = workflow?.name ?? "";
  const cause = failure && errorOf(failureOfView(failure), workflow?.errors);
  const what = name === "" ? `instance ${id}` : `workflow ${name} (${id})`;
  throw new WorkflowError(`${what} ended as ${status}${cause === undefined ? "" : `: ${cause.message}`}`, {
    instanceId: id,
    workflow: name,
    status: status === "ContinuedAsNew" ? "Failed" : status,
    ...(cause !== undefined && { cause }),
    ...(compensation !== undefined && { compensation: errorOf(failureOfView(compensation)) }),
  });
}

async function* runsOf(operations: Operations, id: string): AsyncGenerator<InstanceSummary> {
  let page = await operations.runs(id);
  for (;;) {
    yield* page.items;
    if (page.nextCursor === undefined) return;
    page = await operations.runs(id, { cursor: page.nextCursor });
  }
}

async function* historyOf(operations: Operations, id: string, runId: string | undefined): AsyncGenerator<HistoryEvent> {
  let page = await operations.history(id, runId === undefined ? {} : { runId });
  for (;;) {
    yield* page.items;
    if (page.nextSeq === undefined) return;
    page = await operations.history(id, { runId: page.runId, fromSeq: page.nextSeq });
  }
}

async function* streamOf(operations: Operations, id: string, signal: AbortSignal | undefined): AsyncGenerator<StreamEvent> {
  for await (const { runId, event } of operations.stream(id, signal === undefined ? {} : { signal })) {
    yield { ...event, id: `${runId}:${event.seq}`, runId };
  }
}
