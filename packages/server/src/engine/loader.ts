/** Reads runs from the store, many in one round trip, and waits out an outage. */
import type { Turn } from "@wovyr/sdk/internal";
import type { HistoryRows } from "./history-row.ts";
import type { Clock } from "./ports/clock.ts";
import type { Loop } from "./ports/loop.ts";
import { type Heartbeat, type InstanceKey, type InstanceRow, type Store, StoreUnavailableError } from "./ports/store.ts";

export type LoadedRun = {
  readonly row: InstanceRow;
  readonly turns: readonly Turn[];
  readonly weight: number;
};

const batchRuns = 200;
const retryMilliseconds = 250;

type Request = {
  readonly key: InstanceKey;
  readonly resolve: (loaded: LoadedRun | undefined) => void;
  readonly reject: (error: unknown) => void;
};

export class Loader {
  readonly #store: Store;
  readonly #rows: HistoryRows;
  readonly #clock: Clock;
  readonly #loop: Loop;
  #queue: Request[] = [];
  #busy = false;
  #stopped = false;

  constructor(options: {
    store: Store;
    rows: HistoryRows;
    clock: Clock;
    loop: Loop;
  }) {
    this.#store = options.store;
    this.#rows = options.rows;
    this.#clock = options.clock;
    this.#loop = options.loop;
  }

  /** Undefined when there is no such run. */
  load(key: InstanceKey): Promise<LoadedRun | undefined> {
    return new Promise((resolve, reject) => {
      this.#queue.push({ key, resolve, reject });
      if (this.#busy) return;
      this.#busy = true;
      this.#loop.immediate(() => void this.#work());
    });
  }

  /** What attempts of a run told last. */
  async heartbeats(key: InstanceKey): Promise<readonly Heartbeat[]> {
    const sealed = await this.#patiently(() => this.#store.readHeartbeats(key));
    return Promise.all(sealed.map(async (heartbeat) => ({ ...heartbeat, details: await this.#rows.open(heartbeat.details) })));
  }

  stop(): void {
    this.#stopped = true;
  }

  async #work(): Promise<void> {
    while (this.#queue.length > 0) {
      const batch = this.#queue.splice(0, batchRuns);
      try {
        await this.#serve(batch);
      } catch (error) {
        for (const request of batch) request.reject(error);
      }
    }
    this.#busy = false;
  }

  async #serve(batch: readonly Request[]): Promise<void> {
    const loaded = new Map<string, LoadedRun>();
    const keys = batch.map((request) => request.key);
    for (const { row, turns } of await this.#patiently(() => this.#store.loadInstances(keys))) {
      const weight = turns.reduce((sum, turn) => sum + turn.events.length, 0);
      loaded.set(row.run, {
        row,
        turns: await this.#rows.decodeAll(turns),
        weight,
      });
    }
    for (const request of batch) request.resolve(loaded.get(request.key.run));
  }

  async #patiently<T>(read: () => Promise<T>): Promise<T> {
    for (;;) {
      try {
        return await read();
      } catch (error) {
        if (!(error instanceof StoreUnavailableError) || this.#stopped) throw error;
        await new Promise<void>((resolve) => {
          this.#clock.wakeAt(this.#clock.now() + retryMilliseconds, resolve);
        });
      }
    }
  }
}
