import assert from "node:assert/strict";
import { test } from "node:test";
import { is } from "drizzle-orm";
import { getTableConfig, PgTable } from "drizzle-orm/pg-core";
import { postgresStore } from "../../src/store/postgres.ts";
import * as schema from "../../src/store/sql/schema.ts";
import { contractStoreOptions } from "../../src/store-contract.ts";
import { createDatabase } from "./postgres-database.ts";

test("the migrations make the tables that the schema describes", async () => {
  const database = await createDatabase();
  const store = await postgresStore(database.url).open(contractStoreOptions);
  await store.close();
  const rows = await database.admin<{ table: string; column: string; type: string; required: boolean; collation: string }[]>`
    select c.relname as table, a.attname as column, format_type(a.atttypid, a.atttypmod) as type, a.attnotnull as required,
      coalesce((select collname from pg_collation where oid = a.attcollation), '') as collation
    from pg_attribute a join pg_class c on c.oid = a.attrelid
    where c.relnamespace = 'wovyr'::regnamespace and c.relkind = 'r' and a.attnum > 0 and not a.attisdropped and c.relname <> 'migrations'`;
  const made = rows.map(({ table, column, type, required, collation }) => `${table}.${column} ${type} ${required} ${collation}`);
  const described = Object.values(schema).flatMap((table) => {
    if (!is(table, PgTable)) return [];
    const { name, columns, primaryKeys } = getTableConfig(table);
    const keys = new Set(primaryKeys.flatMap((key) => key.columns.map((column) => column.name)));
    return columns.map((column) => {
      const [type, , collation] = column
        .getSQLType()
        .replace("bigserial", "bigint")
        .split(/ (collate) /);
      return `${name}.${column.name} ${type} ${column.notNull || keys.has(column.name)} ${collation === undefined ? "" : "C"}`;
    });
  });
  assert.deepEqual(made.sort(), described.sort());
  await database.drop();
});
