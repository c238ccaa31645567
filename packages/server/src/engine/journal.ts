/**
 * Group commit: everything that is ready is written in one statement.
 *
 * 1. At most one flush is in flight; what is submitted meanwhile makes the next.
 * 2. A turn's outcome is told once: durable, refused, or impossible.
 * 3. When the store cannot say what became of a flush, the very same turns are written again until it can: their tails and nonces make that safe. A turn
 *    that is refused then and whose nonce is the stored one was durable already.
 * 4. A turn is written only under the epoch under which it was made: what was made before its shard was lost is void, even if the shard came back.
 */
import type { WovyrError } from "@wovyr/sdk";
import type { Clock } from "./ports/clock.ts";
import type { EngineLog } from "./ports/log.ts";
import type { Loop } from "./ports/loop.ts";
import { type ShardEpoch, type Store, StoreUnavailableError, type TurnWrite } from "./ports/store.ts";

export type TurnOutcome =
  | { readonly kind: "durable"; readonly rejectedChildren: ReadonlySet<string> }
  /** Fenced, taken over, or a conflict of identity. */
  | { readonly kind: "refused" }
  /** The store can never take this turn. */
  | { readonly kind: "impossible"; readonly error: Error };

type Entry = {
  readonly write: TurnWrite;
  /** Under which it was made. */
  readonly epoch: number | undefined;
  readonly settle: (outcome: TurnOutcome) => void;
};

export type JournalLimits = {
  /** Turns of one flush. */
  readonly flushTurns: number;
  /** Characters of one flush. */
  readonly flushBytes: number;
  /** Turns that wait: above it, new starts are refused. */
  readonly queueTurns: number;
  readonly queueBytes: number;
};

export const defaultJournalLimits: JournalLimits = {
  flushTurns: 2_000,
  flushBytes: 8 * 1024 * 1024,
  queueTurns: 100_000,
  queueBytes: 256 * 1024 * 1024,
};

const firstRetry = 50;
const longestRetry = 2_000;

export class Journal {
  readonly #store: Store;
  readonly #clock: Clock;
  readonly #loop: Loop;
  readonly #log: EngineLog;
  readonly #limits: JournalLimits;
  readonly #epochOf: (shard: number) => number | undefined;
  readonly #onRecovered: () => void;
  #queue: Entry[] = [];
  #queueBytes = 0;
  #flushing = false;
  #down: StoreUnavailableError | undefined;
  #idleWaiters: (() => void)[] = [];
  #flushes = 0;
  #stopped = false;
  #endPause = () => {};

  constructor(options: {
    store: Store;
    clock: Clock;
    loop: Loop;
    log: EngineLog;
    limits?: JournalLimits;
    /** The epoch under which this node owns a shard; undefined when it does not. */
    epochOf: (shard: number) => number | undefined;
    /** The store answers again after an outage. */
    recovered: () => void;
  }) {
    this.#store = options.store;
    this.#clock = options.clock;
    this.#loop = options.loop;
    this.#log = options.log;
    this.#limits = options.limits ?? defaultJournalLimits;
    this.#epochOf = options.epochOf;
    this.#onRecovered = options.recovered;
  }

  /** Why nothing can be written at the moment. */
  get down(): WovyrError | undefined {
    return this.#down;
  }

  /** Whether anything is queued or in flight. */
  get busy(): boolean {
    return this.#flushing;
  }

  /** Whether so much waits that new work should be refused. */
  get overloaded(): boolean {
    return this.#queue.length > this.#limits.queueTurns || this.#queueBytes > this.#limits.queueBytes;
  }

  submit(write: TurnWrite, settle: (outcome: TurnOutcome) => void): void {
    this.#queue.push({ write, epoch: this.#epochOf(write.shard), settle });
    this.#queueBytes += write.events.length;
    if (this.#flushing) return;
    this.#flushing = true;
    this.#loop.immediate(() => void this.#run());
  }

  /** How often the store has taken a flush. */
  get flushes(): number {
    return this.#flushes;
  }

  /** Nothing is tried again: what could not be written counts as refused. */
  stop(): void {
    this.#stopped = true;
    this.#endPause();
  }

  /** Resolves when nothing is queued or in flight, or when the store turns out to be away. */
  idle(): Promise<void> {
    if (!this.#flushing) return Promise.resolve();
    return new Promise((resolve) => this.#idleWaiters.push(resolve));
  }

  async #run(): Promise<void> {
    while (this.#queue.length > 0) await this.#flush(this.#take());
    this.#flushing = false;
    this.#tellIdle();
  }

  #tellIdle(): void {
    const waiters = this.#idleWaiters;
    this.#idleWaiters = [];
    for (const tell of waiters) tell();
  }

  #take(): Entry[] {
    let bytes = 0;
    let count = 0;
    for (const { write } of this.#queue) {
      if (count >= this.#limits.flushTurns || (count > 0 && bytes + write.events.length > this.#limits.flushBytes)) break;
      bytes += write.events.length;
      count += 1;
    }
    this.#queueBytes -= bytes;
    if (count === this.#queue.length) {
      const all = this.#queue;
      this.#queue = [];
      return all;
    }
    return this.#queue.splice(0, count);
  }

  async #flush(all: readonly Entry[]): Promise<void> {
    let retried = false;
    let entries = all;
    for (let delay = firstRetry; ; delay = Math.min(delay * 2, longestRetry)) {
      try {
        const stale = entries.filter(({ epoch, write }) => epoch !== this.#epochOf(write.shard));
        if (stale.length > 0) {
          await this.#settleRefused(stale, retried);
          entries = entries.filter((entry) => !stale.includes(entry));
          if (entries.length === 0) return;
        }
        const { done, rejectedChildren, failed } = await this.#store.commit({
          fence: this.#fence(entries),
          turns: entries.map((entry) => entry.write),
        });
        this.#flushes += 1;
        this.#recovered();
        const refused: Entry[] = [];
        for (const entry of entries) {
          const error = failed.get(entry.write.run);
          if (done.has(entry.write.run)) entry.settle({ kind: "durable", rejectedChildren });
          else if (error !== undefined) entry.settle({ kind: "impossible", error });
          else refused.push(entry);
        }
        if (refused.length > 0) await this.#settleRefused(refused, retried);
        return;
      } catch (error) {
        if (!(error instanceof StoreUnavailableError)) {
          this.#log.error("a flush failed for a reason that is no outage; its turns are taken as impossible", { error });
          for (const entry of entries) entry.settle({ kind: "impossible", error: error as Error });
          return;
        }
        retried = true;
        await this.#outage(error, delay);
        if (!this.#stopped) continue;
        for (const entry of entries) entry.settle({ kind: "refused" });
        return;
      }
    }
  }

  /** After an outage a refusal may mean that the first try went through: then the stored nonce is ours. */
  async #settleRefused(refused: readonly Entry[], retried: boolean): Promise<void> {
    for (const { write, settle } of refused) {
      const row = retried ? await this.#patiently(() => this.#store.getInstance(write)) : undefined;
      if (row?.nonce === write.nonce && row.tail === write.tail + write.count) settle({ kind: "durable", rejectedChildren: new Set() });
      else settle({ kind: "refused" });
    }
  }

  /** Repeats a read until the store answers; undefined when the journal is stopped. */
  async #patiently<T>(read: () => Promise<T>): Promise<T | undefined> {
    for (let delay = firstRetry; ; delay = Math.min(delay * 2, longestRetry)) {
      try {
        const value = await read();
        this.#recovered();
        return value;
      } catch (error) {
        if (!(error instanceof StoreUnavailableError)) throw error;
        await this.#outage(error, delay);
        if (this.#stopped) return undefined;
      }
    }
  }

  #recovered(): void {
    if (this.#down === undefined) return;
    this.#down = undefined;
    this.#log.info("the store is back; everything goes on", {
      store: this.#store.kind,
    });
    this.#onRecovered();
  }

  async #outage(error: StoreUnavailableError, delay: number): Promise<void> {
    if (this.#down === undefined)
      this.#log.error(`the store cannot be reached; writing is tried again until it can: ${error.message}`, { store: this.#store.kind });
    this.#down = error;
    this.#tellIdle();
    if (this.#stopped) return;
    await new Promise<void>((resolve) => {
      const cancel = this.#clock.wakeAt(this.#clock.now() + delay, resolve);
      this.#endPause = () => {
        cancel();
        resolve();
      };
    });
  }

  #fence(entries: readonly Entry[]): ShardEpoch[] {
    const fence = new Map<number, number>();
    for (const { write } of entries) {
      const epoch = this.#epochOf(write.shard);
      if (epoch !== undefined) fence.set(write.shard, epoch);
    }
    return [...fence].map(([shard, epoch]) => ({ shard, epoch }));
  }
}
