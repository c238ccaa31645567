/** Payments whose provider is down over the week-end: none of them fails, and on Monday somebody has all of them tried anew. */
import { activity, workflow } from "@wovyr/sdk";
import type { Client } from "@wovyr/sdk/client";

export type Invoice = { readonly id: string; readonly amount: number };

/** What stands for the provider. */
export const provider = { isUp: true, payments: new Map<string, number>() };

export class ProviderDown extends Error {
  override readonly name = "ProviderDown";
  readonly code = "PROVIDER_DOWN";
}

/** Tried for about an hour, and then not failed, but left to a person. The key makes sure that nobody pays twice. */
const pay = activity(
  "pay",
  { onExhausted: "pause", retry: { maxAttempts: 8, initialDelay: "30s", maxDelay: "15m" } },
  async ({ amount }: Invoice, { idempotencyKey }) => {
    if (!provider.isUp) throw new ProviderDown("the provider does not answer");
    provider.payments.set(idempotencyKey, amount);
    return `payment of ${amount}`;
  },
);

const post = activity("post", async (receipt: string) => `${receipt}, posted`);

export const invoice = workflow("invoice", async function* (due: Invoice) {
  const receipt = yield* pay(due);
  return yield* post(receipt);
});

/** What an operator does on Monday: everything that the outage stopped is tried anew. Resolves with the id of the batch. */
export async function retryAfterOutage(client: Client, note: string): Promise<string> {
  return client.deadLetters.decideAll("retry", { workflow: invoice, code: "PROVIDER_DOWN" }, { note });
}
