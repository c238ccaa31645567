/**
 * Brings a database to the schema of this release.
 *
 * 1. All missing migrations run in one transaction under an advisory lock: processes that start at once queue up, and a process that dies half way
 *    leaves nothing behind.
 * 2. A database that knows a migration which this release does not is left alone: STORE_INCOMPATIBLE.
 */
import { readFile } from "node:fs/promises";
import { WovyrError } from "@wovyr/sdk";
import { DriverError, type SqlDriver } from "./driver.ts";

type Journal = { readonly entries: readonly { readonly tag: string }[] };

export type Migration = {
  readonly tag: string;
  readonly statements: readonly string[];
};

/** As seen from the source, and from the built files, which lie in one directory. */
const directory = new URL(import.meta.url.endsWith(".ts") ? "../../../migrations/" : "../migrations/", import.meta.url);
const quote = "$wovyr_migration$";
const lock = 8_247_105_193;
const incompatible = "WV002";
const missing = new Set(["42P01", "3F000"]);

/** The migrations of this release, in order. */
export async function readMigrations(): Promise<readonly Migration[]> {
  const journal = JSON.parse(await readFile(new URL("meta/_journal.json", directory), "utf8")) as Journal;
  return Promise.all(
    journal.entries.map(async ({ tag }) => {
      const text = await readFile(new URL(`${tag}.sql`, directory), "utf8");
      return { tag, statements: text.split("--> statement-breakpoint") };
    }),
  );
}

export async function migrate(driver: SqlDriver, migrations: readonly Migration[]): Promise<void> {
  const applied = await appliedTags(driver);
  const known = new Set(migrations.map(({ tag }) => tag));
  const foreign = applied.filter((tag) => !known.has(tag));
  if (foreign.length > 0) throw incompatibleError(foreign.join(", "));
  if (applied.length === migrations.length) return;
  try {
    await driver.script(script(migrations));
  } catch (error) {
    if (error instanceof DriverError && error.code === incompatible) throw incompatibleError(error.message);
    throw error;
  }
}

async function appliedTags(driver: SqlDriver): Promise<readonly string[]> {
  try {
    const rows = await driver.query("read", "select tag from wovyr.migrations order by applied", []);
    return rows.map(([tag]) => String(tag));
  } catch (error) {
    if (error instanceof DriverError && missing.has(error.code)) return [];
    throw error;
  }
}

function script(migrations: readonly Migration[]): string {
  const tags = migrations.map(({ tag }) => `'${tag}'`).join(", ");
  return `select pg_advisory_xact_lock(${lock});
set local client_min_messages = warning;
create schema if not exists wovyr;
create table if not exists wovyr.migrations (tag text primary key, applied integer generated always as identity, at timestamptz not null default now());
do $check$
declare
  foreign_tags text;
begin
  select string_agg(tag, ', ' order by applied) into foreign_tags from wovyr.migrations where tag <> all (array[${tags}]::text[]);
  if foreign_tags is not null then
    raise exception '%', foreign_tags using errcode = '${incompatible}';
  end if;
end
$check$;
${migrations.map(step).join("\n")}`;
}

function step({ tag, statements }: Migration): string {
  const body = statements.map((statement) => `    execute ${quote}${statement}${quote};`).join("\n");
  return `do $step$
begin
  if not exists (select from wovyr.migrations where tag = '${tag}') then
${body}
    insert into wovyr.migrations (tag) values ('${tag}');
  end if;
end
$step$;`;
}

function incompatibleError(tags: string): WovyrError {
  return new WovyrError(
    `the database was migrated by a newer release of Wovyr (unknown migrations: ${tags}); start that release, or give this one another database`,
    { code: "STORE_INCOMPATIBLE" },
  );
}
