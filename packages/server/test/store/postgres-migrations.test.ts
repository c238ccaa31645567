import assert from "node:assert/strict";
import { test } from "node:test";
import { PostgresDriver } from "../../src/store/postgres/driver.ts";
import { postgresStore } from "../../src/store/postgres.ts";
import { migrate, readMigrations } from "../../src/store/sql/migrate.ts";
import { contractStoreOptions } from "../../src/store-contract.ts";
import { createDatabase, type TestDatabase } from "./postgres-database.ts";

function driver({ url }: TestDatabase): PostgresDriver {
  return new PostgresDriver({ url, prepare: true, connections: { write: 1, read: 1 }, statementDeadline: 30_000, connectTimeout: 4_000 });
}

async function tables(database: TestDatabase): Promise<number> {
  const [row] = await database.admin<{ count: string }[]>`select count(*) from information_schema.tables where table_schema = 'wovyr'`;
  return Number(row?.count);
}

test("H093 eight processes that start at once on an empty database all come up", async () => {
  for (let round = 0; round < 5; round += 1) {
    const database = await createDatabase();
    const opened = await Promise.all(Array.from({ length: 8 }, () => postgresStore(database.url).open(contractStoreOptions)));
    const rows = await database.admin<{ tag: string }[]>`select tag from wovyr.migrations order by applied`;
    assert.deepEqual(
      rows.map(({ tag }) => tag),
      (await readMigrations()).map(({ tag }) => tag),
    );
    await Promise.all(opened.map((store) => store.ping()));
    await Promise.all(opened.map((store) => store.close()));
    await database.drop();
  }
});

test("H093 a migration that fails half way leaves nothing behind, and the next start carries on", async () => {
  const database = await createDatabase();
  const migrations = await readMigrations();
  const broken = driver(database);
  await assert.rejects(
    migrate(broken, [...migrations, { tag: "9999_broken", statements: ["create table wovyr.extra ()", "select 1/0"] }]),
    /zero/,
  );
  await broken.close();
  assert.equal(await tables(database), 0);
  const store = await postgresStore(database.url).open(contractStoreOptions);
  await store.close();
  const made = await tables(database);
  const later = driver(database);
  await migrate(later, [...migrations, { tag: "9999_next", statements: ["create table wovyr.extra ()"] }]);
  await migrate(later, [...migrations, { tag: "9999_next", statements: ["create table wovyr.extra ()"] }]);
  assert.equal(await tables(database), made + 1);
  await later.close();
  await database.drop();
});

test("H093 a process that is killed in the middle of a migration leaves nothing behind", async () => {
  const database = await createDatabase();
  const migrations = await readMigrations();
  const doomed = driver(database);
  await database.admin.begin(async (sql) => {
    await sql`select pg_advisory_xact_lock(42)`;
    const waits = { tag: "9999_waits", statements: ["select pg_advisory_xact_lock(42)"] };
    const migration = migrate(doomed, [...migrations, waits]);
    for (let found = false; !found; ) {
      const rows = await database.admin<{ pid: number }[]>`
        select pg_terminate_backend(pid) from pg_stat_activity
        where datname = current_database() and wait_event_type = 'Lock' and pid <> pg_backend_pid()`;
      found = rows.length === 1;
    }
    await assert.rejects(migration);
  });
  await doomed.close();
  assert.equal(await tables(database), 0);
  await database.drop();
});

test("H093 a release that meets a newer schema refuses to start and says what to do", async () => {
  const database = await createDatabase();
  const store = await postgresStore(database.url).open(contractStoreOptions);
  await store.close();
  await database.admin`insert into wovyr.migrations (tag) values ('0042_future')`;
  await assert.rejects(postgresStore(database.url).open(contractStoreOptions), (error: Error & { code?: string }) => {
    assert.equal(error.code, "STORE_INCOMPATIBLE");
    assert.match(error.message, /newer release.*0042_future/);
    return true;
  });
  await database.drop();
});

test("a database that holds other schemas keeps them, and a role named like the schema does no harm", async () => {
  const database = await createDatabase();
  await database.admin.unsafe("create table public.orders (id int); insert into public.orders values (1)");
  const store = await postgresStore(database.url).open(contractStoreOptions);
  await store.close();
  assert.equal((await database.admin`select * from public.orders`).length, 1);
  const [row] = await database.admin<{ count: string }[]>`
    select count(*) from pg_class c join pg_namespace n on n.oid = c.relnamespace where n.nspname = 'public' and c.relname <> 'orders'`;
  assert.equal(row?.count, "0");
  await database.drop();
});
