/**
 * Operations over many runs: a batch is an instance of a workflow of the engine's own (batch-workflow.ts), which lists do not show unless they are asked for it.
 *
 * 1. Only runs that were there when the batch began are touched: those whose ids sort before that of the batch's own first run.
 * 2. A run that another group owns is left out, and so are batches, unless the filter names their workflow.
 */
import { ApiError, WovyrError } from "@wovyr/sdk";
import {
  type BatchDescription,
  type BatchFailure,
  type BatchOperation,
  type BatchRequest,
  checkName,
  checkOptions,
  type DeadLetterOperation,
  type Delivered,
  deadLetterDecisions,
  decodePayload,
  digest,
  encodePayload,
  foldHistory,
  maxLetters,
  type Operations,
  statuses,
} from "@wovyr/sdk/internal";
import {
  type BatchProgress,
  type BatchState,
  type BatchTarget,
  batchWorkflow,
  batchWorkflowName,
  type FindDeadLetters,
  type FindRuns,
  type FoundRuns,
  type OperatedRuns,
  type OperateOnRuns,
} from "./batch-workflow.ts";
import { begin } from "./begin.ts";
import { placeOfDeadLetter } from "./dead-letter-id.ts";
import { storeFilterOf } from "./dead-letters.ts";
import type { Engine } from "./engine.ts";
import { listRows } from "./listing.ts";
import type { Messages } from "./messages.ts";
import type { InstanceRow } from "./ports/store.ts";
import type { Start } from "./start.ts";
import type { Tenancy } from "./tenancy.ts";

/** Runs of one page. */
const pageRuns = 200;
const nothingYet: BatchProgress = { done: 0, failed: 0, failures: [] };

export class Batches {
  readonly #tenancy: Tenancy;
  readonly #messages: Messages;

  constructor(tenancy: Tenancy, messages: Messages) {
    this.#tenancy = tenancy;
    this.#messages = messages;
  }

  async start(request: BatchRequest): Promise<{ readonly id: string; readonly replayed: boolean }> {
    checkBatch(request);
    return this.#begin(request);
  }

  /** Decides on many dead letters alike. */
  async decide(
    operation: Omit<DeadLetterOperation, "type">,
    options: { readonly id?: string; readonly idempotencyKey?: string } = {},
  ): Promise<{ readonly id: string; readonly replayed: boolean }> {
    checkDecision(operation, options.id);
    return this.#begin({ ...options, operation: { type: "decide", ...operation }, filter: {} });
  }

  async #begin(request: AnyBatch): Promise<{ readonly id: string; readonly replayed: boolean }> {
    const engine = this.#tenancy.acting();
    const start = startOf(engine, this.#tenancy.tenant, request);
    const { startKey } = start.create;
    const known = startKey && (await this.#known(engine, startKey));
    if (known !== undefined) return { id: known.id, replayed: true };
    if ((await begin(engine, start)) !== undefined) return { id: start.identity.id, replayed: false };
    const made = startKey && (await this.#known(engine, startKey));
    if (made !== undefined) return { id: made.id, replayed: true };
    throw new ApiError(`An open instance has the id "${start.identity.id}". Use another id for the batch, or none.`, {
      code: "INSTANCE_EXISTS",
    });
  }

  async get(id: string): Promise<BatchDescription> {
    const engine = this.#tenancy.engine();
    const row = await this.#row(engine, id);
    const state = foldHistory(await this.#tenancy.turns(engine, row));
    if (state.start === undefined) throw new WovyrError(`batch "${id}" has not begun`, { code: "INTERNAL" });
    const { operation, filter, startedAt, progress } = decodePayload(state.start.input) as BatchState;
    const shown = {
      ...nothingYet,
      ...progress,
      ...(state.variables === undefined ? {} : (decodePayload(state.variables) as BatchProgress)),
    };
    return {
      id,
      status: state.status,
      operation,
      filter,
      ...shown,
      startedAt: new Date(startedAt),
      ...(row.closedAt !== undefined && { closedAt: new Date(row.closedAt) }),
    };
  }

  async cancel(id: string, options: { readonly idempotencyKey?: string } = {}): Promise<Delivered> {
    await this.#row(this.#tenancy.acting(), id);
    return this.#messages.cancel(id, options);
  }

  async #row(engine: Engine, id: string): Promise<InstanceRow> {
    checkName(id, "the id of a batch");
    const row = await engine.options.store.findInstance(this.#tenancy.tenant, id, engine.shardOf(this.#tenancy.tenant, id));
    if (row?.workflow === batchWorkflowName) return row;
    throw new ApiError(`There is no batch "${id}".`, { code: "BATCH_NOT_FOUND" });
  }

  async #known(engine: Engine, startKey: { readonly key: string; readonly digest: string }): Promise<InstanceRow | undefined> {
    const { tenant } = this.#tenancy;
    const { store } = engine.options;
    const known = await store.findStartKey(tenant, batchWorkflowName, startKey.key);
    if (known === undefined) return undefined;
    if (known.digest === startKey.digest) return store.getInstance({ tenant, run: known.run, shard: undefined });
    throw new ApiError(`The idempotency key "${startKey.key}" was used for another batch. Use a new key for a new request.`, {
      code: "IDEMPOTENCY_CONFLICT",
    });
  }
}

type AnyBatch = Omit<BatchRequest, "operation"> & { readonly operation: BatchOperation | DeadLetterOperation };

function startOf(engine: Engine, tenant: string, { operation, filter, id: asked, idempotencyKey }: AnyBatch): Start {
  const run = asked === undefined ? engine.ids.ownRun(tenant, idempotencyKey) : engine.ids.run();
  const id = asked ?? run;
  const { version } = batchWorkflow;
  const state: BatchState = {
    operation,
    filter,
    key: `batch:${run}`,
    startedAt: engine.now(),
    cursor: operation.type === "decide" ? "" : run,
    progress: nothingYet,
  };
  const input = encodePayload(state, { limit: engine.options.limits.execution.payload, what: "a batch" });
  return {
    identity: { tenant, run, id, shard: engine.shardOf(tenant, id), workflow: batchWorkflowName, version, correlationId: id },
    create: {
      id,
      workflow: batchWorkflowName,
      version,
      correlationId: id,
      ...(idempotencyKey !== undefined && { startKey: { key: idempotencyKey, digest: digest([operation, filter, asked]) } }),
    },
    fact: { type: "InstanceStarted", id, workflow: batchWorkflowName, version, input, seed: engine.ids.seed(), correlationId: id },
  };
}

const optionsOf: Readonly<Record<BatchOperation["type"], readonly string[]>> = {
  cancel: ["mode", "reason"],
  terminate: ["reason"],
  pause: ["reason"],
  resume: [],
  wake: [],
  send: ["event", "payload"],
  reset: ["to", "reason"],
  delete: [],
};

/** Throws INVALID_OPTION or INVALID_NAME. */
function checkBatch({ operation, filter, id }: BatchRequest): void {
  if (id !== undefined) checkName(id, "the id of a batch");
  const { type } = operation;
  if (!Object.hasOwn(optionsOf, type))
    throw new ApiError(`A batch cannot "${String(type)}"; it can ${Object.keys(optionsOf).join(", ")}.`, { code: "INVALID_OPTION" });
  checkOptions(operation, ["type", ...optionsOf[type]], `the operation "${type}" of a batch`);
  checkOptions(filter, ["workflow", "statuses", "attributes", "startedAfter", "startedBefore"], "the filter of a batch");
  if (operation.type === "send") checkName(operation.event, "the name of an event");
  if (
    operation.type === "reset" &&
    operation.to !== "first" &&
    operation.to !== "last" &&
    !(Number.isSafeInteger(operation.to) && operation.to >= 1)
  )
    throw new ApiError('A reset needs `to`: the number of an event, "first" or "last".', { code: "INVALID_OPTION" });
  for (const status of filter.statuses ?? [])
    if (!statuses.includes(status)) throw new ApiError(`"${status}" is no status of an instance.`, { code: "INVALID_OPTION" });
}

/** Throws INVALID_OPTION or INVALID_NAME. */
function checkDecision({ decision, letters, output }: Omit<DeadLetterOperation, "type">, id: string | undefined): void {
  if (id !== undefined) checkName(id, "the id of a batch");
  if (!deadLetterDecisions.includes(decision))
    throw new ApiError(`"${String(decision)}" is no decision; it must be one of ${deadLetterDecisions.join(", ")}.`, {
      code: "INVALID_OPTION",
    });
  if (output !== undefined && decision !== "resolve")
    throw new ApiError(`An output goes with "resolve", and not with "${decision}".`, { code: "INVALID_OPTION" });
  const { ids, ...filter } = letters;
  checkOptions(filter, ["kind", "workflow", "name", "instanceId", "code", "since", "until"], "the letters of a batch");
  storeFilterOf(filter);
  if (ids === undefined) return;
  if (Object.keys(filter).length > 0)
    throw new ApiError("Name the dead letters by `ids`, or by what they have in common, and not by both.", { code: "INVALID_OPTION" });
  if (ids.length === 0 || ids.length > maxLetters)
    throw new ApiError(`From 1 to ${maxLetters} dead letters can be named, not ${ids.length}; use a filter for more.`, {
      code: "INVALID_OPTION",
    });
  for (const each of ids) checkName(each, "the id of a dead letter");
}

// ── what its activities do ─────────────────────────────────────────────────────────────────────────────────

export async function findRuns(tenancy: Tenancy, { filter, cursor }: FindRuns): Promise<FoundRuns> {
  const engine = tenancy.acting();
  const { rows, next } = await listRows(tenancy, filter, { after: cursor, limit: pageRuns });
  const own = rows.filter(({ shard }) => engine.ownership.epochOf(shard) !== undefined);
  return { runs: own.map(({ id, run }) => ({ id, run })), ...(next !== undefined && { next }) };
}

/** New ones are left out: those above all that come of what the batch does. */
export async function findDeadLetters(operations: Operations, { letters, cursor, startedAt }: FindDeadLetters): Promise<FoundRuns> {
  const { ids, until, ...filter } = letters;
  if (ids !== undefined) {
    const done = Number(cursor);
    const runs = ids.slice(done, done + pageRuns).map((id) => ({ id, run: placeOfDeadLetter(id)?.run ?? "" }));
    return { runs, ...(done + pageRuns < ids.length && { next: String(done + pageRuns) }) };
  }
  const before = new Date(Math.min(until?.getTime() ?? Number.POSITIVE_INFINITY, startedAt + 1));
  const page = await operations.listDeadLetters({ ...filter, until: before, limit: pageRuns, ...(cursor !== "" && { cursor }) });
  return {
    runs: page.items.map(({ id, runId }) => ({ id, run: runId })),
    ...(page.nextCursor !== undefined && { next: page.nextCursor }),
  };
}

/** Rejects when something passing stood in the way of one of them: then it is tried again, and what is done stays done. */
export async function operateOnRuns(operations: Operations, { operation, key, runs }: OperateOnRuns): Promise<OperatedRuns> {
  const outcomes = await Promise.all(runs.map((target) => outcomeOf(operations, operation, key, target)));
  const failures = outcomes.filter((outcome) => outcome !== undefined);
  return { done: runs.length - failures.length, failed: failures.length, failures: failures.slice(0, 20) };
}

async function outcomeOf(
  operations: Operations,
  operation: BatchOperation | DeadLetterOperation,
  key: string,
  target: BatchTarget,
): Promise<BatchFailure | undefined> {
  try {
    await operate(operations, operation, key, target);
    return undefined;
  } catch (error) {
    if (error instanceof ApiError && error.retryable) throw error;
    const code = error instanceof WovyrError ? error.code : "INTERNAL";
    // It is gone: this was done before.
    if (operation.type === "delete" && code === "INSTANCE_NOT_FOUND") return undefined;
    if (operation.type === "decide" && code === "DEAD_LETTER_DECIDED" && !isAwaited(target.id)) return undefined;
    return { id: target.id, runId: target.run, code, message: error instanceof Error ? error.message : String(error) };
  }
}

/** Whether a run waits for the decision, and so knows a repeated one. */
const isAwaited = (letter: string): boolean => ["activity", "compensation"].includes(placeOfDeadLetter(letter)?.kind ?? "");

async function operate(
  operations: Operations,
  operation: BatchOperation | DeadLetterOperation,
  idempotencyKey: string,
  { id, run }: BatchTarget,
): Promise<void> {
  if (operation.type === "decide") {
    const { decision, output, note } = operation;
    await operations.decideDeadLetter(id, decision, {
      ...(output !== undefined && { output }),
      ...(note !== undefined && { note }),
      // A run may have several.
      idempotencyKey: `${idempotencyKey}:${digest(id)}`,
    });
    return;
  }
  const { type, ...options } = operation;
  const about = { runId: run, idempotencyKey };
  switch (operation.type) {
    case "cancel":
      await operations.cancel(id, { ...options, ...about });
      return;
    case "terminate":
      await operations.terminate(id, { ...options, ...about });
      return;
    case "pause":
      await operations.pause(id, { ...options, ...about });
      return;
    case "resume":
      await operations.resume(id, about);
      return;
    case "wake":
      await operations.wake(id, about);
      return;
    case "send":
      await operations.sendEvent(id, operation.event, operation.payload, about);
      return;
    case "reset":
      await operations.reset(id, { to: operation.to, ...(operation.reason !== undefined && { reason: operation.reason }), ...about });
      return;
    case "delete":
      await operations.delete(id, { runId: run });
      return;
  }
}
