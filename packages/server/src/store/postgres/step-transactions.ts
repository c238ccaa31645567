/**
 * Transactional steps on Postgres, on connections of their own, so that nothing of the engine waits for them.
 *
 * 1. One round trip begins the transaction, looks for an outcome, and notes which transaction of which session it is.
 * 2. After the work: the fence on the shard's epoch, the outcome, COMMIT. What is still the same transaction is asked first, for the work could have ended it.
 * 3. From the fence to COMMIT the shard is locked against a takeover. A process that stops in between is cut off by the database after `commitPatience`; one
 *    that stops before, after the idle timeout.
 * 4. When the answer to COMMIT is lost, the transaction is ended by force where it still is, and the outcome is looked for: it is there, or nothing is.
 */
import { setTimeout as pause } from "node:timers/promises";
import { WovyrError } from "@wovyr/sdk";
import postgres from "postgres";
import { type StepEnd, type StepTransactions, type StepWork, StoreUnavailableError } from "../../engine/ports/store.ts";
import { DriverError, type SqlQuery } from "../sql/driver.ts";
import { checkStorable } from "../storable.ts";
import { Connection, type ConnectionOptions } from "./connection.ts";
import { Pool } from "./pool.ts";
import { openStepSql, withOwnTypes } from "./step-sql.ts";

export type StepTransactionsOptions = ConnectionOptions & {
  /** Connections, and so transactions that are open at once. */
  readonly max: number;
  /** How long a transaction may be open without a statement, in milliseconds. */
  readonly idleTimeout: number;
  /** How long the statements around the work may take, in milliseconds. */
  readonly statementDeadline: number;
  /** Runs a statement on a connection of the engine. */
  readonly query: SqlQuery;
};

/** Milliseconds. */
const commitPatience = 3_000;
const retryPause = 250;

const begin = "begin isolation level read committed";

/** `now()` is when the transaction began. */
const look = `select set_config('idle_in_transaction_session_timeout', $1, true), pg_backend_pid() as pid, extract(epoch from now())::text as began,
  s.run is not null as known, s.outcome
  from (select 1) one left join wovyr.step_outcomes s on s.tenant = $2 and s.run = $3 and s.effect = $4`;

const seal = `with fence as materialized (
    select s.id from wovyr.shards s
    where s.id = $1::integer and s.epoch = $2::bigint and s.owner is not null and extract(epoch from now())::text = $3 for share of s
  ), patience as (select set_config('idle_in_transaction_session_timeout', $4, true) from fence)
  insert into wovyr.step_outcomes (tenant, run, effect, at, outcome)
  select $5, $6, $7, $8::bigint, $9 from patience on conflict (tenant, run, effect) do nothing`;

const obstacle = `select extract(epoch from now())::text = $1 as same, s.run is not null as known, s.outcome,
  exists (select from wovyr.shards h where h.id = $2::integer and h.epoch = $3::bigint and h.owner is not null) as owned
  from (select 1) one left join wovyr.step_outcomes s on s.tenant = $4 and s.run = $5 and s.effect = $6`;

const endSession = `select pg_terminate_backend(a.pid, 5000) from pg_stat_activity a
  where a.pid = $1::integer and extract(epoch from a.xact_start)::text = $2`;

const recorded = "select s.outcome from wovyr.step_outcomes s where s.tenant = $1 and s.run = $2 and s.effect = $3";

/** Of a session that Postgres ends by itself: what became of a COMMIT is not said. */
const sessionEnded = /^(08|57P0)/;

type Session = { readonly pid: number; readonly began: string };

/** Where a transaction is: nothing of the work has been asked for, it is under way, or COMMIT may have been sent. */
type Phase = "beginning" | "working" | "sealing" | "committing";

export class PostgresStepTransactions implements StepTransactions {
  readonly #options: StepTransactionsOptions;
  readonly #pool: Pool;
  readonly #closing = new AbortController();

  constructor(options: StepTransactionsOptions) {
    this.#options = options;
    this.#pool = new Pool({ size: options.max, open: (signal) => Connection.open({ ...options, types: true }, signal) });
  }

  /** A transaction that cannot be begun is waited for: the attempt that asks for it has not begun either. */
  async run(step: StepWork): Promise<StepEnd> {
    for (;;) {
      step.signal.throwIfAborted();
      try {
        const transaction = new Transaction(step, this.#options);
        return await this.#pool.run((connection) => transaction.run(connection));
      } catch (error) {
        if (!(error instanceof DriverError)) throw error;
        if (this.#closing.signal.aborted) throw new StoreUnavailableError("the store is closed", { cause: error });
        await pause(retryPause, undefined, { signal: AbortSignal.any([step.signal, this.#closing.signal]) }).catch(() => {});
      }
    }
  }

  /** Ends what is open: it is rolled back. */
  async close(): Promise<void> {
    this.#closing.abort();
    await this.#pool.close();
  }
}

/** One transaction. A `DriverError` that it rejects with says that it has not begun. */
class Transaction {
  readonly #step: StepWork;
  readonly #options: StepTransactionsOptions;
  #phase: Phase = "beginning";
  #session: Session | undefined;

  constructor(step: StepWork, options: StepTransactionsOptions) {
    this.#step = step;
    this.#options = options;
  }

  async run(connection: Connection): Promise<StepEnd> {
    const { signal } = this.#step;
    signal.throwIfAborted();
    const abort = () => this.#abort(connection);
    signal.addEventListener("abort", abort);
    try {
      return await connection.lend((sql) => withOwnTypes(sql, () => this.#all(sql, connection)));
    } catch (error) {
      return await this.#afterFailure(error, connection);
    } finally {
      signal.removeEventListener("abort", abort);
    }
  }

  async #all(sql: postgres.Sql, connection: Connection): Promise<StepEnd> {
    let end: StepEnd | undefined;
    try {
      end = await this.#within(connection, () => this.#begin(sql));
      if (end === undefined) {
        const outcome = await this.#work(sql);
        end = await this.#within(connection, () => this.#seal(sql, outcome));
        if (end === undefined) {
          this.#step.signal.throwIfAborted();
          return await this.#within(connection, () => this.#commit(sql, outcome));
        }
      }
    } catch (error) {
      await this.#rollback(sql, connection);
      throw error;
    }
    await this.#rollback(sql, connection);
    return end;
  }

  async #begin(sql: postgres.Sql): Promise<StepEnd | undefined> {
    const { tenant, run, effect } = this.#step;
    const options = { prepare: false };
    const [, [row]] = await Promise.all([
      sql.unsafe(begin),
      sql.unsafe(look, [String(this.#options.idleTimeout), tenant, run, effect], options),
    ]);
    this.#session = { pid: Number(row?.pid), began: String(row?.began) };
    return row?.known === true ? endOf(row.outcome) : undefined;
  }

  async #work(sql: postgres.Sql): Promise<string> {
    this.#phase = "working";
    const open = openStepSql(sql);
    try {
      return await this.#step.work(open.sql);
    } finally {
      open.end();
    }
  }

  /** Undefined: the outcome is written. */
  async #seal(sql: postgres.Sql, outcome: string): Promise<StepEnd | undefined> {
    this.#phase = "sealing";
    const { tenant, run, effect, shard, epoch } = this.#step;
    checkStorable({ tenant, run, effect, outcome });
    const began = this.#session?.began ?? "";
    const params = [shard, epoch, began, String(commitPatience), tenant, run, effect, this.#step.now(), outcome];
    const { count } = await sql.unsafe(seal, params, { prepare: this.#options.prepare });
    if (count === 1) return undefined;
    const [row] = await sql.unsafe(obstacle, [began, shard, epoch, tenant, run, effect], { prepare: false });
    if (row?.same !== true)
      throw new WovyrError(
        "the function ended the transaction of its activity itself, and what it wrote before may be there: leave `commit` and `rollback` to the engine",
        { code: "TRANSACTION_ENDED" },
      );
    if (row.known === true) return endOf(row.outcome);
    if (row.owned !== true) return { kind: "notOwner" };
    throw new StoreUnavailableError("the outcome of the step was not taken; it is rolled back");
  }

  async #commit(sql: postgres.Sql, outcome: string): Promise<StepEnd> {
    this.#phase = "committing";
    const { command } = await sql.unsafe("commit");
    if (command !== "COMMIT") throw aborted(undefined);
    return { kind: "committed", outcome };
  }

  async #rollback(sql: postgres.Sql, connection: Connection): Promise<void> {
    if (connection.broken || this.#phase === "committing") return;
    try {
      await this.#within(connection, () => sql.unsafe("rollback"));
    } catch {
      connection.discard();
    }
  }

  /** The statements around the work are answered in time, or the connection is given up. */
  async #within<T>(connection: Connection, statements: () => Promise<T>): Promise<T> {
    const late = setTimeout(() => connection.discard(), this.#options.statementDeadline);
    try {
      return await statements();
    } finally {
      clearTimeout(late);
    }
  }

  /** While it is sealed the end is near, and whether it is still wanted is asked once more before COMMIT. */
  #abort(connection: Connection): void {
    if (this.#phase === "sealing" || this.#phase === "committing") return;
    connection.discard();
    void this.#endSession();
  }

  async #afterFailure(error: unknown, connection: Connection): Promise<StepEnd> {
    const { signal } = this.#step;
    const answered = isAnswer(error);
    if (this.#phase === "committing" && !answered) {
      connection.discard();
      return this.#resolve(error);
    }
    signal.throwIfAborted();
    if (this.#phase === "beginning" && !answered) {
      connection.discard();
      throw new DriverError("the transaction could not be begun", { code: "CONNECTION", answered: false, cause: error });
    }
    if (connection.broken) void this.#endSession();
    if (isOfDriver(error)) {
      throw new StoreUnavailableError("the connection of the transaction was lost; nothing of it was committed", { cause: error });
    }
    throw codeOf(error) === "25P02" ? aborted(error) : error;
  }

  /** COMMIT was sent and not answered. */
  async #resolve(error: unknown): Promise<StepEnd> {
    const { signal } = this.#step;
    for (;;) {
      signal.throwIfAborted();
      const found = (await this.#endSession()) ? await this.#recorded() : "unreachable";
      if (typeof found === "object") return found;
      if (found === "absent")
        throw new StoreUnavailableError("the connection was lost during COMMIT; nothing of the transaction was committed", {
          cause: error,
        });
      await pause(retryPause, undefined, { signal }).catch(() => {});
    }
  }

  async #recorded(): Promise<StepEnd | "absent" | "unreachable"> {
    const { tenant, run, effect } = this.#step;
    try {
      const [row] = await this.#options.query("write", recorded, [tenant, run, effect]);
      return row === undefined ? "absent" : endOf(row[0]);
    } catch {
      return "unreachable";
    }
  }

  /** Ends the transaction where it is still open: the session may be gone, or be at work on another one. False: the database did not answer. */
  async #endSession(): Promise<boolean> {
    if (this.#session === undefined) return true;
    try {
      await this.#options.query("write", endSession, [this.#session.pid, this.#session.began]);
      return true;
    } catch (error) {
      return error instanceof DriverError && error.answered;
    }
  }
}

const endOf = (outcome: unknown): StepEnd => (typeof outcome === "string" ? { kind: "committed", outcome } : { kind: "givenUp" });

const codeOf = (error: unknown): unknown => (typeof error === "object" && error !== null ? (error as { code?: unknown }).code : undefined);

/** Whether the database, or the code around it, has said what became of what was asked; anything else is the connection's end. */
function isAnswer(error: unknown): boolean {
  if (error instanceof WovyrError) return true;
  return error instanceof postgres.PostgresError && !sessionEnded.test(error.code);
}

/** Whether an error that the work passed on says that its connection has ended. */
function isOfDriver(error: unknown): boolean {
  if (error instanceof DriverError) return true;
  const code = codeOf(error);
  if (typeof code !== "string") return false;
  return error instanceof postgres.PostgresError ? sessionEnded.test(code) : code.startsWith("CONNECTION_");
}

function aborted(cause: unknown): WovyrError {
  return new WovyrError(
    "a statement in the transaction of the activity failed, the function went on, and nothing was committed: let the error pass, or run what may fail in `ctx.tx.savepoint(…)`",
    { code: "TRANSACTION_ABORTED", ...(cause !== undefined && { cause }) },
  );
}
