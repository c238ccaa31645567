/**
 * The embedded store: one process, nothing to install. PGlite runs without fsync, so records survive a killed process but not a power failure; use
 * `postgresStore` where that matters.
 *
 * 1. A directory is open in one process at a time (STORE_LOCKED); whoever had it before is gone, so every shard is given up on opening.
 * 2. A database whose making was interrupted holds nothing yet: it is put aside and made again.
 */

import { existsSync, mkdirSync, renameSync, writeFileSync } from "node:fs";
import { join, resolve } from "node:path";
import { WovyrError } from "@wovyr/sdk";
import { type InstanceKey, type Store, type StoreOptions, type StoreProvider, StoreUnavailableError } from "../engine/ports/store.ts";
import { DirectoryLock } from "./pglite/directory-lock.ts";
import { PgliteDriver } from "./pglite/driver.ts";
import { clearStrikes, countStrikes } from "./pglite/strike-file.ts";
import { DriverError, type SqlDriver } from "./sql/driver.ts";
import { migrate, readMigrations } from "./sql/migrate.ts";
import { SqlStore } from "./sql/sql-store.ts";

const inMemory = "memory://";

/** A store in a directory of its own, made when it is missing; `memory://` keeps nothing beyond `close`. */
export function pgliteStore(directory = ".wovyr"): StoreProvider {
  if (typeof directory !== "string" || directory === "")
    throw new WovyrError("pgliteStore takes the directory to keep its records in", { code: "INVALID_OPTION" });
  return {
    kind: "pglite",
    shared: false,
    async open(options: StoreOptions): Promise<Store> {
      if (directory === inMemory) return new SqlStore("pglite", await openDatabase(inMemory), { kind: "none" });
      const path = resolve(directory);
      mkdirSync(path, { recursive: true });
      const lock = DirectoryLock.acquire(path);
      try {
        const data = join(path, "data");
        const complete = join(path, "complete");
        if (existsSync(data) && !existsSync(complete)) {
          const aside = `${data}.interrupted-${options.now()}`;
          renameSync(data, aside);
          options.log.warn(
            `the database in ${path} was not completed when it was made; it is made anew, and what there was is in ${aside}`,
          );
        }
        const driver = await openDatabase(data);
        writeFileSync(complete, "");
        options.log.info(`records are kept in ${path}: safe against a killed process, not against a power failure (PGlite does not fsync)`);
        return new EmbeddedStore(driver, lock, join(path, "strikes.jsonl"));
      } catch (error) {
        lock.release();
        throw error;
      }
    },
  };
}

class EmbeddedStore extends SqlStore {
  readonly #lock: DirectoryLock;
  readonly #strikePath: string;
  #released: Promise<void> | undefined;

  constructor(driver: SqlDriver, lock: DirectoryLock, strikePath: string) {
    super("pglite", driver, { kind: "file", path: strikePath });
    this.#lock = lock;
    this.#strikePath = strikePath;
  }

  override async listStrikes() {
    return countStrikes(this.#strikePath);
  }

  override async clearStrikes(key: InstanceKey) {
    clearStrikes(this.#strikePath, key);
  }

  override async deleteRuns(keys: readonly InstanceKey[]) {
    const count = await super.deleteRuns(keys);
    const struck = new Set((await this.listStrikes()).map(({ run }) => run));
    for (const key of keys) if (struck.has(key.run) && (await this.getInstance(key)) === undefined) clearStrikes(this.#strikePath, key);
    return count;
  }

  override close(): Promise<void> {
    this.#released ??= super.close().finally(() => this.#lock.release());
    return this.#released;
  }
}

async function openDatabase(dataDirectory: string): Promise<SqlDriver> {
  const driver = new PgliteDriver(dataDirectory);
  try {
    await migrate(driver, await readMigrations());
    await driver.query("write", "with gone as (delete from wovyr.nodes) update wovyr.shards set owner = null where owner is not null", []);
    return driver;
  } catch (error) {
    await driver.close().catch(() => {});
    if (!(error instanceof DriverError)) throw error;
    throw new StoreUnavailableError(`cannot open the embedded database ${dataDirectory}: ${error.message}`, { cause: error });
  }
}
