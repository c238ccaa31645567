/** A database with a table of the application's own, the clients that applications use, and orchestrators over it. */
import type { TestContext } from "node:test";
import type { AnyWorkflow } from "@wovyr/sdk";
import { drizzle as drizzleOnPg } from "drizzle-orm/node-postgres";
import { drizzle } from "drizzle-orm/postgres-js";
import pg from "pg";
import postgres from "postgres";
import type { AppRequests, Store, StoreProvider } from "../../src/engine/ports/store.ts";
import { createOrchestrator, type Orchestrator, type OrchestratorOptions, postgresStore } from "../../src/index.ts";
import type { Transaction } from "../../src/transaction.ts";
import { createDatabase } from "../store/postgres-database.ts";

/** A transaction as the tests use it, whatever client it is made with. */
export type Tx = {
  readonly tx: Transaction;
  /** A statement of the application's own. */
  note(text: string): Promise<unknown>;
  /** Runs the body in a savepoint; one that throws is rolled back alone. */
  savepoint(body: (tx: Transaction) => Promise<unknown>): Promise<unknown>;
};

export type AppClient = {
  readonly kind: string;
  /** Commits when the body resolves, rolls back when it rejects. */
  transaction<T>(body: (tx: Tx) => Promise<T>): Promise<T>;
};

export type Stage = {
  readonly url: string;
  readonly admin: postgres.Sql;
  readonly clients: readonly AppClient[];
  /** What the log held at `error`, as text. */
  readonly errors: readonly string[];
  host(workflows: readonly AnyWorkflow[], options?: Partial<OrchestratorOptions>): Promise<Orchestrator>;
  /** A provider whose store reads and removes requests through this. */
  through(around: (requests: AppRequests) => AppRequests): StoreProvider;
  notes(): Promise<readonly string[]>;
  /** How many rows a table holds. */
  count(table: string): Promise<number>;
  /** Resolves when a statement that holds the text waits for a lock. */
  waiting(statement: string): Promise<void>;
};

const quiet = { onnotice: () => {}, fetch_types: false };

export async function stage(context: Pick<TestContext, "after">): Promise<Stage> {
  const database = await createDatabase();
  const { admin, url } = database;
  const open: (() => Promise<unknown>)[] = [];
  const errors: string[] = [];
  context.after(async () => {
    for (const close of open.reverse()) await close();
    await database.drop();
  });
  await admin`create table notes (note text not null)`;
  const sql = postgres(url, quiet);
  const pooled = postgres(url, { ...quiet, prepare: false });
  // A client of drizzle's own: it changes parsers and serializers.
  const db = drizzle(postgres(url, quiet));
  open.push(
    () => sql.end(),
    () => pooled.end(),
    () => db.$client.end(),
  );
  return {
    url,
    admin,
    errors,
    clients: [
      { kind: "postgres.js", transaction: (body) => sql.begin((tx) => body(ofPostgresJs(tx))) as never },
      { kind: "postgres.js without prepared statements", transaction: (body) => pooled.begin((tx) => body(ofPostgresJs(tx))) as never },
      {
        kind: "drizzle over postgres.js",
        transaction: (body) =>
          db.transaction((tx) =>
            body({
              tx,
              note: (text) => tx.execute(`insert into notes values ('${text}')`),
              savepoint: (inner) => tx.transaction((nested) => inner(nested)),
            }),
          ),
      },
      { kind: "pg", transaction: (body) => withPg(url, body) },
      { kind: "drizzle over pg", transaction: (body) => withDrizzleOverPg(url, body) },
    ],
    async host(workflows, options = {}) {
      const orchestrator = await createOrchestrator({
        workflows,
        store: postgresStore(url),
        turnTimeout: false,
        shutdownGrace: 100,
        determinismGuard: "off",
        log: { debug() {}, info() {}, warn() {}, error: (message, data) => void errors.push(`${message} ${described(data)}`) },
        ...options,
      });
      open.push(() => orchestrator.close());
      return orchestrator;
    },
    through(around) {
      const provider = postgresStore(url);
      return {
        ...provider,
        async open(options) {
          const store = await provider.open(options);
          const requests = around(store.requests as AppRequests);
          return new Proxy(store, {
            get(target, name) {
              if (name === "requests") return requests;
              const value: unknown = Reflect.get(target, name, target);
              return typeof value === "function" ? value.bind(target) : value;
            },
          }) as Store;
        },
      };
    },
    async notes() {
      return (await admin<{ note: string }[]>`select note from notes order by note`).map(({ note }) => note);
    },
    async count(table) {
      const [row] = await admin.unsafe<{ count: string }[]>(`select count(*) from wovyr.${table}`);
      return Number(row?.count);
    },
    async waiting(statement) {
      const patience = performance.now() + 20_000;
      while (performance.now() < patience) {
        const rows = await admin`select pid from pg_stat_activity
          where datname = current_database() and wait_event_type = 'Lock' and query like ${`%${statement}%`}`;
        if (rows.length > 0) return;
      }
      throw new Error(`no ${statement} waits for a lock`);
    },
  };
}

function described(data: object | undefined): string {
  const { error, ...rest } = (data ?? {}) as { error?: { code?: string; message?: string } };
  return JSON.stringify({ ...rest, code: error?.code, message: error?.message });
}

function ofPostgresJs(tx: postgres.TransactionSql): Tx {
  return {
    tx,
    note: (text) => tx`insert into notes values (${text})`.then(),
    savepoint: (body) => tx.savepoint((inner) => body(inner)) as Promise<unknown>,
  };
}

async function withPg<T>(url: string, body: (tx: Tx) => Promise<T>): Promise<T> {
  const client = new pg.Client({ connectionString: url });
  await client.connect();
  try {
    await client.query("begin");
    const result = await body({
      tx: client,
      note: (text) => client.query("insert into notes values ($1)", [text]),
      async savepoint(inner) {
        await client.query("savepoint s");
        try {
          return await inner(client);
        } catch (error) {
          await client.query("rollback to savepoint s");
          throw error;
        }
      },
    });
    await client.query("commit");
    return result;
  } catch (error) {
    await client.query("rollback");
    throw error;
  } finally {
    await client.end();
  }
}

async function withDrizzleOverPg<T>(url: string, body: (tx: Tx) => Promise<T>): Promise<T> {
  const client = new pg.Client({ connectionString: url });
  await client.connect();
  try {
    return await drizzleOnPg(client as never).transaction((tx) =>
      body({
        tx,
        note: (text) => tx.execute(`insert into notes values ('${text}')`),
        savepoint: (inner) => tx.transaction((nested) => inner(nested)),
      }),
    );
  } finally {
    await client.end();
  }
}
