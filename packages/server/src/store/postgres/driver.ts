/**
 * postgres.js as a driver.
 *
 * 1. Two pools: what writes never queues behind what reads.
 * 2. Connections come back by themselves, for ever, with a pause of at most `longestPause`; a statement that meets no server rejects.
 * 3. A statement that outlives its deadline rejects, and its pool is replaced: a connection that hangs would hold up every later statement on it.
 */
import postgres from "postgres";
import { DriverError, type SqlDriver, type SqlLane, type SqlValue } from "../sql/driver.ts";

export type PostgresDriverOptions = {
  readonly url: string;
  /** False behind a pooler that shares sessions between clients. */
  readonly prepare: boolean;
  readonly connections: Readonly<Record<SqlLane, number>>;
  /** Milliseconds. */
  readonly statementDeadline: number;
  /** Seconds. */
  readonly connectTimeout: number;
};

const longestPause = 1;
/** Seconds that statements under way get when the store is closed; then their connections are cut. */
const closeTimeout = 2;

export class PostgresDriver implements SqlDriver {
  readonly #options: PostgresDriverOptions;
  readonly #pools = new Map<SqlLane, postgres.Sql>();
  #closed = false;

  constructor(options: PostgresDriverOptions) {
    this.#options = options;
  }

  query(lane: SqlLane, text: string, params: readonly SqlValue[]): Promise<readonly (readonly SqlValue[])[]> {
    return this.#run(lane, async (sql) => {
      const rows = await sql.unsafe(text, [...params], { prepare: this.#options.prepare }).values();
      return rows as unknown as readonly (readonly SqlValue[])[];
    });
  }

  async script(text: string): Promise<void> {
    await this.#run("write", (sql) => sql.unsafe(text).simple());
  }

  async close(): Promise<void> {
    this.#closed = true;
    const pools = [...this.#pools.values()];
    await Promise.all(pools.map((sql) => sql.end({ timeout: closeTimeout })));
  }

  async #run<T>(lane: SqlLane, work: (sql: postgres.Sql) => Promise<T>): Promise<T> {
    if (this.#closed) throw new DriverError("the connections are closed", { code: "CONNECTION_ENDED", answered: false });
    const pool = this.#pool(lane);
    const { statementDeadline } = this.#options;
    let deadline: NodeJS.Timeout | undefined;
    const late = new Promise<never>((_, reject) => {
      deadline = setTimeout(() => {
        this.#replace(lane, pool);
        reject(new DriverError(`no answer in ${statementDeadline} ms`, { code: "DEADLINE", answered: false }));
      }, statementDeadline);
    });
    try {
      return await Promise.race([work(pool), late]);
    } catch (error) {
      throw driverError(error);
    } finally {
      clearTimeout(deadline);
    }
  }

  #pool(lane: SqlLane): postgres.Sql {
    let pool = this.#pools.get(lane);
    if (pool === undefined) {
      pool = connect(this.#options, this.#options.connections[lane]);
      this.#pools.set(lane, pool);
    }
    return pool;
  }

  #replace(lane: SqlLane, pool: postgres.Sql): void {
    if (this.#pools.get(lane) === pool) this.#pools.delete(lane);
    pool.end({ timeout: 0 }).catch(() => {});
  }
}

function connect(options: PostgresDriverOptions, max: number): postgres.Sql {
  return postgres(options.url, {
    max,
    prepare: options.prepare,
    fetch_types: false,
    connect_timeout: options.connectTimeout,
    idle_timeout: 0,
    max_lifetime: null,
    backoff: (retries) => Math.min(longestPause, 0.05 * 2 ** Math.min(retries, 10)) * (0.5 + Math.random() / 2),
    onnotice: () => {},
    connection: { application_name: "wovyr" },
  });
}

function driverError(error: unknown): DriverError {
  if (error instanceof DriverError) return error;
  if (error instanceof postgres.PostgresError) return new DriverError(error.message, { code: error.code, answered: true, cause: error });
  const { code, message } = error as { code?: unknown; message?: unknown };
  return new DriverError(String(message ?? error), { code: typeof code === "string" ? code : "CONNECTION", answered: false, cause: error });
}
