/**
 * Runs on their way out of a store, and into one.
 *
 * 1. What is exported is a state that the run was in: its row, the turns up to there, and what was kept for it. A message that is applied meanwhile may be
 *    in it twice, which means once.
 * 2. All that is to be imported is read and checked before any of it is written. A run that exists, and an id that an open run has, refuse all of it.
 * 3. A closed run is imported as it is. An open one goes on: attempts that nobody runs here begin again, and none of them counts as lost.
 */
import { ApiError } from "@wovyr/sdk";
import {
  type ExportedRun,
  type ExportHeader,
  exportedRuns,
  exportFormat,
  foldHistory,
  type ImportedRun,
  type Incoming,
  turnView,
} from "@wovyr/sdk/internal";
import type { Engine } from "./engine.ts";
import { mailIdentity } from "./mail.ts";
import type { HistoryRow, InstanceRow, RunAddress, RunImport } from "./ports/store.ts";
import { isRunId } from "./run-id.ts";
import type { Tenancy } from "./tenancy.ts";
import { searchable, storedStatus } from "./turn-write.ts";
import { statusOf } from "./views.ts";

const turnsPerRead = 200;
const messagesPerRead = 1_000;
/** Runs that one call takes in. */
export const maxImports = 1_000;

export class Transfer {
  readonly #tenancy: Tenancy;

  constructor(tenancy: Tenancy) {
    this.#tenancy = tenancy;
  }

  // ── out ────────────────────────────────────────────────────────────────────────────────────────────────

  async *export(id: string, options: { readonly runId?: string } = {}): AsyncGenerator<string> {
    const engine = this.#tenancy.engine();
    const { store } = engine.options;
    const address = await this.#tenancy.row(engine, id, options.runId);
    // Read first: what is applied after that is in the history as well, and not lost in between.
    const messages = await this.#messages(engine, address);
    const row = await store.getInstance(address);
    if (row === undefined) throw new ApiError(`Instance "${id}" has no run "${address.run}".`, { code: "INSTANCE_NOT_FOUND" });
    yield JSON.stringify(headerOf(row));
    for (let next = 1; next <= row.tail; ) {
      const turns = await store.readHistory(row, next, turnsPerRead);
      for (const turn of turns) {
        if (turn.seq > row.tail) return;
        yield lineOf(turn);
        next = turn.seq + turn.count;
      }
      if (turns.length === 0) return;
    }
    if (row.closedAt === undefined) yield* messages;
  }

  async #messages(engine: Engine, key: RunAddress): Promise<string[]> {
    const lines: string[] = [];
    for (let after = 0; ; ) {
      const page = await engine.options.store.readInbox(key, { after, limit: messagesPerRead });
      for (const { message, fact } of page) lines.push(`{"message":${JSON.stringify(message)},"fact":${fact}}`);
      const last = page[page.length - 1];
      if (last === undefined || page.length < messagesPerRead) return lines;
      after = last.position;
    }
  }

  // ── in ─────────────────────────────────────────────────────────────────────────────────────────────────

  async import(lines: AsyncIterable<string>): Promise<readonly ImportedRun[]> {
    const engine = this.#tenancy.acting();
    const runs: RunImport[] = [];
    for await (const exported of exportedRuns(lines)) {
      if (runs.length === maxImports)
        throw new ApiError(`One import takes ${maxImports} runs at most; split the file.`, { code: "INVALID_EXPORT" });
      runs.push(await this.#importOf(engine, exported));
    }
    if (runs.length === 0) throw new ApiError("This is no export of runs: it is empty.", { code: "INVALID_EXPORT" });
    checkDistinct(runs);
    await this.#checkFree(engine, runs);
    for (const [done, run] of runs.entries()) await this.#write(engine, run, done);
    for (const { row } of runs) if (row.closedAt === undefined) engine.wakeUps.arrived(row);
    return runs.map(({ row }) => ({ id: row.id, runId: row.run, status: statusOf({ ...row, nonce: "", attributes: {} }) }));
  }

  async #importOf(engine: Engine, exported: ExportedRun): Promise<RunImport> {
    const { tenant } = this.#tenancy;
    const { header, inbox } = exported;
    if (!isRunId(header.run))
      throw new ApiError(`This is no export of runs: "${header.run}" is no name that Wovyr gives to a run.`, { code: "INVALID_EXPORT" });
    const turns: HistoryRow[] = exported.turns.map(({ seq, at, node, events }) => ({
      seq,
      count: events.length,
      at,
      node,
      events: JSON.stringify(events),
    }));
    const state = foldHistory(await this.#readable(engine, exported, turns));
    const status = storedStatus(state);
    if (status !== header.status)
      throw new ApiError(
        `This is no export of runs: run "${header.run}" says that it is ${header.status}, and its history that it is ${status}.`,
        {
          code: "INVALID_EXPORT",
        },
      );
    const open = header.closedAt === undefined;
    const imported: Incoming = { type: "Imported", at: header.tail };
    return {
      row: {
        tenant,
        run: header.run,
        id: header.id,
        shard: engine.shardOf(tenant, header.id),
        workflow: header.workflow,
        version: header.version,
        status,
        busy: false,
        tail: header.tail,
        createdAt: header.createdAt,
        ...(header.closedAt !== undefined && { closedAt: header.closedAt }),
        ...(header.parent !== undefined && { parent: { ...header.parent, tenant } }),
        ...(header.correlationId !== undefined && { correlationId: header.correlationId }),
        ...((open || header.origin !== undefined) && { origin: { ...header.origin, ...(open && { importedAt: header.tail }) } }),
      },
      attributes: searchable(state.attributes),
      turns,
      inbox: open
        ? [
            { message: mailIdentity(imported), fact: JSON.stringify(imported) },
            ...inbox.map(({ message, fact }) => ({ message, fact: JSON.stringify(fact) })),
          ]
        : [],
    };
  }

  /** The turns as the engine reads them. Throws when a payload cannot be read here. */
  async #readable(engine: Engine, { header, inbox }: ExportedRun, rows: readonly HistoryRow[]) {
    try {
      const turns = await engine.rows.decodeAll(rows);
      const facts = await Promise.all(inbox.map(({ fact }) => engine.rows.decodeFact(JSON.stringify(fact))));
      for (const turn of [...turns, { seq: 1, at: 0, events: facts }]) turnView(turn, 1);
      return turns;
    } catch (cause) {
      throw new ApiError(
        `A value of run "${header.run}" cannot be read: ${cause instanceof Error ? cause.message : String(cause)} An export holds values as they are stored: one that a payload codec wrote is read with that codec.`,
        { code: "INVALID_EXPORT", cause },
      );
    }
  }

  async #checkFree(engine: Engine, runs: readonly RunImport[]): Promise<void> {
    const { store } = engine.options;
    for (const { row } of runs) {
      if ((await store.getInstance(row)) !== undefined) throw runExists(row);
      const open = row.closedAt === undefined ? await store.findInstance(row.tenant, row.id, row.shard) : undefined;
      if (open !== undefined && open.closedAt === undefined) throw idTaken(row);
    }
  }

  /** `done` runs of the same call are in already: that is told when somebody took a name since it was looked for. */
  async #write(engine: Engine, run: RunImport, done: number): Promise<void> {
    const outcome = await engine.options.store.importRun(run);
    if (outcome === "done") return;
    const refusal = outcome === "id-taken" ? idTaken(run.row) : runExists(run.row);
    if (done === 0) throw refusal;
    throw new ApiError(`${refusal.message} The ${done} runs before it in the file are imported.`, { code: refusal.code, cause: refusal });
  }
}

function checkDistinct(runs: readonly RunImport[]): void {
  const seen = new Set<string>();
  for (const { row } of runs)
    for (const name of [`run ${row.run}`, ...(row.closedAt === undefined ? [`open instance ${row.id}`] : [])]) {
      if (seen.has(name)) throw new ApiError(`This is no export of runs: ${name} is in it twice.`, { code: "INVALID_EXPORT" });
      seen.add(name);
    }
}

const runExists = ({ run }: { readonly run: string }) =>
  new ApiError(`There is a run "${run}" already; nothing was changed.`, { code: "RUN_EXISTS" });

const idTaken = ({ id, run }: { readonly id: string; readonly run: string }) =>
  new ApiError(`An open instance has the id "${id}" of run "${run}". Wait until it ends, or leave that run out.`, {
    code: "INSTANCE_EXISTS",
  });

function headerOf(row: InstanceRow): ExportHeader {
  const { id, run, workflow, version, status, tail, createdAt, closedAt, parent, correlationId, attributes, origin } = row;
  return {
    format: exportFormat,
    id,
    run,
    workflow,
    version,
    status,
    tail,
    createdAt,
    ...(closedAt !== undefined && { closedAt }),
    ...(parent !== undefined && { parent }),
    ...(correlationId !== undefined && { correlationId }),
    attributes,
    ...(origin?.from !== undefined && { origin: { from: origin.from } }),
  };
}

const lineOf = ({ seq, at, node, events }: HistoryRow): string =>
  `{"seq":${seq},"at":${at},"node":${JSON.stringify(node)},"events":${events}}`;
