import { awaitEvent, event, Type, workflow } from "@wovyr/sdk";

export const Paid = event("paid", Type.Object({ amount: Type.Number({ minimum: 0 }) }));
export const Opened = event("opened", Type.Object({ name: Type.String() }));

export const echo = workflow("echo", { input: Type.Object({ name: Type.String() }) }, async function* ({ name }) {
  return `hello ${name}`;
});

/** Takes two payments, the first ones that come. */
export const account = workflow("account", { input: Type.String(), events: [Paid] }, async function* () {
  const first = yield* awaitEvent(Paid);
  const second = yield* awaitEvent(Paid);
  return [first.amount, second.amount];
});

/** Hears of payments of its order. */
export const order = workflow("order", async function* (id: string) {
  const first = yield* awaitEvent(Paid, { key: id });
  const second = yield* awaitEvent(Paid, { key: id });
  return [first.amount, second.amount];
});

/** What an opening triggers. */
export const welcome = workflow("welcome", { triggers: [Opened] }, async function* ({ name }: { name: string }) {
  return `welcome ${name}`;
});

/** Keeps what it is sent, and never ends. */
export const idle = workflow("idle", { events: [Paid] }, async function* () {
  yield* awaitEvent(Opened);
});
