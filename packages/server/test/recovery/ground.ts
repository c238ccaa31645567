/** What a test stands on: a directory for records and gates, a database, and the processes that it starts there. */
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { TestContext } from "node:test";
import type { StoreProvider } from "../../src/engine/ports/store.ts";
import { PgliteDriver } from "../../src/store/pglite/driver.ts";
import { pgliteStore } from "../../src/store/pglite.ts";
import { PostgresDriver } from "../../src/store/postgres/driver.ts";
import { postgresStore } from "../../src/store/postgres.ts";
import type { SqlDriver } from "../../src/store/sql/driver.ts";
import { createDatabase } from "../store/postgres-database.ts";
import { type Host, type HostedStore, type HostOptions, startHost } from "./host.ts";

export type Ground = {
  readonly directory: string;
  readonly store: HostedStore;
  readonly provider: StoreProvider;
  /** Starts an orchestrator here; it ends with the test at the latest. */
  host(options?: Partial<HostOptions>): Host;
  /** A connection of the test's own. The embedded database has only one at a time: no orchestrator may run then. */
  sql<T>(work: (driver: SqlDriver) => Promise<T>): Promise<T>;
  /** One for each of several databases. */
  each<T>(work: (driver: SqlDriver) => Promise<T>): Promise<readonly T[]>;
};

export type StoreKind = HostedStore["kind"];

export async function ground(context: Pick<TestContext, "after">, kind: StoreKind, databases = 1): Promise<Ground> {
  const directory = mkdtempSync(join(tmpdir(), "wovyr-recovery-"));
  const made = kind === "postgres" ? await Promise.all(Array.from({ length: databases }, createDatabase)) : [];
  const [url = "", ...others] = made.map((database) => database.url);
  const store: HostedStore = kind === "pglite" ? { kind, directory: join(directory, "store") } : { kind, url, others };
  const hosts: Host[] = [];
  context.after(async () => {
    await Promise.all(hosts.map((host) => host.destroy()));
    await Promise.all(made.map((database) => database.drop()));
    rmSync(directory, { recursive: true, force: true, maxRetries: 5 });
  });
  return {
    directory,
    store,
    provider: store.kind === "pglite" ? pgliteStore(store.directory) : postgresStore([store.url, ...others]),
    host(options = {}) {
      const host = startHost({ store, record: directory, ...options });
      hosts.push(host);
      return host;
    },
    sql: (work) => connected(store, url, work),
    each: (work) => Promise.all([url, ...others].map((each) => connected(store, each, work))),
  };
}

async function connected<T>(store: HostedStore, url: string, work: (driver: SqlDriver) => Promise<T>): Promise<T> {
  const driver = connect(store, url);
  try {
    return await work(driver);
  } finally {
    await driver.close();
  }
}

function connect(store: HostedStore, url: string): SqlDriver {
  if (store.kind === "pglite") return new PgliteDriver(join(store.directory, "data"));
  return new PostgresDriver({
    url,
    prepare: false,
    connections: { write: 1, read: 1 },
    statementDeadline: 30_000,
    connectTimeout: 5_000,
  });
}
