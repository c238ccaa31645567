/**
 * Reads runs from the store, many in one round trip, and waits out an outage.
 *
 * 1. A run that takes steps again, and one that goes on from a history that was copied, is read with its inbox: what is in it comes before all else.
 */

import type { Incoming, Turn } from "@wovyr/sdk/internal";
import { awaitsCopy } from "./copied-run.ts";
import type { HistoryRows } from "./history-row.ts";
import type { Mail } from "./mail.ts";
import { pause } from "./pause.ts";
import type { Clock } from "./ports/clock.ts";
import type { Loop } from "./ports/loop.ts";
import {
  type Heartbeat,
  type HistoryRow,
  type InstanceRow,
  type LoadedInstance,
  type RunAddress,
  type Store,
  StoreUnavailableError,
} from "./ports/store.ts";

export type LoadedRun = {
  readonly row: InstanceRow;
  readonly turns: readonly Turn[];
  /** The turns as they are stored. */
  readonly rows: readonly HistoryRow[];
  readonly weight: number;
  /** What is kept for it, in order, where that was asked for or must come first. */
  readonly inbox: readonly Mail[];
};

const batchRuns = 200;
const pageMessages = 1_000;
const retryMilliseconds = 250;

type Request = {
  readonly key: RunAddress;
  readonly inbox: boolean;
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
  load(key: RunAddress, { inbox = false }: { readonly inbox?: boolean } = {}): Promise<LoadedRun | undefined> {
    return new Promise((resolve, reject) => {
      this.#queue.push({ key, inbox, resolve, reject });
      if (this.#busy) return;
      this.#busy = true;
      this.#loop.immediate(() => void this.#work());
    });
  }

  /** What attempts of a run told last. */
  async heartbeats(key: RunAddress): Promise<readonly Heartbeat[]> {
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
    const found = new Map<string, LoadedInstance>();
    const keys = batch.map((request) => request.key);
    for (const loaded of await this.#patiently(() => this.#store.loadInstances(keys))) found.set(loaded.row.run, loaded);
    for (const { key, inbox, resolve } of batch) {
      const loaded = found.get(key.run);
      resolve(loaded === undefined ? undefined : await this.#loaded(loaded, inbox));
    }
  }

  async #loaded({ row, turns: rows }: LoadedInstance, withInbox: boolean): Promise<LoadedRun> {
    const turns = await this.#rows.decodeAll(rows);
    return {
      row,
      turns,
      rows,
      weight: rows.reduce((sum, turn) => sum + turn.events.length, 0),
      inbox: withInbox || awaitsCopy(row, turns) ? await this.#inbox(row) : [],
    };
  }

  async #inbox(key: RunAddress): Promise<Mail[]> {
    const mail: Mail[] = [];
    for (let after = 0; ; ) {
      const page = await this.#patiently(() => this.#store.readInbox(key, { after, limit: pageMessages }));
      for (const { message, fact } of page) mail.push({ fact: (await this.#rows.decodeFact(fact)) as Incoming, inbox: message });
      const last = page[page.length - 1];
      if (last === undefined || page.length < pageMessages) return mail;
      after = last.position;
    }
  }

  async #patiently<T>(read: () => Promise<T>): Promise<T> {
    for (;;) {
      try {
        return await read();
      } catch (error) {
        if (!(error instanceof StoreUnavailableError) || this.#stopped) throw error;
        await pause(this.#clock, retryMilliseconds);
      }
    }
  }
}
