/**
 * Durable timers: rows in the store, of which only those due soon are in memory.
 *
 * 1. A timer fires at or after its due time, never before by the engine's clock.
 * 2. What is due was recorded; what has fired stays a row until the turn that applies it removes it. So a timer is never lost, and fires again after a crash.
 * 3. The memory it takes is bounded: one window of rows at a time, earliest first.
 * 4. When the shards change, the window is read again: what was read before was of other shards.
 */
import type { Clock } from "./ports/clock.ts";
import type { EngineLog } from "./ports/log.ts";
import { type Store, StoreUnavailableError, type TimerRow } from "./ports/store.ts";

const windowMilliseconds = 60_000;
const reloadMilliseconds = 30_000;
const windowRows = 10_000;
const retryMilliseconds = 1_000;
/** Host timers overflow beyond 2^31 - 1 ms; a window never comes near it. */
const longestSleep = 60_000;

export class Timers {
  readonly #store: Store;
  readonly #clock: Clock;
  readonly #log: EngineLog;
  readonly #shards: () => readonly number[];
  readonly #fire: (timer: TimerRow) => void;
  readonly #heap: KnownTimer[] = [];
  /** Timers in memory, by run and effect; a fired one stays until it is resolved, so that a reload does not fire it twice. */
  readonly #known = new Map<string, KnownTimer>();
  /** Everything due before this is in memory. */
  #horizon = Number.NEGATIVE_INFINITY;
  #sleeping: (() => void) | undefined;
  #reloading: (() => void) | undefined;
  #running = false;
  #fired = 0;
  /** Rises when the shards change. */
  #term = 0;

  constructor(options: {
    store: Store;
    clock: Clock;
    log: EngineLog;
    shards: () => readonly number[];
    fire: (timer: TimerRow) => void;
  }) {
    this.#store = options.store;
    this.#clock = options.clock;
    this.#log = options.log;
    this.#shards = options.shards;
    this.#fire = options.fire;
  }

  /** Loads the first window; resolves when it is loaded. */
  async start(): Promise<void> {
    this.#running = true;
    await this.#reload();
  }

  /** Nothing of these shards fires any more. */
  forget(shards: ReadonlySet<number>): void {
    this.#term += 1;
    for (const [key, { shard, fired }] of this.#known) {
      if (!shards.has(shard)) continue;
      this.#known.delete(key);
      if (fired) this.#fired -= 1;
    }
  }

  /** There are more shards: resolves when what is due of them soon is in memory. */
  async gained(): Promise<void> {
    this.#term += 1;
    if (this.#running) await this.#reload();
    else await this.start();
  }

  stop(): void {
    this.#running = false;
    this.#term += 1;
    this.#sleeping?.();
    this.#reloading?.();
    this.#heap.length = 0;
    this.#known.clear();
    this.#horizon = Number.NEGATIVE_INFINITY;
    this.#fired = 0;
  }

  /** A timer row that is durable now. */
  add(timer: TimerRow): void {
    if (!this.#running || timer.due > this.#horizon) return;
    this.#insert(timer);
    this.#sleep();
  }

  /** Whether a timer has fired into a run that has not taken it yet. */
  hasFired(run: string, effect: string): boolean {
    return this.#known.get(timerKey(run, effect))?.fired === true;
  }

  /** A timer row is gone, or what it fired came to nothing. */
  resolve(run: string, effect: string): void {
    const key = timerKey(run, effect);
    const known = this.#known.get(key);
    if (known === undefined) return;
    this.#known.delete(key);
    if (known.fired) this.#fired -= 1;
    // Room again: rows that did not fit are waiting in the store.
    if (this.#running && this.#known.size === 0 && this.#horizon < this.#clock.now()) void this.#reload();
  }

  #insert(timer: TimerRow): void {
    const key = timerKey(timer.run, timer.effect);
    if (this.#known.has(key)) return;
    const known: KnownTimer = { ...timer, fired: false };
    this.#known.set(key, known);
    push(this.#heap, known);
  }

  async #reload(): Promise<void> {
    this.#reloading?.();
    this.#reloading = undefined;
    if (!this.#running) return;
    const until = this.#clock.now() + windowMilliseconds;
    try {
      const term = this.#term;
      const rows = await this.#store.listTimers(this.#shards(), until, windowRows + this.#fired);
      if (!this.#running) return;
      if (term !== this.#term) return await this.#reload();
      const last = rows[rows.length - 1];
      this.#horizon = rows.length < windowRows + this.#fired || last === undefined ? until : last.due;
      for (const row of rows) this.#insert(row);
      this.#sleep();
    } catch (error) {
      if (!(error instanceof StoreUnavailableError))
        this.#log.error("timers could not be read; they are read again", {
          error,
        });
      this.#reloadAt(this.#clock.now() + retryMilliseconds);
      return;
    }
    this.#reloadAt(Math.min(this.#clock.now() + reloadMilliseconds, Math.max(this.#horizon, this.#clock.now() + retryMilliseconds)));
  }

  #reloadAt(at: number): void {
    this.#reloading?.();
    this.#reloading = this.#clock.wakeAt(at, () => void this.#reload());
  }

  #sleep(): void {
    this.#sleeping?.();
    this.#sleeping = undefined;
    const next = this.#heap[0];
    if (next === undefined) return;
    this.#sleeping = this.#clock.wakeAt(Math.min(next.due, this.#clock.now() + longestSleep), () => this.#wake());
  }

  #wake(): void {
    const now = this.#clock.now();
    for (let next = this.#heap[0]; next !== undefined && next.due <= now; next = this.#heap[0]) {
      pop(this.#heap);
      if (this.#known.get(timerKey(next.run, next.effect)) !== next) continue;
      next.fired = true;
      this.#fired += 1;
      this.#fire(next);
    }
    this.#sleep();
  }
}

type KnownTimer = TimerRow & { fired: boolean };

const timerKey = (run: string, effect: string) => `${run} ${effect}`;

/** Earliest first; ties by run, then effect. */
function before(a: TimerRow, b: TimerRow): boolean {
  if (a.due !== b.due) return a.due < b.due;
  if (a.run !== b.run) return a.run < b.run;
  return a.effect < b.effect;
}

function push(heap: KnownTimer[], timer: KnownTimer): void {
  let index = heap.push(timer) - 1;
  while (index > 0) {
    const parent = (index - 1) >> 1;
    if (!before(timer, heap[parent] as KnownTimer)) break;
    heap[index] = heap[parent] as KnownTimer;
    index = parent;
  }
  heap[index] = timer;
}

function pop(heap: KnownTimer[]): void {
  const last = heap.pop();
  if (last === undefined || heap.length === 0) return;
  let index = 0;
  for (;;) {
    const left = index * 2 + 1;
    if (left >= heap.length) break;
    const right = left + 1;
    const child = right < heap.length && before(heap[right] as KnownTimer, heap[left] as KnownTimer) ? right : left;
    if (!before(heap[child] as KnownTimer, last)) break;
    heap[index] = heap[child] as KnownTimer;
    index = child;
  }
  heap[index] = last;
}
