/**
 * The way of turns into the store: lanes of group commit (lane.ts).
 *
 * 1. A shard belongs to one lane, so that its turns are written in the order in which they were made; a lane belongs to one database, so that one that is away
 *    holds up no turns of others.
 * 2. While the database works on one lane's flush, this process makes the turns of the next.
 */
import type { WovyrError } from "@wovyr/sdk";
import { type FlushLimits, Lane, type LaneOptions, type TurnOutcome } from "./lane.ts";
import type { Databases } from "./ports/databases.ts";
import type { EngineLog } from "./ports/log.ts";
import type { StoreUnavailableError, TurnWrite } from "./ports/store.ts";

export type { TurnOutcome } from "./lane.ts";

export type JournalLimits = FlushLimits & { readonly lanes: number };

export const defaultJournalLimits: JournalLimits = {
  lanes: 2,
  flushTurns: 2_000,
  flushBytes: 8 * 1024 * 1024,
};

export type JournalOptions = Omit<LaneOptions, "limits" | "outage"> & { readonly limits?: JournalLimits };

export class Journal {
  readonly #lanes: readonly Lane[];
  readonly #lanesOfEach: number;
  readonly #databases: Databases | undefined;
  readonly #log: EngineLog;
  readonly #storeKind: string;
  readonly #onRecovered: () => void;
  /** Why the databases of these places do not take anything at the moment. */
  readonly #down = new Map<number, StoreUnavailableError>();

  constructor(options: JournalOptions) {
    const limits = options.limits ?? defaultJournalLimits;
    this.#log = options.log;
    this.#storeKind = options.store.kind;
    this.#onRecovered = options.recovered;
    this.#databases = options.store.databases;
    this.#lanesOfEach = limits.lanes;
    const lane = (place: number) =>
      new Lane({ ...options, limits, outage: (error) => this.#outage(place, error), recovered: () => this.#recovered(place) });
    this.#lanes = Array.from({ length: this.#count * limits.lanes }, (_, at) => lane(Math.floor(at / limits.lanes)));
  }

  /** Why nothing can be written at the moment. */
  get down(): WovyrError | undefined {
    return this.#down.size < this.#count ? undefined : this.#down.values().next().value;
  }

  /** Whether anything is queued or in flight. */
  get busy(): boolean {
    return this.#lanes.some((lane) => lane.busy);
  }

  /**
   * What waits to be taken by the store, and since when the oldest that is not durable yet has waited (milliseconds since the epoch), but for what waits for a
   * database that does not answer while others do.
   */
  get waiting(): { readonly turns: number; readonly bytes: number; readonly since: number | undefined } {
    let turns = 0;
    let bytes = 0;
    let since = Number.POSITIVE_INFINITY;
    for (const [at, lane] of this.#lanes.entries()) {
      if (this.#databases?.unavailable(Math.floor(at / this.#lanesOfEach)) !== undefined) continue;
      turns += lane.queuedTurns;
      bytes += lane.queuedBytes;
      since = Math.min(since, lane.waitingSince ?? since);
    }
    return { turns, bytes, since: since === Number.POSITIVE_INFINITY ? undefined : since };
  }

  /** How often the store has taken a flush. */
  get flushes(): number {
    return this.#lanes.reduce((sum, lane) => sum + lane.flushes, 0);
  }

  submit(write: TurnWrite, settle: (outcome: TurnOutcome) => void): void {
    this.#laneOf(write.shard).submit(write, settle);
  }

  /** Nothing is tried again: what could not be written counts as refused. */
  stop(): void {
    for (const lane of this.#lanes) lane.stop();
  }

  /** Resolves when nothing is queued or in flight, or when the store turns out to be away. */
  async idle(): Promise<void> {
    await Promise.all(this.#lanes.map((lane) => lane.idle()));
  }

  get #count(): number {
    return this.#databases?.count ?? 1;
  }

  #placeOf(shard: number): number {
    return this.#databases?.placeOf(shard) ?? 0;
  }

  #laneOf(shard: number): Lane {
    const within = Math.floor(shard / this.#count) % this.#lanesOfEach;
    return this.#lanes[this.#placeOf(shard) * this.#lanesOfEach + within] as Lane;
  }

  #outage(place: number, error: StoreUnavailableError): void {
    if (!this.#down.has(place))
      this.#log.error(`the store cannot be reached; writing is tried again until it can: ${error.message}`, { store: this.#storeKind });
    this.#down.set(place, error);
  }

  #recovered(place: number): void {
    if (!this.#down.delete(place)) return;
    this.#log.info("the store is back; everything goes on", { store: this.#storeKind });
    this.#onRecovered();
  }
}
