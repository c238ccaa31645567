/** A payment that nobody waits for yet: the bank publishes it under the order's id, and the order finds it when it comes so far. */
import { activity, awaitEvent, event, TimeoutError, Type, workflow } from "@wovyr/sdk";

type Booking = { readonly order: string; readonly amount: number };

export const Payment = event("bank.transfer", Type.Object({ order: Type.String(), amount: Type.Number({ minimum: 0 }) }));

const pack = activity("pack", async (order: string) => `parcel of ${order}`);

export const paidOrder = workflow("paid-order", { events: [Payment] }, async function* (order: string) {
  const parcel = yield* pack(order);
  try {
    const { amount } = yield* awaitEvent(Payment, { key: order, timeout: "3 days" });
    return { parcel, paid: amount };
  } catch (error) {
    if (!(error instanceof TimeoutError)) throw error;
    return { parcel, paid: 0 };
  }
});

const book = activity("book", async ({ order, amount }: Booking) => `${amount} for ${order}`);

/** Every payment is booked, whoever waits for it: publishing it starts this. */
export const bookkeeping = workflow("bookkeeping", { triggers: [Payment] }, async function* (payment: Booking) {
  return yield* book(payment);
});
