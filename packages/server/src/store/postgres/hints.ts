/**
 * Hints by LISTEN and NOTIFY, on one connection of their own.
 *
 * 1. The connection is made again for ever, after failures with a growing pause. When it is there again, listeners hear that anything may have happened:
 *    what was told in the gap is gone.
 * 2. A connection that only looks alive is found out: it regularly tells itself something on a channel of its own, and is given up when it does not hear it
 *    in time. So is one behind a pooler that passes no notifications on.
 * 3. A payload stays far below what Postgres takes (8,000 bytes): where the shards do not fit it says that anything may have happened.
 * 4. Nothing is told within a transaction of the store, and at most one statement is under way: what comes meanwhile, or while there is no connection, goes
 *    with the next.
 */
import type { Hints } from "../../engine/ports/store.ts";
import type { DriverError } from "../sql/driver.ts";
import { Connection, type ConnectionOptions } from "./connection.ts";

export type PostgresHintsOptions = Pick<ConnectionOptions, "url" | "connectTimeout"> & {
  /** Tells connections of different stores apart: letters, digits and `_`. */
  readonly name: string;
  /** Told when hints are heard no more, and when they are again. */
  heard?(failure: Error | undefined): void;
  /** Milliseconds between two signs of life; default 10,000. */
  readonly beat?: number;
  /** Milliseconds until a sign of life must have been heard; default 5,000. */
  readonly patience?: number;
};

const channel = "wovyr_hints";
const anything = "*";
const longestPayload = 4_000;
/** Milliseconds. */
const firstPause = 50;
const longestPause = 5_000;

type Listener = (shards: readonly number[] | undefined) => void;

export class PostgresHints implements Hints {
  readonly #options: PostgresHintsOptions;
  readonly #listeners = new Set<Listener>();
  readonly #closing = new AbortController();
  readonly #own: string;
  #connection: Connection | undefined;
  #opening = false;
  #failures = 0;
  #timer: NodeJS.Timeout | undefined;
  #beatHeard: (() => void) | undefined;
  #healthy = false;
  #untold = new Set<number>();
  #untoldAny = false;
  #telling = false;
  #statement: Promise<void> = Promise.resolve();

  constructor(options: PostgresHintsOptions) {
    this.#options = options;
    this.#own = `wovyr_beat_${options.name}`;
  }

  get healthy(): boolean {
    return this.#healthy;
  }

  listen(heard: Listener): () => void {
    this.#listeners.add(heard);
    if (this.#connection === undefined) void this.#connect();
    return () => void this.#listeners.delete(heard);
  }

  tell(shards: readonly number[] | undefined): void {
    if (shards === undefined) this.#untoldAny = true;
    for (const shard of shards ?? []) this.#untold.add(shard);
    if (!this.#telling) void this.#tell();
  }

  async close(): Promise<void> {
    this.#closing.abort();
    clearTimeout(this.#timer);
    this.#healthy = false;
    const connection = this.#connection;
    this.#connection = undefined;
    await connection?.close();
  }

  async #tell(): Promise<void> {
    this.#telling = true;
    try {
      while ((this.#untoldAny || this.#untold.size > 0) && this.#connection !== undefined) {
        const payload = this.#untoldAny ? anything : payloadOf(this.#untold);
        this.#untold = new Set();
        this.#untoldAny = false;
        await this.#run(this.#connection, "select pg_notify($1, $2)::text", [channel, payload]);
      }
    } catch {
      // Whoever looks finds it.
    } finally {
      this.#telling = false;
    }
  }

  async #connect(): Promise<void> {
    if (this.#opening || this.#closing.signal.aborted) return;
    this.#opening = true;
    try {
      const { url, connectTimeout } = this.#options;
      let opened: Connection | undefined;
      const ended = () => {
        if (opened !== undefined) this.#lost(opened, new Error("the connection was closed"));
      };
      const notified = (from: string, payload: string) => this.#notified(from, payload);
      const connection = await Connection.open({ url, connectTimeout, prepare: false, notified, ended }, this.#closing.signal);
      opened = connection;
      if (this.#closing.signal.aborted) {
        connection.discard();
        return;
      }
      await this.#begin(connection);
    } catch (error) {
      this.#failed(error as DriverError);
    } finally {
      this.#opening = false;
    }
  }

  async #begin(connection: Connection): Promise<void> {
    try {
      await connection.script(`listen ${channel}; listen ${this.#own}`);
      await this.#beat(connection);
    } catch (error) {
      connection.discard();
      throw error;
    }
    this.#connection = connection;
    this.#failures = 0;
    this.#healthy = true;
    this.#options.heard?.(undefined);
    this.#say(undefined);
    if (!this.#telling) void this.#tell();
    this.#beatLater(connection);
  }

  #beatLater(connection: Connection): void {
    const { beat = 10_000 } = this.#options;
    this.#timer = setTimeout(() => {
      this.#beat(connection).then(
        () => {
          if (this.#connection === connection) this.#beatLater(connection);
        },
        (error) => this.#lost(connection, error),
      );
    }, beat);
    this.#timer.unref();
  }

  /** Rejects unless the connection hears what it tells itself. */
  async #beat(connection: Connection): Promise<void> {
    const { patience = 5_000 } = this.#options;
    let late: NodeJS.Timeout | undefined;
    const heard = new Promise<void>((resolve, reject) => {
      this.#beatHeard = resolve;
      late = setTimeout(() => reject(new Error(`notifications do not arrive within ${patience} ms`)), patience);
    });
    heard.catch(() => {});
    try {
      await Promise.race([heard, this.#run(connection, "select pg_notify($1, '')::text", [this.#own])]);
      await heard;
    } finally {
      clearTimeout(late);
      this.#beatHeard = undefined;
    }
  }

  /** One statement after another. */
  #run(connection: Connection, text: string, params: readonly string[]): Promise<void> {
    const ran = this.#statement.then(async () => void (await connection.run(text, params)));
    this.#statement = ran.catch(() => {});
    return ran;
  }

  #notified(from: string, payload: string): void {
    if (from === this.#own) this.#beatHeard?.();
    else if (from === channel) this.#say(shardsOf(payload));
  }

  #say(shards: readonly number[] | undefined): void {
    for (const listener of [...this.#listeners]) listener(shards);
  }

  #lost(connection: Connection, error: Error): void {
    if (this.#connection !== connection) return;
    this.#connection = undefined;
    clearTimeout(this.#timer);
    connection.discard();
    this.#failed(error);
  }

  #failed(error: Error): void {
    if (this.#closing.signal.aborted) return;
    if (this.#healthy || this.#failures === 0) this.#options.heard?.(error);
    this.#healthy = false;
    const pause = Math.min(longestPause, firstPause * 2 ** Math.min(this.#failures, 10)) * (0.5 + Math.random() / 2);
    this.#failures += 1;
    clearTimeout(this.#timer);
    this.#timer = setTimeout(() => void this.#connect(), pause);
    this.#timer.unref();
  }
}

function payloadOf(shards: ReadonlySet<number>): string {
  const text = [...shards].join(",");
  return text.length > longestPayload ? anything : text;
}

/** What is no list of shards means that anything may have happened. */
function shardsOf(payload: string): readonly number[] | undefined {
  return /^\d+(,\d+)*$/.test(payload) ? payload.split(",").map(Number) : undefined;
}
