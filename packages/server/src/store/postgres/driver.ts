/** postgres.js as a driver: a pool for each lane, so that what writes never queues behind what reads. */
import type { DriverError, SqlDriver, SqlLane, SqlValue } from "../sql/driver.ts";
import { Connection, type ConnectionOptions, type SqlRows } from "./connection.ts";
import { Pool } from "./pool.ts";

export type PostgresDriverOptions = ConnectionOptions & {
  readonly connections: Readonly<Record<SqlLane, number>>;
  /** Milliseconds. */
  readonly statementDeadline: number;
  /** Told when the database cannot be reached any more, and when it can again. */
  reachable?(failure: DriverError | undefined): void;
};

export class PostgresDriver implements SqlDriver {
  readonly #pools: Readonly<Record<SqlLane, Pool>>;

  constructor(options: PostgresDriverOptions) {
    const pool = (lane: SqlLane) =>
      new Pool({
        size: options.connections[lane],
        deadline: options.statementDeadline,
        open: (signal) => Connection.open(options, signal),
        // One pool speaks for both.
        ...(lane === "write" && { reachable: (failure) => options.reachable?.(failure) }),
      });
    this.#pools = { write: pool("write"), read: pool("read") };
  }

  query(lane: SqlLane, text: string, params: readonly SqlValue[], deadline?: number): Promise<SqlRows> {
    return this.#pools[lane].run((connection) => connection.run(text, params), deadline);
  }

  script(text: string): Promise<void> {
    return this.#pools.write.run((connection) => connection.script(text));
  }

  async close(): Promise<void> {
    await Promise.all([this.#pools.write.close(), this.#pools.read.close()]);
  }
}
