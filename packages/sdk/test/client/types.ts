/** What a program with a client compiles to, and the mistakes that must not compile; nothing here runs. */

import { type Client, createClient, type Handle, type InstanceDescription } from "../../src/client.ts";
import { event, Type, workflow } from "../../src/index.ts";

type Same<A, B> = (<T>() => T extends A ? 1 : 2) extends <T>() => T extends B ? 1 : 2 ? true : false;
const is = <_ extends true>() => {};

const Order = Type.Object({ id: Type.String(), note: Type.Optional(Type.String()) });
const fulfil = workflow("fulfil", { input: Order, output: Type.Number() }, async function* () {
  return 1;
});
const tick = workflow("tick", async function* () {
  return new Date();
});
const named = workflow("named", async function* (name: string) {
  return name.length;
});
const Paid = event("paid", Type.Object({ amount: Type.Number() }));
const Poked = event("poked");

export async function program(
  client: Client = createClient({ url: "http://127.0.0.1:7420", apiKey: "k", retry: { maxAttempts: 3, maxDuration: "1m" } }),
) {
  const handle = await client.start(
    fulfil,
    { id: "a" },
    { id: "order-1", delay: "5m", attributes: { at: new Date(), tags: ["a"] }, onConflict: "return" },
  );
  is<Same<typeof handle, Handle<number>>>();
  is<Same<Awaited<ReturnType<typeof handle.result>>, number>>();
  is<Same<Awaited<ReturnType<typeof handle.describe>>, InstanceDescription>>();
  const at = await client.execute(tick);
  is<Same<typeof at, Date>>();
  const length = await client.execute(named, "x", { startAt: "2030-01-01T00:00:00Z" });
  is<Same<typeof length, number>>();
  const again = client.handle(fulfil, "order-1");
  is<Same<typeof again, Handle<number>>>();
  const unknown = client.handle("order-1");
  is<Same<typeof unknown, Handle<unknown>>>();
  await handle.send(Paid, { amount: 1 }, { idempotencyKey: "k" });
  await handle.send(Poked);
  const { delivered, started } = await client.publish(Paid, { amount: 1 }, { key: "order-1", idempotencyKey: "k" });
  is<Same<typeof delivered, number>>();
  await client.start(tick, undefined, { id: started[0]?.runId });
  await client.publish(Poked);
  await handle.cancel({ mode: "immediate", reason: "r" });
  const [first] = await client.startBatch(fulfil, [{ input: { id: "a" }, idempotencyKey: "k" }]);
  if (first?.ok) is<Same<typeof first.handle, Handle<number>>>();
  await client.startBatch(tick, [{}, { id: "a" }]);
  for await (const run of client.list({ workflow: fulfil, status: ["Failed", "TimedOut"], attributes: { size: 3 } }))
    is<Same<typeof run.startedAt, Date>>();
  for await (const item of handle.stream()) is<Same<typeof item.id, string>>();

  // @ts-expect-error an input of another shape
  await client.start(fulfil, { id: 5 });
  // @ts-expect-error an input that is missing
  await client.start(fulfil);
  // @ts-expect-error an input that the workflow does not take
  await client.start(tick, "x");
  // @ts-expect-error an option that does not exist
  await client.start(named, "x", { prioriti: "high" });
  // @ts-expect-error a duration that is none
  await client.start(named, "x", { delay: "5 fortnights" });
  // @ts-expect-error a payload of another shape
  await handle.send(Paid, { amount: "1" });
  // @ts-expect-error a payload of another shape
  await client.publish(Paid, { amount: "1" });
  // @ts-expect-error an option that does not exist
  await client.publish(Paid, { amount: 1 }, { subject: "order-1" });
  // @ts-expect-error a payload that the event does not carry
  await handle.send(Poked, 1);
  // @ts-expect-error a status that does not exist
  client.list({ status: "Open" });
  // @ts-expect-error a mode that does not exist
  await handle.cancel({ mode: "soft" });
  // @ts-expect-error an input of another shape in a batch
  await client.startBatch(fulfil, [{ input: { id: 5 } }]);
  // @ts-expect-error an input that is missing in a batch
  await client.startBatch(fulfil, [{ id: "a" }]);
}
