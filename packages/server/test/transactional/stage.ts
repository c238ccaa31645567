/** A database with a ledger, and orchestrators over it whose activities write into it. */
import type { TestContext } from "node:test";
import type { AnyWorkflow } from "@wovyr/sdk";
import type postgres from "postgres";
import {
  createOrchestrator,
  type Orchestrator,
  type OrchestratorOptions,
  type PostgresStoreOptions,
  postgresStore,
} from "../../src/index.ts";
import { createDatabase } from "../store/postgres-database.ts";

export type StageOptions = {
  readonly store?: PostgresStoreOptions;
  /** Of the database, as the orchestrator is to reach it. */
  readonly url?: (url: string) => string;
} & Omit<OrchestratorOptions, "workflows" | "store">;

export type Stage = {
  readonly url: string;
  readonly admin: postgres.Sql;
  host(workflows: readonly AnyWorkflow[], options?: StageOptions): Promise<Orchestrator>;
  /** What the ledger holds, by note. */
  notes(): Promise<readonly string[]>;
  /** Outcomes and (null) tombstones of a run. */
  outcomes(run: string): Promise<readonly (string | null)[]>;
  /** Resolves when so many statements that hold the text wait for a lock. */
  waiting(statement: string, count?: number): Promise<void>;
};

export async function stage(context: Pick<TestContext, "after">): Promise<Stage> {
  const database = await createDatabase();
  const { admin, url } = database;
  const open: Orchestrator[] = [];
  context.after(async () => {
    await Promise.all(open.map((orchestrator) => orchestrator.close()));
    await database.drop();
  });
  await admin`create table ledger (note text not null, run text not null default '')`;
  await admin`create table accounts (name text primary key, balance int not null)`;
  return {
    url,
    admin,
    async host(workflows, { store, url: through = (given: string) => given, ...options } = {}) {
      const orchestrator = await createOrchestrator({
        workflows,
        store: postgresStore(through(url), store),
        turnTimeout: false,
        shutdownGrace: 100,
        log: { debug() {}, info() {}, warn() {}, error: console.error },
        ...options,
      });
      open.push(orchestrator);
      return orchestrator;
    },
    async notes() {
      const rows = await admin<{ note: string }[]>`select note from ledger order by note`;
      return rows.map(({ note }) => note);
    },
    async outcomes(run) {
      const rows = await admin<{ outcome: string | null }[]>`select outcome from wovyr.step_outcomes where run = ${run} order by effect`;
      return rows.map(({ outcome }) => outcome);
    },
    async waiting(statement, count = 1) {
      const patience = performance.now() + 20_000;
      while (performance.now() < patience) {
        const rows = await admin`select pid from pg_stat_activity
          where datname = current_database() and wait_event_type = 'Lock' and query like ${`%${statement}%`}`;
        if (rows.length >= count) return;
      }
      throw new Error(`no ${count} of ${statement} wait for a lock`);
    },
  };
}
