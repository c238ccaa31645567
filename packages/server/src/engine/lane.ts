/**
 * Group commit: everything of a lane's shards that is ready is written in one statement.
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
import { type FlushOutcome, nothingDone, type ShardEpoch, type Store, StoreUnavailableError, type TurnWrite } from "./ports/store.ts";

export type TurnOutcome =
  /** `found`: its waits found kept publications, which are in the inbox of its run. */
  | { readonly kind: "durable"; readonly rejectedChildren: ReadonlySet<string>; readonly found: boolean }
  /** Fenced, taken over, or a conflict of identity. */
  | { readonly kind: "refused" }
  /** The store can never take this turn. */
  | { readonly kind: "impossible"; readonly error: Error };

type Entry = {
  readonly write: TurnWrite;
  /** Under which it was made. */
  readonly epoch: number | undefined;
  /** Milliseconds since the epoch. */
  readonly since: number;
  readonly settle: (outcome: TurnOutcome) => void;
};

/** Turns and characters of one flush. */
export type FlushLimits = { readonly flushTurns: number; readonly flushBytes: number };

export type LaneOptions = {
  readonly store: Store;
  readonly clock: Clock;
  readonly loop: Loop;
  readonly log: EngineLog;
  readonly limits: FlushLimits;
  /** The epoch under which this node owns a shard; undefined when it does not. */
  readonly epochOf: (shard: number) => number | undefined;
  /** The store cannot be reached, or answers again. */
  readonly outage: (error: StoreUnavailableError) => void;
  readonly recovered: () => void;
};

const firstRetry = 50;
const longestRetry = 2_000;

/** Whether a turn may begin another run under the id of the one that it closes. */
const mayGoOn = ({ status, children }: TurnWrite): boolean =>
  status === "ContinuedAsNew" || (children.length > 0 && (status === "Failed" || status === "TimedOut"));

export class Lane {
  readonly #options: LaneOptions;
  readonly #store: Store;
  #queue: Entry[] = [];
  #queueBytes = 0;
  #flushing = false;
  /** Since when the oldest turn of the flush in flight has waited. */
  #flushSince: number | undefined;
  #down: StoreUnavailableError | undefined;
  #idleWaiters: (() => void)[] = [];
  #flushes = 0;
  #stopped = false;
  #endPause = () => {};

  constructor(options: LaneOptions) {
    this.#options = options;
    this.#store = options.store;
  }

  /** Why nothing can be written at the moment. */
  get down(): WovyrError | undefined {
    return this.#down;
  }

  /** Whether anything is queued or in flight. */
  get busy(): boolean {
    return this.#flushing;
  }

  get queuedTurns(): number {
    return this.#queue.length;
  }

  get queuedBytes(): number {
    return this.#queueBytes;
  }

  /** Since when the oldest turn that is not durable yet has waited. */
  get waitingSince(): number | undefined {
    return this.#flushSince ?? this.#queue[0]?.since;
  }

  submit(write: TurnWrite, settle: (outcome: TurnOutcome) => void): void {
    this.#queue.push({ write, epoch: this.#options.epochOf(write.shard), since: this.#options.clock.now(), settle });
    this.#queueBytes += write.events.length;
    if (this.#flushing) return;
    this.#flushing = true;
    this.#options.loop.immediate(() => void this.#run());
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
    while (this.#queue.length > 0) {
      const entries = this.#take();
      this.#flushSince = entries[0]?.since;
      await this.#flush(entries);
      this.#flushSince = undefined;
    }
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
    // A run that goes on as a new one, or is tried again, frees its id and takes it again: no other turn of the flush may come between.
    const goesOn = this.#queue[0] !== undefined && mayGoOn(this.#queue[0].write);
    for (const { write } of this.#queue) {
      if (mayGoOn(write) !== goesOn || (count > 0 && write.successor !== undefined)) break;
      if (count >= this.#options.limits.flushTurns || (count > 0 && bytes + write.events.length > this.#options.limits.flushBytes)) break;
      bytes += write.events.length;
      count += 1;
      if (write.successor !== undefined) break;
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
    for (let delay = firstRetry; ; delay = Math.min(delay * 2, longestRetry)) {
      const [entries, stale] = this.#partition(all);
      const committed = await this.#commit(entries);
      if (committed instanceof StoreUnavailableError) {
        retried = true;
        await this.#outage(committed, delay);
        if (!this.#stopped) continue;
        for (const entry of all) this.#tell(entry, { kind: "refused" });
        return;
      }
      const refused = committed instanceof Error ? stale : [...stale, ...this.#settleAccepted(entries, committed)];
      if (committed instanceof Error) {
        this.#options.log.error("a flush failed for a reason that is no outage; its turns are taken as impossible", { error: committed });
        for (const entry of entries) this.#tell(entry, { kind: "impossible", error: committed });
      }
      await this.#settleRefused(refused, retried);
      return;
    }
  }

  /** What may still be written, and what was made under an epoch that is over. */
  #partition(all: readonly Entry[]): [Entry[], Entry[]] {
    const current: Entry[] = [];
    const stale: Entry[] = [];
    for (const entry of all) (entry.epoch === this.#options.epochOf(entry.write.shard) ? current : stale).push(entry);
    return [current, stale];
  }

  async #commit(entries: readonly Entry[]): Promise<FlushOutcome | Error> {
    if (entries.length === 0) return nothingDone();
    try {
      const outcome = await this.#store.commit({ fence: this.#fence(entries), turns: entries.map((entry) => entry.write) });
      this.#flushes += 1;
      this.#recovered();
      return outcome;
    } catch (error) {
      return error instanceof Error ? error : new Error(String(error));
    }
  }

  /** Tells those whose fate is known; returns the others. */
  #settleAccepted(entries: readonly Entry[], { done, rejectedChildren, failed, found }: FlushOutcome): Entry[] {
    const refused: Entry[] = [];
    for (const entry of entries) {
      const error = failed.get(entry.write.run);
      if (done.has(entry.write.run)) this.#tell(entry, { kind: "durable", rejectedChildren, found: found.has(entry.write.run) });
      else if (error !== undefined) this.#tell(entry, { kind: "impossible", error });
      else refused.push(entry);
    }
    return refused;
  }

  /** What goes wrong with one turn's outcome must not touch the others'. */
  #tell(entry: Entry, outcome: TurnOutcome): void {
    try {
      entry.settle(outcome);
    } catch (error) {
      this.#options.log.error("the outcome of a turn could not be acted on", { run: entry.write.run, error });
    }
  }

  /** After an outage a refusal may mean that the first try went through: then the stored nonce is ours. */
  async #settleRefused(refused: readonly Entry[], retried: boolean): Promise<void> {
    for (const entry of refused) {
      const { write } = entry;
      const row = retried ? await this.#patiently(() => this.#store.getInstance(write)) : undefined;
      if (row?.nonce === write.nonce && row.tail === write.tail + write.count)
        this.#tell(entry, { kind: "durable", rejectedChildren: new Set(), found: write.waits.some(({ key }) => key !== undefined) });
      else this.#tell(entry, { kind: "refused" });
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
    this.#options.recovered();
  }

  async #outage(error: StoreUnavailableError, delay: number): Promise<void> {
    this.#down = error;
    this.#options.outage(error);
    this.#tellIdle();
    if (this.#stopped) return;
    await new Promise<void>((resolve) => {
      const cancel = this.#options.clock.wakeAt(this.#options.clock.now() + delay, resolve);
      this.#endPause = () => {
        cancel();
        resolve();
      };
    });
  }

  #fence(entries: readonly Entry[]): ShardEpoch[] {
    const fence = new Map<number, number>();
    for (const { write } of entries) {
      const epoch = this.#options.epochOf(write.shard);
      if (epoch !== undefined) fence.set(write.shard, epoch);
    }
    return [...fence].map(([shard, epoch]) => ({ shard, epoch }));
  }
}
