/**
 * The client over any `Operations`: an orchestrator in this process, or one behind a URL. Nothing is encoded here.
 *
 * 1. A definition starts its own version, whose input it knows; where that is not registered, the one that was registered last.
 */
import type { AnyWorkflow, Workflow } from "../define/workflow.ts";
import { instant, milliseconds } from "../model/duration.ts";
import { WovyrError } from "../model/errors.ts";
import { checkEventKey } from "../model/event-key.ts";
import { checkedKey } from "../model/idempotency-key.ts";
import { checkName } from "../model/name.ts";
import { checkOptions, defined } from "../model/option.ts";
import { checkPriority } from "../model/priority.ts";
import { resolveRunTimeouts } from "../model/run-timeouts.ts";
import type {
  BatchItem,
  BatchOperation,
  BatchRequest,
  ListRequest,
  Operations,
  StartRequest,
  StartResponse,
} from "../protocol/operations.ts";
import { maxBatch } from "../protocol/schemas.ts";
import type { BatchAction, BatchOptions, BatchOutcome, BatchStart, Client, Handle, ListFilter, StartOptions } from "./client.ts";
import { deadLettersOver } from "./dead-letters.ts";
import { handleOn, outcomeOf, resultWait } from "./handle.ts";

export function clientOver(operations: Operations): Client {
  function handle<O>(workflow: Workflow<never, O>, id: string): Handle<O>;
  function handle(id: string): Handle<unknown>;
  function handle(...args: [AnyWorkflow, string] | [string]): Handle<unknown> {
    return args.length === 1 ? handleOn(operations, args[0], "") : handleOn(operations, args[1], "", args[0].definition);
  }

  return Object.freeze<Client>({
    async start<I, O>(workflow: Workflow<I, O>, input?: unknown, options?: StartOptions) {
      const { id, runId } = await startOf(operations, workflow, startRequest(workflow, input, options));
      return handleOn<O>(operations, id, runId, workflow.definition);
    },

    async execute<I, O>(workflow: Workflow<I, O>, input?: unknown, options?: StartOptions) {
      const { id, runId, result } = await startOf(operations, workflow, { ...startRequest(workflow, input, options), wait: resultWait });
      return result === undefined
        ? handleOn<O>(operations, id, runId, workflow.definition).result()
        : outcomeOf<O>(result, workflow.definition);
    },

    async startBatch<I, O>(workflow: Workflow<I, O>, starts: readonly BatchStart<I>[]) {
      const requests = starts.map(({ input, ...options }) => startRequest(workflow, input, options));
      const outcomes: BatchOutcome<O>[] = [];
      for (let first = 0; first < requests.length; first += maxBatch) {
        for (const item of await startAllOf(operations, workflow, requests.slice(first, first + maxBatch))) {
          outcomes.push(item.ok ? { ok: true, handle: handleOn(operations, item.value.id, item.value.runId, workflow.definition) } : item);
        }
      }
      return outcomes;
    },

    handle,

    deadLetters: deadLettersOver(operations),

    async *workers() {
      for (let cursor: string | undefined; ; ) {
        const page = await operations.listWorkers(cursor === undefined ? {} : { cursor });
        yield* page.items;
        if (page.nextCursor === undefined) return;
        cursor = page.nextCursor;
      }
    },

    queues: () => operations.listQueues(),

    async publish(event, ...[payload, options]) {
      const what = `publish(${event.name})`;
      checkOptions(options, ["key", "idempotencyKey"], what);
      const { key, idempotencyKey } = options ?? {};
      return operations.publish(event.name, payload, {
        ...(key !== undefined && { key: checkEventKey(key, what) }),
        ...(idempotencyKey !== undefined && { idempotencyKey: checkedKey(idempotencyKey) }),
      });
    },

    async *list(filter = {}) {
      const request = listRequest(filter);
      let page = await operations.list(request);
      for (;;) {
        yield* page.items;
        if (page.nextCursor === undefined) return;
        page = await operations.list({ ...request, cursor: page.nextCursor });
      }
    },

    import: (lines) => operations.import(linesOf(lines)),

    cluster: () => operations.cluster(),

    batches: Object.freeze({
      async start(options: BatchOptions) {
        return (await operations.startBatchOperation(batchRequest(options))).id;
      },

      get: (id: string) => operations.getBatchOperation(id),

      async cancel(id: string) {
        await operations.cancelBatchOperation(id);
      },
    }),
  });
}

async function startOf(operations: Operations, { version }: AnyWorkflow, request: StartRequest): Promise<StartResponse> {
  if (request.version !== undefined) return operations.start(request);
  try {
    return await operations.start({ ...request, version });
  } catch (error) {
    if (!isMissing(error)) throw error;
    return operations.start(request);
  }
}

async function startAllOf(
  operations: Operations,
  { version }: AnyWorkflow,
  requests: readonly StartRequest[],
): Promise<readonly BatchItem[]> {
  const items = [...(await operations.startBatch(requests.map((request) => ({ version, ...request }))))];
  const missing = [...items.keys()].filter((at) => {
    const item = items[at];
    return item?.ok === false && isMissing(item.error) && requests[at]?.version === undefined;
  });
  if (missing.length === 0) return items;
  const again = await operations.startBatch(missing.map((at) => requests[at] as StartRequest));
  for (const [index, at] of missing.entries()) items[at] = again[index] as BatchItem;
  return items;
}

/** Nothing was started: the workflow, or this version of it, is not registered. */
const isMissing = (error: unknown): boolean => error instanceof WovyrError && error.code === "WORKFLOW_NOT_FOUND";

async function* linesOf(given: string | Iterable<string> | AsyncIterable<string>): AsyncGenerator<string> {
  yield* typeof given === "string" ? given.split("\n") : given;
}

function batchRequest(options: BatchOptions): BatchRequest {
  checkOptions(options, ["operation", "filter", "id", "idempotencyKey"], "batches.start");
  const { operation, filter, id, idempotencyKey } = options;
  if (typeof operation !== "object" || operation === null || typeof filter !== "object" || filter === null)
    throw new WovyrError("batches.start takes `{ operation: { type: … }, filter: { … } }`; an empty filter means every run", {
      code: "INVALID_OPTION",
    });
  if (idempotencyKey !== undefined) checkedKey(idempotencyKey);
  checkOptions(filter, ["workflow", "status", "attributes", "startedAfter", "startedBefore"], "the filter of batches.start");
  return {
    operation: actionOf(operation),
    filter: listRequest(filter),
    ...defined({ id, idempotencyKey }),
  };
}

function actionOf(operation: BatchAction): BatchOperation {
  if (operation.type !== "send") return operation;
  const { event, ...rest } = operation;
  return { ...rest, event: typeof event === "string" ? event : event.name };
}

const startOptions = [
  "id",
  "idempotencyKey",
  "version",
  "startAt",
  "delay",
  "timeout",
  "attributes",
  "memo",
  "correlationId",
  "priority",
  "onConflict",
  "event",
];

/** What a start asks for, checked. */
export function startRequest(workflow: AnyWorkflow, input: unknown, options: StartOptions | undefined): StartRequest {
  if ((workflow as Partial<AnyWorkflow> | null | undefined)?.definition === undefined)
    throw new WovyrError(
      `a start takes what \`workflow(…)\` returned, and not ${typeof workflow === "string" ? "a name" : typeof workflow}`,
      {
        code: "INVALID_DEFINITION",
      },
    );
  if (options === undefined) return { workflow: workflow.name, input };
  checkOptions(options, startOptions, "start");
  const { startAt, delay, timeout, ...rest } = options;
  if (rest.id !== undefined && typeof rest.id !== "string") checkName(rest.id, "the id of an instance");
  if (rest.idempotencyKey !== undefined) checkedKey(rest.idempotencyKey);
  if (rest.priority !== undefined) checkPriority(rest.priority, "priority");
  return {
    workflow: workflow.name,
    input,
    ...defined(rest),
    ...(startAt !== undefined && { startAt: instant(startAt, "startAt") }),
    ...(delay !== undefined && { delay: milliseconds(delay, "delay") }),
    ...(timeout !== undefined && { timeout: resolveRunTimeouts(timeout, "timeout") }),
  };
}

function listRequest({ workflow, status, attributes, startedAfter, startedBefore }: ListFilter): ListRequest {
  return defined({
    workflow: typeof workflow === "object" ? workflow.name : workflow,
    statuses: typeof status === "string" ? [status] : status,
    attributes,
    startedAfter: startedAfter === undefined ? undefined : new Date(instant(startedAfter, "startedAfter")),
    startedBefore: startedBefore === undefined ? undefined : new Date(instant(startedBefore, "startedBefore")),
  });
}
