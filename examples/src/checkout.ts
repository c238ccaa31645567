/** A shop with tables of its own: an order is written and its workflow started in one transaction, and so is a payment and the event that tells of it. */
import { awaitEvent, event, Type, workflow } from "@wovyr/sdk";
import { sendIn, startIn } from "@wovyr/server/transaction";
import type { Sql } from "postgres";

const Paid = event("paid", Type.Object({ amount: Type.Number({ minimum: 0 }) }));

export const fulfil = workflow("fulfil", { input: Type.Object({ total: Type.Number() }), events: [Paid] }, async function* ({ total }) {
  let open = total;
  while (open > 0) open -= (yield* awaitEvent(Paid)).amount;
  return `paid, with ${-open} to return`;
});

export class SoldOut extends Error {
  override readonly name = "SoldOut";
}

export async function createTables(sql: Sql): Promise<void> {
  await sql`create table stock (item text primary key, pieces int not null check (pieces >= 0))`;
  await sql`create table payments (order_id text not null, amount int not null)`;
}

/** Takes a piece from stock and starts the order's workflow: both, or neither. */
export async function placeOrder(sql: Sql, order: { readonly id: string; readonly item: string; readonly total: number }): Promise<string> {
  return sql.begin(async (tx) => {
    const { runId } = await startIn(tx, fulfil, { total: order.total }, { id: order.id, idempotencyKey: `order-${order.id}` });
    const { count } = await tx`update stock set pieces = pieces - 1 where item = ${order.item} and pieces > 0`;
    if (count === 0) throw new SoldOut(`no ${order.item} is left`);
    return runId;
  }) as Promise<string>;
}

/** Books a payment and tells the order of it: both, or neither. */
export async function bookPayment(sql: Sql, order: string, amount: number): Promise<void> {
  await sql.begin(async (tx) => {
    await tx`insert into payments values (${order}, ${amount})`;
    await sendIn(tx, order, Paid, { amount });
  });
}
