/** What a closed run leaves in the database, and what it writes to the log on the way: rows, bytes with their indexes, bytes of WAL. */
import type { Client } from "@wovyr/sdk/client";
import postgres from "postgres";
import type { Family } from "../family.ts";
import { withPostgres } from "../host.ts";
import type { Row } from "../row.ts";
import { fanOut, oneStep, sequential } from "../workloads.ts";

type Sql = postgres.Sql;
type Size = { readonly rows: number; readonly bytes: number; readonly wal: number };

/** After VACUUM FULL, so that bytes are those of what is there. */
async function sizeOf(sql: Sql): Promise<Size> {
  const [log] = await sql<{ wal: number }[]>`select (pg_current_wal_lsn() - '0/0')::float8 as wal`;
  await sql.unsafe("vacuum full");
  const tables = await sql<{ name: string; bytes: number }[]>`
    select relname as name, pg_total_relation_size(c.oid)::float8 as bytes
    from pg_class c join pg_namespace n on n.oid = c.relnamespace where n.nspname = 'wovyr' and c.relkind = 'r'`;
  let rows = 0;
  for (const { name } of tables) {
    const [counted] = await sql<{ rows: number }[]>`select count(*)::float8 as rows from wovyr.${sql(name)}`;
    rows += counted?.rows ?? 0;
  }
  return { rows, bytes: tables.reduce((sum, { bytes }) => sum + bytes, 0), wal: log?.wal ?? Number.NaN };
}

async function measure(sql: Sql, title: string, runs: number, steps: number, once: () => Promise<unknown>): Promise<Row[]> {
  const before = await sizeOf(sql);
  await sql.unsafe("checkpoint");
  const [start] = await sql<{ wal: number }[]>`select (pg_current_wal_lsn() - '0/0')::float8 as wal`;
  await Promise.all(Array.from({ length: runs }, once));
  const after = await sizeOf(sql);
  const [rows, bytes, wal] = [after.rows - before.rows, after.bytes - before.bytes, after.wal - (start?.wal ?? Number.NaN)];
  const note = `per step: ${(rows / runs / steps).toFixed(2)} rows, ${(bytes / runs / steps).toFixed(0)} bytes, ${(wal / runs / steps).toFixed(0)} bytes of WAL`;
  return [
    { name: `${title}, rows`, unit: "rows", values: [rows / runs] },
    { name: `${title}, tables and indexes`, unit: "bytes", values: [bytes / runs] },
    { name: `${title}, WAL`, unit: "bytes", values: [wal / runs], note },
  ];
}

async function rowsOf(client: Client, database: string, quick: boolean): Promise<Row[]> {
  const sql = postgres(database, { max: 1, fetch_types: false, onnotice: () => {} });
  const part = quick ? 0.1 : 1;
  try {
    return [
      ...(await measure(sql, "a closed run of 1 step", 10_000 * part, 1, () => client.execute(oneStep, 1))),
      ...(await measure(sql, "a closed run of 10 steps, one after another", 2_000 * part, 10, () => client.execute(sequential, 10))),
      ...(await measure(sql, "a closed run of 100 steps at once", 200 * part, 100, () => client.execute(fanOut, 100))),
    ];
  } finally {
    await sql.end();
  }
}

export const footprintFamily: Family = {
  name: "footprint",
  title: "What a run leaves in Postgres; values of a few bytes",
  databases: 1,
  deadline: 180,
  run: ({ databases, quick }) => withPostgres(databases[0], ({ client }) => rowsOf(client, databases[0] as string, quick)),
};
