/**
 * Brings what turns say to runs of one database there, from the outboxes of all others.
 *
 * 1. A row leaves its outbox after it was brought, so that it is brought at least once; there it counts once.
 * 2. What a commit has put into an outbox is brought right after it, without being read. All else (more than fits into memory, what was there before a shard
 *    was gained, what was written by a commit that did not answer) is found by looking; from the moment on from which anything may have to be found, nothing is
 *    brought that was not found, so that no row comes before an older one of its sender.
 * 3. While the database is away nothing is tried but at beats, and nothing is kept in memory.
 */
import type { Arrival, OutboxRow, Parcel } from "../../engine/ports/databases.ts";
import { type StoreLog, StoreUnavailableError } from "../../engine/ports/store.ts";
import type { Database } from "./database.ts";

export type RelayOptions = {
  readonly target: Database;
  readonly databases: readonly Database[];
  /** Shards of a database whose outbox this process looks after. */
  readonly owned: (place: number) => readonly number[];
  readonly arrived: (arrivals: readonly Arrival[]) => void;
  readonly log: StoreLog;
};

type Row = Omit<OutboxRow, "position">;
type Sent = { readonly source: Database; readonly row: Row };
type Message = Exclude<Parcel, { kind: "publication" }>;

/** What is brought at once, and what waits in memory: rows, and characters of their facts. */
const batchRows = 500;
const batchBytes = 4 * 1024 * 1024;
const queueRows = 20_000;
const queueBytes = 32 * 1024 * 1024;
/** Rows that are read at once. */
const pageRows = 100;

export class Relay {
  readonly #options: RelayOptions;
  #queue: Sent[] = [];
  #queueBytes = 0;
  /** Whether there may be rows that are not in the queue; then it is empty. */
  #behind = false;
  /** Whether anything was written since the last look began. */
  #missed = false;
  #working = false;
  #closed = false;

  constructor(options: RelayOptions) {
    this.#options = options;
  }

  /** Rows that a commit has just written, in their order. */
  offer(source: Database, rows: readonly Row[]): void {
    if (rows.length === 0 || this.#closed) return;
    this.#missed = true;
    for (const row of rows) this.#queueBytes += sizeOf(row);
    if (this.#queue.length + rows.length > queueRows || this.#queueBytes > queueBytes) this.#behind = true;
    if (this.#behind) this.#forget();
    else for (const row of rows) this.#queue.push({ source, row });
    void this.#work();
  }

  /** There may be rows in the outboxes that this process has not written, or has not kept. */
  look(): void {
    this.#behind = true;
    this.#missed = true;
    this.#forget();
    void this.#work();
  }

  /** Whether nothing is being brought or looked for; what waits for a database that is away waits for a beat. */
  get idle(): boolean {
    return !this.#working;
  }

  /** The database may be back. */
  retry(): void {
    if (this.#behind || this.#queue.length > 0) void this.#work();
  }

  close(): void {
    this.#closed = true;
    this.#forget();
  }

  async #work(): Promise<void> {
    if (this.#working || this.#closed) return;
    this.#working = true;
    try {
      while (!this.#closed && (this.#behind || this.#queue.length > 0)) {
        if (this.#behind) await this.#findAll();
        else await this.#bring(this.#take());
      }
    } catch (error) {
      this.#behind = true;
      this.#forget();
      if (!(error instanceof StoreUnavailableError))
        this.#options.log.warn(`messages for the database ${this.#options.target.label} could not be brought; it is tried again`, {
          error,
        });
    } finally {
      this.#working = false;
    }
  }

  /** What is in the queue is in the outboxes as well. */
  #forget(): void {
    this.#queue = [];
    this.#queueBytes = 0;
  }

  #take(): readonly Sent[] {
    const taken = this.#queue.splice(0, batchSize(this.#queue));
    for (const { row } of taken) this.#queueBytes -= sizeOf(row);
    return taken;
  }

  /** Until a whole look has found everything that was there when it ended. */
  async #findAll(): Promise<void> {
    this.#missed = false;
    let away: unknown;
    for (const source of this.#options.databases) {
      if (source === this.#options.target) continue;
      try {
        await this.#findIn(source);
      } catch (error) {
        // What cannot be read keeps nothing else from being brought.
        if (!(error instanceof StoreUnavailableError) || source.answers) throw error;
        away = error;
      }
    }
    if (away !== undefined) throw away;
    if (!this.#missed) this.#behind = false;
  }

  async #findIn(source: Database): Promise<void> {
    const { target, owned } = this.#options;
    const shards = owned(source.place);
    if (shards.length === 0) return;
    for (let after = 0; !this.#closed; ) {
      const page = await source.ask((store) => store.part.listOutbox(target.place, shards, { after, limit: pageRows }));
      for (let left = page.map((row) => ({ source, row })); left.length > 0; ) await this.#bring(left.splice(0, batchSize(left)));
      const last = page.at(-1);
      if (last === undefined || page.length < pageRows) return;
      after = last.position;
    }
  }

  async #bring(sent: readonly Sent[]): Promise<void> {
    if (sent.length === 0) return;
    const { target, arrived } = this.#options;
    const parcels = sent.map(({ row }) => row.parcel as Message);
    const answers = await target.ask((store) => store.part.receive(parcels));
    const arrivals: Arrival[] = [];
    const bySource = new Map<Database, Row[]>();
    for (const [at, { source, row }] of sent.entries()) {
      const parcel = parcels[at] as Message;
      if (answers[at] === "taken" && parcel.kind === "child") {
        // The parent lives where the parcel comes from.
        await source.ask((store) => store.post([parcel.child.rejection]));
        arrivals.push(parcel.child.rejection);
      } else arrivals.push(parcel.kind === "send" ? parcel.message : parcel.child.start);
      const rows = bySource.get(source) ?? [];
      rows.push(row);
      bySource.set(source, rows);
    }
    arrived(arrivals);
    for (const [source, rows] of bySource) await source.ask((store) => store.part.dropOutbox(rows));
  }
}

function sizeOf({ parcel }: Row): number {
  return parcel.kind === "publication" ? 0 : parcel.kind === "send" ? parcel.message.fact.length : parcel.child.start.fact.length;
}

/** How many of the first rows are brought at once: one at least. */
function batchSize(rows: readonly Sent[]): number {
  let bytes = 0;
  for (const [at, { row }] of rows.entries()) {
    bytes += sizeOf(row);
    if (at > 0 && (at === batchRows || bytes > batchBytes)) return at;
  }
  return rows.length;
}
