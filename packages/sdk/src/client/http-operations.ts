/**
 * `Operations` over HTTP.
 *
 * 1. What cannot be written is refused before anything is sent: a bad name by INVALID_NAME, a bad value by a `PayloadError` that says where.
 * 2. Every call that changes something carries an idempotency key, its own random one where the caller gave none, and the same one on every try.
 */
import { nanoid } from "nanoid";
import type { RunGraph } from "../graph/graph.ts";
import { ApiError } from "../model/errors.ts";
import { checkedKey } from "../model/idempotency-key.ts";
import { checkName } from "../model/name.ts";
import { type CloudEvent, clientSource } from "../protocol/cloud-event.ts";
import { mediaTypes } from "../protocol/media.ts";
import type {
  AttributeValue,
  BatchDescription,
  BatchItem,
  ClosedResult,
  ClusterDescription,
  DeadLetterDetails,
  DeadLetterSummary,
  Delivered,
  HistoryPage,
  HistoryRequest,
  ImportedRun,
  InstanceDescription,
  InstanceSummary,
  ListRequest,
  NewRun,
  Operations,
  Page,
  Published,
  ResultResponse,
  StartRequest,
  StartResponse,
  StreamItem,
  UpdateResponse,
  WorkflowDetails,
  WorkflowInfo,
} from "../protocol/operations.ts";
import { errorOfProblem } from "../protocol/problem.ts";
import { type Route, routes } from "../protocol/routes.ts";
import { isClosed } from "../protocol/status.ts";
import { httpCall, isReplayed, type Names, type Query, targetOf } from "./http-call.ts";
import { streamedLines } from "./http-lines.ts";
import { streamItems } from "./http-stream.ts";
import { httpTaskOperations } from "./http-task-operations.ts";
import type { Reply, Transport } from "./transport.ts";

type Delivery = { readonly runId?: string; readonly idempotencyKey?: string };

export function httpOperations(transport: Transport): Operations {
  const call = httpCall(transport);

  async function deliver<R extends Route>(
    route: R,
    names: Names,
    body: object | undefined,
    { runId, idempotencyKey }: Delivery = {},
  ): Promise<Delivered> {
    const query = (runId === undefined ? {} : { runId }) as Query<R>;
    return { replayed: isReplayed(await call(route, names, { query, ...(body !== undefined && { body }), idempotencyKey })) };
  }

  return {
    async listWorkflows() {
      const { body } = await call(routes.listWorkflows, {});
      return (body as { items: readonly WorkflowInfo[] }).items;
    },

    async getWorkflow(name) {
      return (await call(routes.getWorkflow, { name })).body as WorkflowDetails;
    },

    async start({ workflow, wait = 0, idempotencyKey, ...request }) {
      const waiting = wait > 0 ? { wait, query: { wait } } : {};
      return startResponse(
        await call(routes.startInstance, { name: workflow }, { ...waiting, body: startBody(request), idempotencyKey }),
        wait > 0,
      );
    },

    async startBatch(requests) {
      const [first] = requests;
      if (first === undefined) return [];
      const items = requests.map(({ workflow, wait: _, idempotencyKey = nanoid(), ...request }) => {
        if (workflow !== first.workflow) throw new ApiError("A batch starts instances of one workflow", { code: "INVALID_OPTION" });
        return { ...startBody(request), idempotencyKey };
      });
      const { body } = await call(routes.startBatch, { name: first.workflow }, { body: { items } });
      return (body as { items: readonly WireItem[] }).items.map(batchItem);
    },

    async list({ statuses, ...query }: ListRequest) {
      const { body } = await call(routes.listInstances, {}, { query: { ...query, ...(statuses !== undefined && { status: statuses }) } });
      return body as Page<InstanceSummary>;
    },

    async runs(id, query = {}) {
      return (await call(routes.listRuns, { id }, { query })).body as Page<InstanceSummary>;
    },

    async describe(id, query = {}) {
      return (await call(routes.getInstance, { id }, { query })).body as InstanceDescription;
    },

    async result(id, { signal, ...query } = {}) {
      return (await call(routes.getResult, { id }, { query, signal, wait: query.wait })).body as ResultResponse;
    },

    async history(id, query: HistoryRequest = {}) {
      return (await call(routes.getHistory, { id }, { query })).body as HistoryPage;
    },

    async graph(id, query = {}) {
      return (await call(routes.getGraph, { id }, { query })).body as RunGraph;
    },

    stream(id, { runId, after, signal } = {}): AsyncIterable<StreamItem> {
      const path = targetOf(routes.streamInstance, { id }, runId === undefined ? {} : { runId });
      return streamItems(transport, path, after, signal);
    },

    sendEvent: (id, event, payload, options) =>
      deliver(routes.sendEvent, { id, name: event }, payload === undefined ? {} : { payload }, options),

    async publish(event, payload, { key, idempotencyKey } = {}) {
      const body: CloudEvent = {
        specversion: "1.0",
        id: idempotencyKey === undefined ? nanoid() : checkedKey(idempotencyKey),
        source: clientSource,
        type: checkName(event, "the name of an event"),
        ...(key !== undefined && { subject: key }),
        ...(payload !== undefined && { data: payload }),
      };
      const reply = await call(routes.publishEvent, {}, { body });
      return { ...(reply.body as Omit<Published, "replayed">), replayed: isReplayed(reply) };
    },

    async query(id, name, input, { runId } = {}) {
      const reply = await call(
        routes.queryInstance,
        { id, name },
        { query: runId === undefined ? {} : { runId }, body: input === undefined ? {} : { input } },
      );
      return (reply.body as { output: unknown }).output;
    },

    async update(id, name, input, { runId, idempotencyKey, wait, signal } = {}) {
      const query = { ...(runId !== undefined && { runId }), ...(wait !== undefined && { wait }) };
      const body = input === undefined ? {} : { input };
      return (await call(routes.updateInstance, { id, name }, { query, body, idempotencyKey, wait, signal })).body as UpdateResponse;
    },

    wake: (id, options) => deliver(routes.wakeInstance, { id }, undefined, options),

    cancel: (id, { mode, reason, ...options } = {}) =>
      deliver(routes.cancelInstance, { id }, { ...(mode !== undefined && { mode }), ...(reason !== undefined && { reason }) }, options),

    decideCompensation: (id, effect, decision, { note, ...options } = {}) =>
      deliver(decisions[decision], { id, effect }, note === undefined ? {} : { note }, options),

    async listDeadLetters(query = {}) {
      return (await call(routes.listDeadLetters, {}, { query })).body as Page<DeadLetterSummary>;
    },

    async getDeadLetter(letter) {
      return (await call(routes.getDeadLetter, { letter })).body as DeadLetterDetails;
    },

    async decideDeadLetter(letter, decision, { output, note, idempotencyKey } = {}) {
      const body = { ...(note !== undefined && { note }), ...(output !== undefined && { output }) };
      return { replayed: isReplayed(await call(letterDecisions[decision], { letter }, { body, idempotencyKey })) };
    },

    async decideDeadLetters({ decision, letters: { since, until, ...letters }, output, note }, { id, idempotencyKey } = {}) {
      const body = {
        letters: {
          ...letters,
          ...(since !== undefined && { since: since.toISOString() }),
          ...(until !== undefined && { until: until.toISOString() }),
        },
        ...(output !== undefined && { output }),
        ...(note !== undefined && { note }),
        ...(id !== undefined && { id }),
      };
      const reply = await call(manyDecisions[decision], {}, { body, idempotencyKey });
      return { id: (reply.body as { id: string }).id, replayed: isReplayed(reply) };
    },

    terminate: (id, { reason, ...options } = {}) =>
      deliver(routes.terminateInstance, { id }, reason === undefined ? {} : { reason }, options),

    pause: (id, { reason, ...options } = {}) => deliver(routes.pauseInstance, { id }, reason === undefined ? {} : { reason }, options),

    resume: (id, options) => deliver(routes.resumeInstance, { id }, undefined, options),

    async fork(id, { idempotencyKey, ...body } = {}) {
      return newRun(await call(routes.forkInstance, { id }, { body, idempotencyKey }));
    },

    async reset(id, { idempotencyKey, ...body }) {
      return newRun(await call(routes.resetInstance, { id }, { body, idempotencyKey }));
    },

    export(id, { runId } = {}) {
      return streamedLines(transport, targetOf(routes.exportInstance, { id }, runId === undefined ? {} : { runId }));
    },

    async import(lines) {
      const { method } = routes.importInstances;
      const path = targetOf(routes.importInstances, {}, undefined);
      const reply = await transport.call({ method, path, body: await joined(lines), bodyType: mediaTypes.lines, once: true });
      return (reply.body as { items: readonly ImportedRun[] }).items;
    },

    async delete(id, query = {}) {
      return (await call(routes.deleteInstance, { id }, { query, once: true })).body as { deleted: number };
    },

    async startBatchOperation({ filter: { statuses, startedAfter, startedBefore, ...filter }, idempotencyKey, ...request }) {
      const body = {
        ...request,
        filter: {
          ...filter,
          ...(statuses !== undefined && { status: statuses }),
          ...(startedAfter !== undefined && { startedAfter: startedAfter.toISOString() }),
          ...(startedBefore !== undefined && { startedBefore: startedBefore.toISOString() }),
        },
      };
      const reply = await call(routes.startBatchOperation, {}, { body, idempotencyKey });
      return { id: (reply.body as { id: string }).id, replayed: isReplayed(reply) };
    },

    async getBatchOperation(id) {
      const { filter, ...batch } = (await call(routes.getBatchOperation, { id })).body as WireBatch;
      const { status, ...rest } = filter;
      return { ...batch, filter: { ...rest, ...(status !== undefined && { statuses: status }) } };
    },

    async cancelBatchOperation(id, { idempotencyKey } = {}) {
      return { replayed: isReplayed(await call(routes.cancelBatchOperation, { id }, { idempotencyKey })) };
    },

    async cluster() {
      return (await call(routes.getCluster, {})).body as ClusterDescription;
    },
    ...httpTaskOperations(call),

    async health() {
      return (await call(routes.ready, {}, { accepted: [503] })).body as { ready: boolean; reason?: string };
    },
  };
}

const letterDecisions = {
  retry: routes.retryDeadLetter,
  resolve: routes.resolveDeadLetter,
  fail: routes.failDeadLetter,
  discard: routes.discardDeadLetter,
} as const;
const manyDecisions = {
  retry: routes.retryDeadLetters,
  resolve: routes.resolveDeadLetters,
  fail: routes.failDeadLetters,
  discard: routes.discardDeadLetters,
} as const;
const decisions = { retry: routes.retryCompensation, skip: routes.skipCompensation, resolve: routes.resolveCompensation } as const;

type WireBatch = Omit<BatchDescription, "filter"> & {
  readonly filter: Omit<BatchDescription["filter"], "statuses"> & { readonly status?: BatchDescription["filter"]["statuses"] };
};

function newRun(reply: Reply): NewRun {
  return { ...(reply.body as Omit<NewRun, "replayed">), replayed: isReplayed(reply) };
}

async function joined(lines: AsyncIterable<string>): Promise<string> {
  const all: string[] = [];
  for await (const line of lines) all.push(line);
  return all.join("\n");
}

// ── starting ──

function startBody({ startAt, attributes, input, ...rest }: Omit<StartRequest, "workflow" | "wait" | "idempotencyKey">): object {
  return {
    ...rest,
    ...(input !== undefined && { input }),
    ...(startAt !== undefined && { startAt: new Date(startAt).toISOString() }),
    ...(attributes !== undefined && {
      attributes: Object.fromEntries(Object.entries(attributes).map(([name, value]) => [name, shown(value)])),
    }),
  };
}

function shown(value: AttributeValue): unknown {
  return value instanceof Date ? value.toISOString() : value;
}

function startResponse(reply: Reply, waited: boolean): StartResponse {
  const answer = reply.body as ClosedResult;
  return {
    id: answer.id,
    runId: answer.runId,
    status: answer.status,
    created: reply.status === 201,
    replayed: isReplayed(reply),
    ...(waited && isClosed(answer.status) && { result: answer }),
  };
}

type WireItem = ({ readonly ok: true } & StartResponse) | { readonly ok: false; readonly problem: { readonly status: number } };

function batchItem(item: WireItem): BatchItem {
  if (!item.ok) return { ok: false, error: errorOfProblem(item.problem.status, item.problem) };
  const { ok: _, ...value } = item;
  return { ok: true, value };
}
