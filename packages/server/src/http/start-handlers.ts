import {
  ApiError,
  type BatchBody,
  type BatchItem,
  milliseconds,
  problemOf,
  readAt,
  resolveRunTimeouts,
  type StartBody,
  type StartEvent,
  type StartRequest,
  zonedInstant,
} from "@wovyr/sdk/internal";
import { replayedHeader } from "./answer.ts";
import type { Handlers } from "./handler.ts";
import { type LongPolls, shownResult } from "./long-polls.ts";

export function startHandlers(polls: LongPolls): Pick<Handlers, "startInstance" | "startBatch"> {
  return {
    async startInstance({ operations, names, query, body, idempotencyKey, prefix, view, reply }) {
      const request = startRequest(names.name, body, idempotencyKey);
      const wait = query.wait ?? 0;
      const started = await (wait > 0
        ? polls.wait(
            reply.raw,
            (signal) => operations.start({ ...request, wait, signal }),
            () => operations.start(request),
          )
        : operations.start(request));
      const { id, runId, status, created, replayed, result } = started;
      return {
        status: created ? 201 : 200,
        value: result === undefined ? { id, runId, status } : shownResult(result, view),
        headers: {
          location: `${prefix}/v1/instances/${id}`,
          ...(replayed && replayedHeader),
        },
      };
    },

    async startBatch({ operations, names, body, idempotencyKey }) {
      const requests = body.items.map((item, index) =>
        startRequest(names.name, item, keyOf(item, index, idempotencyKey), `/items/${index}`),
      );
      const items = await operations.startBatch(requests);
      return { status: 200, value: { items: items.map(batchItem) } };
    },
  };
}

/** `at` points to where it stands in the request's body. */
function startRequest(workflow: string, body: StartBody, idempotencyKey: string | undefined, at = ""): StartRequest {
  const { input, id, version, startAt, delay, timeout, attributes, memo, correlationId, priority, onConflict, event } = body;
  return {
    workflow,
    input,
    ...(id !== undefined && { id }),
    ...(version !== undefined && { version }),
    ...(startAt !== undefined && { startAt: readAt(`${at}/startAt`, (what) => zonedInstant(startAt, what)) }),
    ...(delay !== undefined && { delay: readAt(`${at}/delay`, (what) => milliseconds(delay, what)) }),
    ...(timeout !== undefined && { timeout: readAt(`${at}/timeout`, () => resolveRunTimeouts(timeout, "timeout")) }),
    ...(attributes !== undefined && { attributes }),
    ...(memo !== undefined && { memo }),
    ...(correlationId !== undefined && { correlationId }),
    ...(priority !== undefined && { priority }),
    ...(onConflict !== undefined && { onConflict }),
    ...(event !== undefined && { event: event as StartEvent }),
    ...(idempotencyKey !== undefined && { idempotencyKey }),
  };
}

const longestBatchKey = 250;

/** An item's own key, or one made of the batch's and its place, so that a repeated batch starts nothing twice. */
function keyOf(item: BatchBody["items"][number], index: number, batchKey: string | undefined): string | undefined {
  if (item.idempotencyKey !== undefined) return item.idempotencyKey;
  if (batchKey !== undefined && batchKey.length > longestBatchKey) {
    throw new ApiError(`The Idempotency-Key of a batch has at most ${longestBatchKey} characters`, { code: "MALFORMED_REQUEST" });
  }
  if (batchKey !== undefined) return `${batchKey}#${index}`;
  if (item.id !== undefined) return undefined;
  throw new ApiError("Each start of a batch needs an id or an idempotencyKey, or the batch an Idempotency-Key", {
    code: "SCHEMA_VIOLATION",
    errors: [
      {
        pointer: `/items/${index}`,
        message: "needs an id or an idempotencyKey",
      },
    ],
  });
}

function batchItem(item: BatchItem): object {
  if (!item.ok) return { ok: false, problem: problemOf(item.error, "/input") };
  const { id, runId, status, created, replayed } = item.value;
  return { ok: true, id, runId, status, created, replayed };
}
