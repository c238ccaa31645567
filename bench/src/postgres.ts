/** The database server of a bench run: one of its own with its default durability, or that of `WOVYR_BENCH_DATABASE_URL`. */
import postgres from "postgres";
import { startPostgres } from "../../scripts/test-postgres.ts";

export type BenchPostgres = {
  readonly about: string;
  readonly postmaster: number | undefined;
  /** A database that nobody has used. */
  create(): Promise<string>;
  drop(url: string): Promise<void>;
  stop(): Promise<void>;
};

export async function openPostgres(): Promise<BenchPostgres> {
  const given = process.env.WOVYR_BENCH_DATABASE_URL;
  const own = given === undefined ? await startPostgres() : undefined;
  const url = own?.url ?? (given as string);
  const sql = postgres(url, { max: 1, onnotice: () => {} });
  const created = new Set<string>();
  const drop = async (database: string) => {
    const name = new URL(database).pathname.slice(1);
    created.delete(database);
    await sql`drop database if exists ${sql(name)} with (force)`;
  };
  const stop = async () => {
    for (const database of [...created]) await drop(database).catch(() => {});
    await sql.end({ timeout: 5 });
    await own?.stop();
  };
  try {
    return {
      about: await describe(sql, own === undefined ? "given by WOVYR_BENCH_DATABASE_URL" : "started for this run"),
      postmaster: await postmasterOf(sql, url),
      async create() {
        const name = `wovyr_bench_${process.pid}_${Math.random().toString(36).slice(2, 10)}`;
        await sql`create database ${sql(name)}`;
        const database = new URL(url);
        database.pathname = `/${name}`;
        created.add(database.href);
        return database.href;
      },
      drop,
      stop,
    };
  } catch (error) {
    await stop();
    throw error;
  }
}

async function describe(sql: postgres.Sql, origin: string): Promise<string> {
  const settings = ["server_version", "fsync", "synchronous_commit", "full_page_writes", "wal_sync_method", "shared_buffers"];
  const rows = await sql<{ name: string; value: string }[]>`
    select name, current_setting(name) as value from unnest(${settings}::text[]) name`;
  const [version, ...rest] = rows.map(({ name, value }) => (name === "server_version" ? `Postgres ${value}` : `${name} ${value}`));
  return `${version}, ${origin}; ${rest.join(", ")}`;
}

/** The number of the server's first process, when it runs on this machine and we may know it. */
async function postmasterOf(sql: postgres.Sql, url: string): Promise<number | undefined> {
  if (process.platform !== "linux" || !["127.0.0.1", "localhost", "[::1]"].includes(new URL(url).hostname)) return undefined;
  try {
    const [row] = await sql<{ file: string }[]>`select pg_read_file('postmaster.pid') as file`;
    return Number(row?.file.split("\n")[0]);
  } catch {
    return undefined;
  }
}
