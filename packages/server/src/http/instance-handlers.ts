import {
  type CompensationDecision,
  type Delivered,
  graphFormatOf,
  type HistoryPage,
  isClosed,
  mermaidType,
  toMermaid,
} from "@wovyr/sdk/internal";
import { type Answer, bodyText, replayedHeader } from "./answer.ts";
import type { Handlers } from "./handler.ts";
import { type LongPolls, resultOf, shownResult } from "./long-polls.ts";

type Served =
  | "listInstances"
  | "listRuns"
  | "getInstance"
  | "getResult"
  | "getHistory"
  | "getGraph"
  | "sendEvent"
  | "queryInstance"
  | "updateInstance"
  | "wakeInstance"
  | "cancelInstance"
  | "retryCompensation"
  | "skipCompensation"
  | "resolveCompensation"
  | "terminateInstance"
  | "pauseInstance"
  | "resumeInstance";

export function instanceHandlers(polls: LongPolls): Pick<Handlers, Served> {
  return {
    async listInstances({ operations, query: { status, ...query } }) {
      return {
        status: 200,
        value: await operations.list({
          ...query,
          ...(status !== undefined && { statuses: status }),
        }),
      };
    },

    async listRuns({ operations, names, query }) {
      return { status: 200, value: await operations.runs(names.id, query) };
    },

    async getInstance({ operations, names, query }) {
      return { status: 200, value: await operations.describe(names.id, query) };
    },

    async getResult({ operations, names, query, view, reply }) {
      const value = await resultOf(polls, reply.raw, operations, names.id, query, view);
      return { status: isClosed(value.status) ? 200 : 202, value };
    },

    async getHistory({ operations, names, query, view }) {
      return {
        status: 200,
        text: historyText(await operations.history(names.id, query), (page) => bodyText(page, view)),
      };
    },

    async getGraph({ operations, names, query: { format, ...query }, request }) {
      const graph = await operations.graph(names.id, query);
      return graphFormatOf(format, request.headers.accept) === "mermaid"
        ? { status: 200, text: toMermaid(graph), type: `${mermaidType}; charset=utf-8` }
        : { status: 200, value: graph };
    },

    async sendEvent({ operations, names, query, body, idempotencyKey }) {
      const options = {
        ...query,
        ...(idempotencyKey !== undefined && { idempotencyKey }),
      };
      return accepted(names.id, await operations.sendEvent(names.id, names.name, body.payload, options));
    },

    async queryInstance({ operations, names, query, body, view }) {
      const output = await operations.query(names.id, names.name, body.input, query);
      return { status: 200, value: { output: view === "plain" ? (output ?? null) : output } };
    },

    async updateInstance({ operations, names, query: { runId, wait = 30_000 }, body, idempotencyKey, view, reply }) {
      const options = { ...(runId !== undefined && { runId }), ...(idempotencyKey !== undefined && { idempotencyKey }) };
      const update = (more: { readonly wait: number; readonly signal?: AbortSignal }) =>
        operations.update(names.id, names.name, body.input, { ...options, ...more });
      const value = await polls.wait(
        reply.raw,
        (signal) => update({ wait, signal }),
        () => update({ wait: 0 }),
      );
      return { status: value.status === "Open" ? 202 : 200, value: shownResult(value, view) };
    },

    async wakeInstance({ operations, names, query, idempotencyKey }) {
      return accepted(names.id, await operations.wake(names.id, { ...query, ...(idempotencyKey !== undefined && { idempotencyKey }) }));
    },

    async cancelInstance({ operations, names, query, body, idempotencyKey }) {
      return accepted(
        names.id,
        await operations.cancel(names.id, {
          ...query,
          ...body,
          ...(idempotencyKey !== undefined && { idempotencyKey }),
        }),
      );
    },

    retryCompensation: decided("retry"),
    skipCompensation: decided("skip"),
    resolveCompensation: decided("resolve"),

    async terminateInstance({ operations, names, query, body, idempotencyKey }) {
      return accepted(
        names.id,
        await operations.terminate(names.id, {
          ...query,
          ...body,
          ...(idempotencyKey !== undefined && { idempotencyKey }),
        }),
      );
    },

    async pauseInstance({ operations, names, query, body, idempotencyKey }) {
      const options = { ...query, ...body, ...(idempotencyKey !== undefined && { idempotencyKey }) };
      return accepted(names.id, await operations.pause(names.id, options));
    },

    async resumeInstance({ operations, names, query, idempotencyKey }) {
      return accepted(names.id, await operations.resume(names.id, { ...query, ...(idempotencyKey !== undefined && { idempotencyKey }) }));
    },
  };
}

function decided(
  decision: CompensationDecision,
): Handlers["retryCompensation"] & Handlers["skipCompensation"] & Handlers["resolveCompensation"] {
  return async ({ operations, names, query, body, idempotencyKey }) =>
    accepted(
      names.id,
      await operations.decideCompensation(names.id, names.effect, decision, {
        ...query,
        ...body,
        ...(idempotencyKey !== undefined && { idempotencyKey }),
      }),
    );
}

function accepted(id: string, delivered: Delivered): Answer {
  return {
    status: 202,
    value: { id },
    ...(delivered.replayed && { headers: replayedHeader }),
  };
}

/** About as long as a page of history may be, in characters. */
const longestPage = 16 * 1024 * 1024;

/** The text of a page, with fewer events where it would be too long. */
function historyText(page: HistoryPage, write: (page: HistoryPage) => string): string {
  const text = write(page);
  const half = page.items[page.items.length >> 1];
  if (text.length <= longestPage || page.items.length < 2 || half === undefined) return text;
  return historyText(
    {
      ...page,
      items: page.items.slice(0, page.items.length >> 1),
      nextSeq: half.seq,
    },
    write,
  );
}
