/** What the nodes run: orders whose payment writes into a ledger of the same database, in the transaction that records its outcome. */
import { activity, sleep, workflow } from "@wovyr/sdk";

export type Order = { readonly key: string; readonly pays: boolean };

const price = activity("endurance-price", async ({ key }: Order) => key.length);

const pay = activity("endurance-pay", { semantics: "transactional" }, async ({ key }: Order, ctx) => {
  await ctx.tx`insert into ledger (key) values (${key})`;
});

export const order = workflow("endurance-order", async function* (input: Order) {
  const amount = yield* price(input);
  if (input.pays) {
    yield* sleep(50);
    yield* pay(input);
  }
  return { key: input.key, amount };
});
