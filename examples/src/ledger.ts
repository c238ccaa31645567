/** Money that moves between accounts in one's own tables, exactly once, whatever dies in between: the steps write where their outcomes are recorded. */
import { activity, NonRetryableError, Type, workflow } from "@wovyr/sdk";
import type { PostgresTransaction } from "@wovyr/server";

const Booking = Type.Object({ account: Type.String(), amount: Type.Integer() });

/** The tables that the steps below write into; a migration of one's own in earnest. */
export async function createTables(tx: PostgresTransaction): Promise<void> {
  await tx`create table if not exists accounts (name text primary key, balance integer not null check (balance >= 0))`;
  await tx`create table if not exists bookings (account text not null, amount integer not null, at timestamptz not null default now())`;
}

export const open = activity("open", { semantics: "transactional", input: Booking }, async ({ account, amount }, { tx }) => {
  await createTables(tx);
  await tx`insert into accounts (name, balance) values (${account}, ${amount}) on conflict do nothing`;
});

/** Adds to an account, or takes from it what it has. */
export const book = activity("book", { semantics: "transactional", input: Booking, output: Type.Integer() }, async (booking, { tx }) => {
  const { account, amount } = booking;
  const [row] = await tx<{ balance: number }[]>`
    update accounts set balance = balance + ${amount} where name = ${account} and balance + ${amount} >= 0 returning balance`;
  if (row === undefined) throw new NonRetryableError(`account ${account} is not there, or does not cover ${-amount}`);
  await tx`insert into bookings ${tx(booking)}`;
  return row.balance;
});

const Order = Type.Object({ from: Type.String(), to: Type.String(), amount: Type.Integer({ minimum: 1 }) });

export const moveMoney = workflow("move-money", { input: Order }, async function* ({ from, to, amount }) {
  // Undone only if it was done, which is known for certain.
  const left = yield* book({ account: from, amount: -amount }).compensate(() => book({ account: from, amount }));
  yield* book({ account: to, amount });
  return left;
});

export const openAccount = workflow("open-account", { input: Booking }, async function* (account) {
  yield* open(account);
});
