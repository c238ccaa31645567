/** An order from reservation to delivery: steps in parallel, a condition, an event against a timer, a child, and an undo when something fails. */
import { activity, all, awaitEvent, child, duration, event, race, sleep, Type, workflow } from "@wovyr/sdk";
import { act } from "./shop.ts";

export const Order = Type.Object({
  id: Type.String(),
  total: Type.Number({ minimum: 0 }),
  /** How long we wait for the money. */
  patience: Type.Optional(Type.String()),
  /** When the carrier comes for the parcel. */
  pickup: Type.Optional(Type.String()),
});

export const PaymentReceived = event("payment.received", Type.Object({ amount: Type.Number({ minimum: 0 }) }));

// ── what is done to the world ──

const reserveStock = activity(
  "reserve-stock",
  { input: Order, retry: { maxAttempts: 5, initialDelay: "200ms" }, timeout: { startToClose: "1m" } },
  async (order, ctx) => {
    await act("reserve-stock", order.id, ctx);
    return `reservation-of-${order.id}`;
  },
);

const releaseStock = activity("release-stock", { input: Order }, async (order, ctx) => act("release-stock", order.id, ctx));

const scoreRisk = activity("score-risk", { input: Order }, async (order, ctx) => {
  await act("score-risk", order.id, ctx);
  return order.total > 1_000 ? 0.9 : 0.1;
});

const quoteShipping = activity("quote-shipping", { input: Order }, async (order, ctx) => {
  await act("quote-shipping", order.id, ctx);
  return order.total > 100 ? 0 : 4.9;
});

const review = activity("review", { input: Order }, async (order, ctx) => act("review", order.id, ctx));

const printLabel = activity("print-label", { retry: { maxAttempts: 2, initialDelay: "10ms" } }, async (order: string, ctx) => {
  await act("print-label", order, ctx);
  return `parcel-${order}`;
});

const handOver = activity("hand-over", async (order: string, ctx) => act("hand-over", order, ctx));

// ── what happens when ──

export const ship = workflow("ship", async function* (parcel: { order: string; pickup: string }) {
  const tracking = yield* printLabel(parcel.order);
  yield* sleep(duration(parcel.pickup));
  yield* handOver(parcel.order);
  return tracking;
});

export const order = workflow("order", { input: Order, events: [PaymentReceived] }, async function* (order, ctx) {
  const { id, patience = "3 days", pickup = "2 hours" } = order;
  const reservation = yield* reserveStock(order);
  try {
    const [risk, shipping] = yield* all([scoreRisk(order), quoteShipping(order)]);
    if (risk > 0.8) yield* review(order);

    const payment = yield* race({ received: awaitEvent(PaymentReceived), late: sleep(duration(patience)) });
    if (payment.winner === "late") throw new Error(`order ${id} was not paid within ${patience}`);
    ctx.log.info("paid", payment.value);

    const tracking = yield* child(ship, { order: id, pickup }, { id: `${id}.shipping` });
    return { reservation, paid: payment.value.amount, shipping, tracking };
  } catch (error) {
    yield* releaseStock(order); // also when the order is cancelled
    throw error;
  }
});
