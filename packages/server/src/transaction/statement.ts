/**
 * One statement in a transaction of the application's own, whatever client that is made with.
 *
 * 1. Parameters are texts or null, and the answer is one text: no parser or serializer that the application has set changes them.
 * 2. Nothing is prepared under a name, so that it works behind a pooler.
 */
import { WovyrError } from "@wovyr/sdk";
import { type SQL, sql } from "drizzle-orm";

/** What `sql.begin(async (tx) => …)` of postgres.js hands out. */
export type PostgresJsTransaction = {
  unsafe(text: string, parameters: (string | null)[]): PromiseLike<readonly unknown[]>;
};

/** What `db.transaction(async (tx) => …)` of drizzle hands out, on any driver for Postgres. */
export type DrizzleTransaction = {
  // biome-ignore lint/suspicious/noExplicitAny: the application's drizzle may be another copy, whose classes are other types
  execute(query: any): PromiseLike<unknown>;
};

/** A client of `pg`, or one that is used like it, between `begin` and `commit`. */
export type PgClient = {
  query(text: string, parameters: (string | null)[]): PromiseLike<{ readonly rows: readonly unknown[] }>;
};

export type Transaction = PostgresJsTransaction | DrizzleTransaction | PgClient;

/** Undefined function, table or schema. */
const missing = new Set(["42883", "42P01", "3F000"]);

/** Calls a function of 0003_requests.sql; its answer is an object. */
export async function call<T>(tx: Transaction, name: string, parameters: readonly (string | null)[]): Promise<T> {
  const run = runnerOf(tx);
  let result: unknown;
  try {
    result = await run(`wovyr.${name}`, [...parameters]);
  } catch (error) {
    throw missing.has(codeOf(error)) ? incompatible(name, error) : error;
  }
  const rows = Array.isArray(result) ? (result as unknown[]) : (result as { rows?: readonly unknown[] } | undefined)?.rows;
  const text = Object.values(rows?.[0] ?? {})[0];
  if (typeof text === "string") return JSON.parse(text) as T;
  throw new WovyrError(`the client of the transaction answered a query with no row of one text`, { code: "INVALID_OPTION" });
}

type Runner = (name: string, parameters: (string | null)[]) => PromiseLike<unknown>;

function runnerOf(tx: Transaction): Runner {
  const { unsafe, query, execute } = ((typeof tx === "object" || typeof tx === "function") && tx !== null ? tx : {}) as Partial<
    PostgresJsTransaction & PgClient & DrizzleTransaction
  >;
  if (typeof unsafe === "function") return (name, parameters) => unsafe.call(tx, textOf(name, parameters.length), parameters);
  if (typeof query === "function") return (name, parameters) => query.call(tx, textOf(name, parameters.length), parameters);
  if (typeof execute === "function") return (name, parameters) => execute.call(tx, sqlOf(name, parameters));
  throw new WovyrError(
    "the first argument is the transaction: what `sql.begin` of postgres.js or `db.transaction` of drizzle hands out, or a client of `pg` between begin and commit",
    { code: "INVALID_OPTION" },
  );
}

function textOf(name: string, parameters: number): string {
  return `select ${name}(${Array.from({ length: parameters }, (_, at) => `$${at + 1}::text`).join(", ")}) as answer`;
}

function sqlOf(name: string, parameters: readonly (string | null)[]): SQL {
  const values = parameters.map((parameter) => sql`${parameter}::text`);
  return sql`select ${sql.raw(name)}(${sql.join(values, sql`, `)}) as answer`;
}

/** SQLSTATE, which drizzle hides in the cause. */
function codeOf(error: unknown): string {
  const { code, cause } = (error ?? {}) as { code?: unknown; cause?: unknown };
  if (typeof code === "string") return code;
  return cause === undefined ? "" : codeOf(cause);
}

function incompatible(name: string, cause: unknown): WovyrError {
  return new WovyrError(
    `the database has no function wovyr.${name}, which this release needs: start an orchestrator of this release on it once, which makes it, and look whether the transaction is in the same database`,
    { code: "STORE_INCOMPATIBLE", cause },
  );
}
