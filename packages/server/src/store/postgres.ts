/**
 * The store for production: any number of orchestrators over one database.
 *
 * 1. Opening fails within seconds when the database cannot be reached, with a message that names host, port and database but never a password.
 * 2. Once open, a lost connection is only ever a `StoreUnavailableError` of the statements it met; the next ones connect again.
 */
import { randomBytes } from "node:crypto";
import { WovyrError } from "@wovyr/sdk";
import { checkFlag, checkOptions, wholeNumber } from "@wovyr/sdk/internal";
import { type StoreOptions, type StoreProvider, StoreUnavailableError } from "../engine/ports/store.ts";
import { severalDatabases } from "./databases/databases.ts";
import { PostgresDriver } from "./postgres/driver.ts";
import { PostgresHints } from "./postgres/hints.ts";
import { PostgresStepTransactions } from "./postgres/step-transactions.ts";
import { DriverError } from "./sql/driver.ts";
import { migrate, readMigrations } from "./sql/migrate.ts";
import { SqlStore } from "./sql/sql-store.ts";

export type PostgresStoreOptions = {
  /** False behind a pooler in transaction mode: no statement is prepared and no session state kept. Default true. */
  readonly prepare?: boolean;
  /** Connections for statements that write. Default 3. */
  readonly writeConnections?: number;
  /** Connections for statements that only read. Default 3. */
  readonly readConnections?: number;
  /** How long a statement may take before its outcome counts as unknown, in milliseconds. Default 60000. */
  readonly statementDeadline?: number;
  /**
   * Whether nodes wake each other by LISTEN and NOTIFY, on a connection of their own; without, they find what is for them by looking more often. A URL
   * leads that connection past a pooler in transaction mode, which passes no notifications on. Default: true where statements are prepared.
   */
  readonly listen?: boolean | string;
  /** Of transactional activities. */
  readonly transactions?: {
    /** Connections of their own, and so how many of them run at once; the others wait. Default 5. */
    readonly max?: number;
    /** How long one may go without a statement before the database ends it, in milliseconds. Default 60000. */
    readonly idleTimeout?: number;
  };
};

/** Milliseconds. */
const connectTimeout = 4_000;
/** What timers of the host, and settings of Postgres, can hold, in milliseconds. */
const longestTimer = 2_147_483_647;
/** Of one kind, and of one node: more than any Postgres takes. */
const mostConnections = 10_000;

/**
 * A store in a Postgres database (15 or newer), in its schema `wovyr`; the first process that opens it creates the tables. With several URLs the shards are
 * spread over these databases, whose number and order stay as they are then.
 */
export function postgresStore(url: string | readonly string[], options: PostgresStoreOptions = {}): StoreProvider {
  checkStoreOptions(options);
  if (typeof url !== "string" && (!Array.isArray(url) || url.length === 0))
    throw new WovyrError("postgresStore takes a URL, or a list of the URLs of several databases", { code: "INVALID_OPTION" });
  if (typeof url === "string") return byItself(oneDatabase(url, options));
  const [first, ...others] = url;
  if (others.length === 0) return postgresStore(first as string, options);
  if (new Set(url.map((each) => describe(each))).size < url.length)
    throw new WovyrError("postgresStore was given the same database twice: each of several holds other shards", { code: "INVALID_OPTION" });
  // Nodes wake each other by the first.
  return severalDatabases([
    oneDatabase(first as string, options),
    ...others.map((other) => oneDatabase(other, { ...options, listen: false })),
  ]);
}

/** Throws INVALID_OPTION. */
function checkStoreOptions(options: PostgresStoreOptions): void {
  const numbers = ["writeConnections", "readConnections", "statementDeadline"] as const;
  checkOptions(options, ["prepare", ...numbers, "listen", "transactions"], "postgresStore");
  checkFlag(options.prepare, "prepare of postgresStore");
  for (const name of numbers)
    if (options[name] !== undefined)
      wholeNumber(options[name], 1, `${name} of postgresStore`, name === "statementDeadline" ? longestTimer : mostConnections);
  if (options.listen !== undefined && typeof options.listen !== "string")
    checkFlag(options.listen, "listen of postgresStore, unless it is a URL,");
  checkOptions(options.transactions, ["max", "idleTimeout"], "postgresStore's transactions");
}

/** Refuses a database that is one of several. */
function byItself(provider: StoreProvider): StoreProvider {
  return {
    ...provider,
    async open(options) {
      const store = await provider.open(options);
      const known = await store.part?.inspect();
      if (known?.member === undefined) return store;
      await store.close();
      const { place, size } = known.member;
      throw new WovyrError(
        `the database ${provider.label} is number ${place + 1} of ${size} that are used as one store: give postgresStore the URLs of all of them, in their order`,
        { code: "STORE_INCOMPATIBLE" },
      );
    },
  };
}

function oneDatabase(url: string, options: PostgresStoreOptions): StoreProvider {
  const place = describe(url);
  const { transactions = {}, prepare = true, listen = prepare } = options;
  const listenUrl = listen === true ? url : listen;
  if (listenUrl !== false) describe(listenUrl, "listen of postgresStore");
  const max = wholeNumber(transactions.max ?? 5, 1, "transactions.max", mostConnections);
  const idleTimeout = wholeNumber(transactions.idleTimeout ?? 60_000, 1, "transactions.idleTimeout", longestTimer);
  return {
    kind: "postgres",
    label: place,
    shared: true,
    async open({ log }: StoreOptions) {
      let opened = false;
      const connection = { url, prepare, connectTimeout };
      const statementDeadline = options.statementDeadline ?? 60_000;
      const driver = new PostgresDriver({
        ...connection,
        connections: { write: options.writeConnections ?? 3, read: options.readConnections ?? 3 },
        statementDeadline,
        reachable(failure) {
          if (!opened) return;
          if (failure === undefined) log.info(`Postgres at ${place} is reachable again`);
          else log.warn(`Postgres at ${place} cannot be reached, connecting is tried again for ever: ${failure.message}`);
        },
      });
      // So that the first read finds a connection; why there is none is told by what needs one.
      driver.query("read", "select 1", []).catch(() => {});
      try {
        await migrate(driver, await readMigrations());
      } catch (error) {
        await driver.close();
        if (!(error instanceof DriverError)) throw error;
        throw new StoreUnavailableError(`cannot use Postgres at ${place}: ${error.message || error.code}`, { cause: error });
      }
      opened = true;
      log.info(`records are kept in Postgres at ${place}`);
      const steps = new PostgresStepTransactions({
        ...connection,
        max,
        idleTimeout,
        statementDeadline,
        query: (lane, text, params) => driver.query(lane, text, params),
      });
      const hints =
        listenUrl === false
          ? undefined
          : new PostgresHints({
              url: listenUrl,
              connectTimeout,
              name: randomBytes(8).toString("hex"),
              heard(failure) {
                if (failure === undefined) log.info("nodes wake each other by NOTIFY");
                else log.warn(`notifications of Postgres are not heard; nodes look more often until they are: ${failure.message}`);
              },
            });
      return new SqlStore("postgres", driver, { kind: "postgres", url }, { transactions: steps, hints, label: place });
    },
  };
}

/** `host:port/database` of a URL, which may name several hosts: everything up to the last `@` may be secret. */
function describe(url: string, what = "the URL of a Postgres store"): string {
  const [, hosts, database] = (typeof url === "string" && /^postgres(?:ql)?:\/\/(?:.*@)?([^/?@]+)(\/[^?]*)?/.exec(url)) || [];
  if (hosts === undefined)
    throw new WovyrError(`${what} looks like postgres://user:password@host:5432/database`, { code: "INVALID_OPTION" });
  const places = hosts.split(",").map((host) => (/:\d+$/.test(host) ? host : `${host}:5432`));
  return `${places.join(",")}${database ?? ""}`;
}
