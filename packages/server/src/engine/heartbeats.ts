/**
 * What attempts that run have told last, kept in the store for the case that their process dies.
 *
 * 1. Of one attempt, only the latest word is saved, at most once within an interval: a third of its heartbeat timeout, and a second at least.
 * 2. After its end nothing of an attempt is saved any more. What was saved is removed when its outcome is durable, which holds its last word.
 * 3. Saving happens beside everything else: what cannot be saved is tried again with the next word, and holds nothing up.
 */
import type { EffectId, Payload } from "@wovyr/sdk/internal";
import type { Attempt } from "./attempt.ts";
import type { HistoryRows } from "./history-row.ts";
import type { Clock } from "./ports/clock.ts";
import type { EngineLog } from "./ports/log.ts";
import type { Loop } from "./ports/loop.ts";
import type { EffectAddress, Heartbeat, RunAddress, Store } from "./ports/store.ts";

const shortestInterval = 1_000;
/** Words that one call of the store saves. */
const batch = 500;

type Told = {
  readonly heartbeat: Omit<Heartbeat & RunAddress, "at" | "details">;
  readonly interval: number;
  at: number;
  details: Payload;
  savedAt: number;
  unsaved: boolean;
};

const keyOf = (run: string, effect: EffectId) => `${run}/${effect}`;

export class Heartbeats {
  readonly #store: Store;
  readonly #rows: HistoryRows;
  readonly #clock: Clock;
  readonly #loop: Loop;
  readonly #log: EngineLog;
  /** Of attempts that run. */
  readonly #told = new Map<string, Told>();
  /** Effects of which the store holds a word. */
  readonly #saved = new Set<string>();
  #gone: EffectAddress[] = [];
  #working = false;
  #cancelTimer: (() => void) | undefined;

  constructor(options: { store: Store; rows: HistoryRows; clock: Clock; loop: Loop; log: EngineLog }) {
    this.#store = options.store;
    this.#rows = options.rows;
    this.#clock = options.clock;
    this.#loop = options.loop;
    this.#log = options.log;
  }

  /** `timeout`: the heartbeat timeout of the attempt, in milliseconds. */
  beat({ tenant, run, shard, effect, activity: { attempt } }: Attempt, details: Payload, timeout: number): void {
    const key = keyOf(run, effect);
    const known = this.#told.get(key);
    const at = this.#clock.now();
    if (known === undefined || known.heartbeat.attempt !== attempt)
      this.#told.set(key, {
        heartbeat: { tenant, run, shard, effect, attempt },
        interval: Math.max(shortestInterval, Math.floor(timeout / 3)),
        at,
        details,
        savedAt: Number.NEGATIVE_INFINITY,
        unsaved: true,
      });
    else Object.assign(known, { at, details, unsaved: true });
    this.#schedule();
  }

  /** The store holds a word of an attempt that another process ran. */
  found(run: string, effect: EffectId): void {
    this.#saved.add(keyOf(run, effect));
  }

  /** An attempt has ended. */
  ended(run: string, effect: EffectId): void {
    this.#told.delete(keyOf(run, effect));
  }

  /** Whether the store may hold a word of anything: where not, outcomes need no look. */
  get any(): boolean {
    return this.#saved.size > 0;
  }

  /** The outcome of an effect's attempt is durable. */
  settled({ tenant, run, shard }: RunAddress, effect: EffectId): void {
    if (!this.#saved.delete(keyOf(run, effect))) return;
    this.#gone.push({ tenant, run, shard, effect });
    this.#schedule();
  }

  /** Nothing is saved any more; what the store holds stays for whoever comes next. */
  stop(): void {
    this.#cancelTimer?.();
    this.#cancelTimer = undefined;
    this.#told.clear();
    this.#saved.clear();
    this.#gone = [];
  }

  #schedule(): void {
    if (this.#working) return;
    const due = this.#gone.length > 0 ? Number.NEGATIVE_INFINITY : this.#nextDue();
    if (due === undefined) return;
    this.#cancelTimer?.();
    this.#cancelTimer = undefined;
    if (due > this.#clock.now()) {
      this.#cancelTimer = this.#clock.wakeAt(due, () => this.#schedule());
      return;
    }
    this.#working = true;
    this.#loop.immediate(() => void this.#work());
  }

  #nextDue(): number | undefined {
    let next: number | undefined;
    for (const { unsaved, savedAt, interval } of this.#told.values())
      if (unsaved && (next === undefined || savedAt + interval < next)) next = savedAt + interval;
    return next;
  }

  async #work(): Promise<void> {
    try {
      await this.#drop();
      await this.#save();
    } catch (error) {
      this.#log.debug("what attempts told last could not be saved", { error });
    }
    this.#working = false;
    this.#schedule();
  }

  async #drop(): Promise<void> {
    const gone = this.#gone;
    this.#gone = [];
    if (gone.length > 0) await this.#store.dropHeartbeats(gone);
  }

  async #save(): Promise<void> {
    const now = this.#clock.now();
    const due: Told[] = [];
    for (const told of this.#told.values()) {
      if (!told.unsaved || told.savedAt + told.interval > now) continue;
      due.push(told);
      if (due.length === batch) break;
    }
    if (due.length === 0) return;
    for (const told of due) {
      told.savedAt = now;
      told.unsaved = false;
      this.#saved.add(keyOf(told.heartbeat.run, told.heartbeat.effect));
    }
    const words = due.map(async ({ heartbeat, at, details }) => ({ ...heartbeat, at, details: await this.#rows.seal(details) }));
    await this.#store.saveHeartbeats(await Promise.all(words));
  }
}
