/** What is done to instances as a whole: forks, resets, exports and imports, removal, batches. */
import { type BatchFilter, type BatchOperation, type BatchOperationBody, type NewRun, readAt, zonedInstant } from "@wovyr/sdk/internal";
import { type Answer, replayedHeader, taken } from "./answer.ts";
import type { Handlers } from "./handler.ts";
import { streamLines } from "./line-stream.ts";

type Served =
  | "forkInstance"
  | "resetInstance"
  | "exportInstance"
  | "importInstances"
  | "deleteInstance"
  | "startBatchOperation"
  | "getBatchOperation"
  | "cancelBatchOperation";

export const operationHandlers: Pick<Handlers, Served> = {
  async forkInstance({ operations, names, body, idempotencyKey, prefix }) {
    return begun(await operations.fork(names.id, { ...body, ...keyed(idempotencyKey) }), prefix);
  },

  async resetInstance({ operations, names, body, idempotencyKey, prefix }) {
    return begun(await operations.reset(names.id, { ...body, ...keyed(idempotencyKey) }), prefix);
  },

  async exportInstance({ operations, names, query, reply }) {
    await streamLines(reply, operations.export(names.id, query));
    return taken;
  },

  async importInstances({ operations, lines }) {
    return { status: 201, value: { items: await operations.import(lines) } };
  },

  async deleteInstance({ operations, names, query }) {
    return { status: 200, value: await operations.delete(names.id, query) };
  },

  async startBatchOperation({ operations, body: { operation, filter, id }, idempotencyKey, prefix }) {
    const request = { operation: operation as BatchOperation, filter: filterOf(filter), ...(id !== undefined && { id }) };
    const started = await operations.startBatchOperation({ ...request, ...keyed(idempotencyKey) });
    return {
      status: 202,
      value: { id: started.id },
      headers: { location: `${prefix}/v1/batches/${started.id}`, ...(started.replayed && replayedHeader) },
    };
  },

  async getBatchOperation({ operations, names }) {
    const { filter, ...batch } = await operations.getBatchOperation(names.id);
    const { statuses, ...rest } = filter;
    return { status: 200, value: { ...batch, filter: { ...rest, ...(statuses !== undefined && { status: statuses }) } } };
  },

  async cancelBatchOperation({ operations, names, idempotencyKey }) {
    const { replayed } = await operations.cancelBatchOperation(names.id, keyed(idempotencyKey));
    return { status: 202, value: { id: names.id }, ...(replayed && { headers: replayedHeader }) };
  },
};

const keyed = (idempotencyKey: string | undefined) => (idempotencyKey === undefined ? {} : { idempotencyKey });

function begun({ replayed, ...run }: NewRun, prefix: string): Answer {
  return {
    status: 201,
    value: run,
    headers: { location: `${prefix}/v1/instances/${run.id}`, ...(replayed && replayedHeader) },
  };
}

function filterOf({ status, startedAfter, startedBefore, ...rest }: BatchOperationBody["filter"]): BatchFilter {
  return {
    ...rest,
    ...(status !== undefined && { statuses: status }),
    ...(startedAfter !== undefined && { startedAfter: timeAt("/filter/startedAfter", startedAfter) }),
    ...(startedBefore !== undefined && { startedBefore: timeAt("/filter/startedBefore", startedBefore) }),
  };
}

const timeAt = (pointer: string, text: string) => new Date(readAt(pointer, (what) => zonedInstant(text, what)));
