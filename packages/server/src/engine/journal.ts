/**
 * The way of turns into the store: lanes of group commit (lane.ts).
 *
 * 1. A shard belongs to one lane, so that its turns are written in the order in which they were made.
 * 2. While the database works on one lane's flush, this process makes the turns of the next.
 */
import type { WovyrError } from "@wovyr/sdk";
import { type FlushLimits, Lane, type LaneOptions, type TurnOutcome } from "./lane.ts";
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
  readonly #log: EngineLog;
  readonly #storeKind: string;
  readonly #onRecovered: () => void;
  #down: StoreUnavailableError | undefined;

  constructor(options: JournalOptions) {
    const limits = options.limits ?? defaultJournalLimits;
    this.#log = options.log;
    this.#storeKind = options.store.kind;
    this.#onRecovered = options.recovered;
    const lane = () => new Lane({ ...options, limits, outage: (error) => this.#outage(error), recovered: () => this.#recovered() });
    this.#lanes = Array.from({ length: limits.lanes }, lane);
  }

  /** Why nothing can be written at the moment. */
  get down(): WovyrError | undefined {
    return this.#down;
  }

  /** Whether anything is queued or in flight. */
  get busy(): boolean {
    return this.#lanes.some((lane) => lane.busy);
  }

  /** What waits to be taken by the store, and since when the oldest that is not durable yet has waited (milliseconds since the epoch). */
  get waiting(): { readonly turns: number; readonly bytes: number; readonly since: number | undefined } {
    let turns = 0;
    let bytes = 0;
    let since = Number.POSITIVE_INFINITY;
    for (const lane of this.#lanes) {
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
    (this.#lanes[write.shard % this.#lanes.length] as Lane).submit(write, settle);
  }

  /** Nothing is tried again: what could not be written counts as refused. */
  stop(): void {
    for (const lane of this.#lanes) lane.stop();
  }

  /** Resolves when nothing is queued or in flight, or when the store turns out to be away. */
  async idle(): Promise<void> {
    await Promise.all(this.#lanes.map((lane) => lane.idle()));
  }

  #outage(error: StoreUnavailableError): void {
    if (this.#down === undefined)
      this.#log.error(`the store cannot be reached; writing is tried again until it can: ${error.message}`, { store: this.#storeKind });
    this.#down = error;
  }

  #recovered(): void {
    if (this.#down === undefined) return;
    this.#down = undefined;
    this.#log.info("the store is back; everything goes on", { store: this.#storeKind });
    this.#onRecovered();
  }
}
