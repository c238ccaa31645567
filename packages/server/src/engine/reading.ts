/** What is read of instances: lists, descriptions, graphs, histories and streams. */
import { ApiError } from "@wovyr/sdk";
import {
  type HistoryPage,
  type HistoryRequest,
  type InstanceDescription,
  type InstanceSummary,
  type ListRequest,
  type Page,
  type RunGraph,
  type StreamItem,
  type Turn,
  turnView,
} from "@wovyr/sdk/internal";
import { cursorAfter, runOfCursor } from "./cursor.ts";
import { listRows } from "./listing.ts";
import { isOpenStatus } from "./ports/store.ts";
import { followRun } from "./stream.ts";
import type { Tenancy } from "./tenancy.ts";
import { descriptionOf, runGraphOf, summaryOf } from "./views.ts";

const maxPage = 500;
const defaultPage = 50;
const maxEvents = 1_000;
const defaultEvents = 500;

export class Reading {
  readonly #tenancy: Tenancy;

  constructor(tenancy: Tenancy) {
    this.#tenancy = tenancy;
  }

  async list({ cursor, limit: asked, ...request }: ListRequest): Promise<Page<InstanceSummary>> {
    const limit = bounded(asked ?? defaultPage, maxPage, "limit");
    const { rows, next } = await listRows(this.#tenancy, request, { after: cursor === undefined ? undefined : runOfCursor(cursor), limit });
    return { items: rows.map(summaryOf), ...(next !== undefined && { nextCursor: cursorAfter(next) }) };
  }

  async runs(id: string, request: { readonly cursor?: string; readonly limit?: number } = {}): Promise<Page<InstanceSummary>> {
    const engine = this.#tenancy.engine();
    const limit = bounded(request.limit ?? defaultPage, maxPage, "limit");
    const after = request.cursor === undefined ? undefined : runOfCursor(request.cursor);
    const { shard } = await this.#tenancy.row(engine, id, undefined);
    const rows = await engine.options.store.listInstances(
      this.#tenancy.tenant,
      { id, shard },
      { ...(after !== undefined && { after }), limit },
    );
    const last = rows[rows.length - 1];
    return { items: rows.map(summaryOf), ...(last !== undefined && rows.length === limit && { nextCursor: cursorAfter(last.run) }) };
  }

  async describe(id: string, options: { readonly runId?: string } = {}): Promise<InstanceDescription> {
    const engine = this.#tenancy.engine();
    const row = await this.#tenancy.row(engine, id, options.runId);
    const turns = await this.#tenancy.turns(engine, row);
    const registered = engine.options.registry.find(row.workflow, row.version) !== undefined;
    const tasks = isOpenStatus(row.status) && turns.some(asksForWorker) ? await engine.options.store.tasks.ofRun(row) : [];
    return descriptionOf(row, turns, {
      tasks: new Map(tasks.map((task) => [task.effect, task])),
      waitingAt: registered ? await engine.revival.waitingAt(row) : undefined,
      circuitOf: (activity) => {
        const circuit = engine.dispatch.circuitOf(row.tenant, activity);
        return circuit && { state: circuit.state, until: new Date(circuit.until) };
      },
      waitOf: (effect) => engine.dispatch.waitOf(row.run, effect),
    });
  }

  async graph(id: string, options: { readonly runId?: string } = {}): Promise<RunGraph> {
    const engine = this.#tenancy.engine();
    const row = await this.#tenancy.row(engine, id, options.runId);
    return runGraphOf(row, await this.#tenancy.turns(engine, row));
  }

  async history(id: string, request: HistoryRequest = {}): Promise<HistoryPage> {
    const engine = this.#tenancy.engine();
    const row = await this.#tenancy.row(engine, id, request.runId);
    const limit = bounded(request.limit ?? defaultEvents, maxEvents, "limit");
    const fromSeq = bounded(request.fromSeq ?? 1, Number.MAX_SAFE_INTEGER, "fromSeq");
    const rows = await engine.options.store.readHistory(row, fromSeq, limit);
    const items = (await engine.rows.decodeAll(rows)).flatMap((turn) => turnView(turn, fromSeq)).slice(0, limit);
    const last = items[items.length - 1];
    const more = last !== undefined && last.seq < row.tail;
    return { runId: row.run, items, ...(more && { nextSeq: last.seq + 1 }) };
  }

  async *stream(
    id: string,
    options: {
      readonly runId?: string;
      readonly after?: { readonly runId: string; readonly seq: number };
      readonly signal?: AbortSignal;
    } = {},
  ): AsyncGenerator<StreamItem> {
    const engine = this.#tenancy.engine();
    const row = await this.#tenancy.row(engine, id, options.runId);
    if (options.after !== undefined && (options.after.runId !== row.run || options.after.seq > row.tail))
      throw new ApiError(
        `Event ${options.after.runId}:${options.after.seq} is not of run ${row.run}. Leave Last-Event-ID out to begin at the start.`,
        {
          code: "INVALID_CURSOR",
        },
      );
    yield* followRun(engine, row, options.after?.seq ?? 0, options.signal);
  }
}

const asksForWorker = ({ events }: Turn): boolean => events.some((fact) => fact.type === "ActivityScheduled" && fact.queue !== undefined);

export function bounded(value: number, max: number, what: string): number {
  if (Number.isInteger(value) && value >= 1 && value <= max) return value;
  throw new ApiError(`${what} must be a whole number from 1 to ${max}, not ${value}`, { code: "MALFORMED_REQUEST" });
}
