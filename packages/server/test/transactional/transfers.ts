/** Transfers whose steps write into a ledger by their idempotency key: they complete, fail, run out of time, lose races and are cancelled. */
import { activity, NonRetryableError, race, settled, sleep, workflow } from "@wovyr/sdk";

const retry = { maxAttempts: 4, initialDelay: 1, jitter: "none" } as const;
const transactional = { semantics: "transactional", retry } as const;

const move = activity("move", transactional, async ({ from, to }: { from: string; to: string }, { tx, idempotencyKey }) => {
  for (const [name, change] of [
    [from, -1],
    [to, 1],
  ].sort() as [string, number][])
    await tx`update accounts set balance = balance + ${change} where name = ${name}`;
  await tx`insert into ledger (note) values (${idempotencyKey})`;
});

const refused = activity("refused", transactional, async (_: undefined, { tx, idempotencyKey, attempt }) => {
  await tx`insert into ledger (note) values (${idempotencyKey})`;
  throw attempt < 2 ? new Error("again") : new NonRetryableError("no");
});

const hasty = activity("hasty", { ...transactional, timeout: { startToClose: 40 } }, async (delay: number, { tx, idempotencyKey }) => {
  await tx`insert into ledger (note) values (${idempotencyKey})`;
  await tx`select pg_sleep(${delay / 1_000})`;
  return delay;
});

const slow = activity("slow", transactional, async (delay: number, { tx, idempotencyKey }) => {
  await tx`insert into ledger (note) values (${idempotencyKey})`;
  await tx`select pg_sleep(${delay / 1_000})`;
});

export const accounts = ["a", "b", "c", "d"];

export const transfer = workflow("transfer", async function* (_: undefined, ctx) {
  const account = () => accounts[Math.floor(ctx.random() * accounts.length)] as string;
  const [from, to] = [account(), account()];
  yield* move({ from, to });
  yield* settled([refused(undefined), hasty(20 + ctx.random() * 40)]);
  yield* race([slow(ctx.random() * 60), sleep(Math.floor(ctx.random() * 60))]);
  yield* move({ from: to, to: from });
});
