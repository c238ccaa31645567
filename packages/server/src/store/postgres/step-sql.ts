/**
 * What transactional activities get as `ctx.tx`: the client of postgres.js on the one connection of their transaction.
 *
 * 1. It works until the transaction is over; what is asked of it later throws TRANSACTION_ENDED.
 * 2. It begins, ends and leaves nothing: `begin` sets a savepoint, and what would need a connection of its own is refused.
 */
import { type ActivityTransaction, WovyrError } from "@wovyr/sdk";
import type postgres from "postgres";

declare module "@wovyr/sdk/internal" {
  interface ActivityTransaction extends postgres.Sql, postgres.TransactionSql {}
}

/** The transaction of a transactional activity: what postgres.js calls a `TransactionSql`, with what drizzle needs of a client. */
export type PostgresTransaction = ActivityTransaction;

type Work = (sql: PostgresTransaction) => unknown;

export type OpenStepSql = {
  readonly sql: PostgresTransaction;
  /** Nothing may be asked of it any more. */
  end(): void;
};

const elsewhere = ["listen", "subscribe", "reserve", "largeObject", "end", "close", "prepare"] as const;

export function openStepSql(client: postgres.Sql): OpenStepSql {
  let over = false;
  let savepoints = 0;
  const check = () => {
    if (over)
      throw new WovyrError("`ctx.tx` was used after its activity had ended: await every statement before the function returns", {
        code: "TRANSACTION_ENDED",
      });
  };
  const open =
    <A extends unknown[], R>(call: (...args: A) => R) =>
    (...args: A): R => {
      check();
      return call(...args);
    };
  const savepoint = async (...args: [Work] | [name: string, Work]): Promise<unknown> => {
    check();
    const work = args.length === 1 ? args[0] : args[1];
    savepoints += 1;
    const name = `wovyr_${savepoints}`;
    await client.unsafe(`savepoint ${name}`);
    try {
      const result = work(sql);
      return await (Array.isArray(result) ? Promise.all(result) : result);
    } catch (error) {
      check();
      await client.unsafe(`rollback to savepoint ${name}`);
      throw error;
    }
  };
  const call = open((...args: unknown[]) => (client as unknown as (...args: unknown[]) => unknown)(...args));
  const refused = Object.fromEntries(elsewhere.map((name) => [name, () => refuse(name)]));
  const own = {
    unsafe: open(client.unsafe),
    file: open(client.file),
    notify: open(client.notify),
    savepoint,
    begin: savepoint,
    ...refused,
  };
  const sql = Object.assign(call, client, own) as unknown as PostgresTransaction;
  return {
    sql,
    end() {
      over = true;
    },
  };
}

function refuse(name: string): never {
  throw new WovyrError(
    `\`ctx.tx.${name}\` is not for the transaction of an activity: it works with the statements of its own connection only`,
    {
      code: "INVALID_OPTION",
    },
  );
}

/** What others set on a client concerns the transaction in which they do, and no later one (drizzle takes the client's parsers of dates away). */
export async function withOwnTypes<T>({ options }: postgres.Sql, work: () => Promise<T>): Promise<T> {
  const tables = [options.parsers, options.serializers] as Record<string, unknown>[];
  const before = tables.map((table) => ({ ...table }));
  try {
    return await work();
  } finally {
    tables.forEach((table, index) => {
      for (const type of Object.keys(table)) delete table[type];
      Object.assign(table, before[index]);
    });
  }
}
