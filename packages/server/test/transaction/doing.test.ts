/** What an orchestrator does of what applications asked for, through crashes and runs that go on as others. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { awaitEvent, workflow } from "@wovyr/sdk";
import { StoreUnavailableError } from "../../src/engine/ports/store.ts";
import { requestPause } from "../../src/engine/requests.ts";
import { publishIn, sendIn, startIn } from "../../src/transaction.ts";
import { until } from "../recovery/until.ts";
import { type AppClient, stage } from "./stage.ts";
import { account, echo, Opened, order, Paid, welcome } from "./workflows.ts";

/** Takes one payment in each run, and tells all of them in the end. */
const chain = workflow("chain", { events: [Paid] }, async function* (taken: readonly number[], ctx): AsyncGenerator<
  unknown,
  readonly number[],
  never
> {
  const { amount } = yield* awaitEvent(Paid);
  const all = [...taken, amount];
  if (all.length < 3) yield* ctx.continueAsNew(all);
  return all;
});

async function all<T>(items: AsyncIterable<T>): Promise<T[]> {
  const found: T[] = [];
  for await (const item of items) found.push(item);
  return found;
}

const never = () => Promise.reject(new StoreUnavailableError("not now"));

test("a request that was done and could not be removed is done again after a crash, and nothing of it twice", async (context) => {
  const { clients, host, through, count, errors } = await stage(context);
  const { transaction } = clients[0] as AppClient;
  const workflows = [account, chain, order, welcome];
  const first = await host(workflows, { store: through(({ list }) => ({ list, drop: never })) });
  const waiting = await first.client.start(order, "o");
  await first.client.start(chain, [], { id: "chain" });
  await transaction(async ({ tx }) => {
    await startIn(tx, account, "a", { id: "a" });
    await sendIn(tx, "a", Paid, { amount: 1 });
    await sendIn(tx, "chain", Paid, { amount: 10 });
    await publishIn(tx, Paid, { amount: 100 }, { key: "o" });
    await publishIn(tx, Opened, { name: "Ada" });
  });
  const chained = first.client.handle(chain, "chain");
  await until("the chain has gone on", async () => (await chained.describe()).runId !== "" && (await all(chained.runs())).length === 2);
  const welcomes = async () => (await all(first.client.list({ workflow: welcome }))).length;
  await until("the welcome was triggered", async () => (await welcomes()) === 1);
  await until(
    "the order has heard",
    async () => (await waiting.describe()).bufferedEvents !== undefined && (await count("publications")) === 2,
  );
  assert.equal(await count("requests"), 5);
  await first.close();
  const { client } = await host(workflows);
  await until("every request is removed", async () => (await count("requests")) === 0);
  await client.handle(account, "a").send(Paid, { amount: 2 });
  assert.deepEqual(await client.handle(account, "a").result({ timeout: "10s" }), [1, 2]);
  for (const amount of [20, 30]) await client.handle(chain, "chain").send(Paid, { amount });
  assert.deepEqual(await client.handle(chain, "chain").result({ timeout: "10s" }), [10, 20, 30]);
  await client.publish(Paid, { amount: 200 }, { key: "o" });
  assert.deepEqual(await client.handle(order, waiting.id).result({ timeout: "10s" }), [100, 200]);
  assert.equal((await all(client.list({ workflow: welcome }))).length, 1);
  assert.deepEqual(errors, []);
});

test("an event that was sent to a run reaches the run that went on from it meanwhile", async (context) => {
  const { clients, host, through } = await stage(context);
  const { transaction } = clients[0] as AppClient;
  let open = () => {};
  const gate = new Promise<void>((resolve) => (open = resolve));
  const store = through(({ list, drop }) => ({ drop, list: (...asked) => gate.then(() => list(...asked)) }));
  const { client } = await host([chain], { store });
  await client.start(chain, [], { id: "chain" });
  await transaction(({ tx }) => sendIn(tx, "chain", Paid, { amount: 2 }));
  await client.handle(chain, "chain").send(Paid, { amount: 1 });
  await until("the chain has gone on", async () => (await all(client.handle(chain, "chain").runs())).length === 2);
  open();
  await until("it has gone on again", async () => (await all(client.handle(chain, "chain").runs())).length === 3);
  await client.handle(chain, "chain").send(Paid, { amount: 3 });
  assert.deepEqual(await client.handle(chain, "chain").result({ timeout: "10s" }), [1, 2, 3]);
});

test("what is said to a run before it was found comes after its start", async (context) => {
  const { clients, host, through } = await stage(context);
  const { transaction } = clients[0] as AppClient;
  const store = through(({ drop }) => ({ drop, list: async () => [] }));
  const { client } = await host([account], { store });
  await transaction(({ tx }) => startIn(tx, account, "a", { id: "a" }));
  const handle = client.handle(account, "a");
  assert.equal((await handle.describe()).status, "Created");
  await handle.send(Paid, { amount: 1 });
  await handle.send(Paid, { amount: 2 });
  assert.deepEqual(await handle.result({ timeout: "10s" }), [1, 2]);
  const [event] = await all(handle.history());
  assert.equal(event?.type, "InstanceStarted");
});

test("a run of a workflow that is not here waits for an orchestrator that has it; a paused run records an event at once", async (context) => {
  const { clients, host, count } = await stage(context);
  const { transaction } = clients[0] as AppClient;
  const first = await host([account]);
  await first.client.start(account, "a", { id: "a" });
  await first.client.handle(account, "a").pause();
  await transaction(async ({ tx }) => {
    await startIn(tx, echo, { name: "Ada" }, { id: "e" });
    await sendIn(tx, "a", Paid, { amount: 1 });
  });
  await until("both are taken", async () => (await count("requests")) === 0);
  assert.equal(await count("inbox"), 1);
  await first.close();
  const { client } = await host([account, echo]);
  assert.equal(await client.handle(echo, "e").result({ timeout: "10s" }), "hello Ada");
  await client.handle(account, "a").resume();
  await client.handle(account, "a").send(Paid, { amount: 2 });
  assert.deepEqual(await client.handle(account, "a").result({ timeout: "10s" }), [1, 2]);
});

test("what can never be done is told in the log, and goes; what fails for now does not stop the rest", async (context) => {
  const { clients, host, through, count, errors } = await stage(context);
  const { transaction } = clients[0] as AppClient;
  let open = () => {};
  const gate = new Promise<void>((resolve) => (open = resolve));
  const store = through(({ list, drop }) => ({ drop, list: (...asked) => gate.then(() => list(...asked)) }));
  const { client } = await host([account, echo], { store });
  await client.start(account, "a", { id: "a" });
  await transaction(async ({ tx }) => {
    await sendIn(tx, "a", Paid, { amount: 1 }, { idempotencyKey: "too-late" });
    await startIn(tx, echo, { name: "Ada" }, { id: "e" });
  });
  await client.handle(account, "a").terminate();
  open();
  assert.equal(await client.handle(echo, "e").result({ timeout: "10s" }), "hello Ada");
  await until("every request is gone", async () => (await count("requests")) === 0);
  assert.equal(errors.length, 1);
  assert.match(String(errors[0]), /came to nothing.*message:too-late.*INSTANCE_CLOSED/);
});

test("an orchestrator that runs begins what was started within its pause", async (context) => {
  const { clients, host } = await stage(context);
  const { client } = await host([echo]);
  const { transaction } = clients[0] as AppClient;
  const times: number[] = [];
  for (let n = 0; n < 20; n++) {
    await transaction(({ tx }) => startIn(tx, echo, { name: "Ada" }, { id: `e-${n}` }));
    const committed = performance.now();
    await client.handle(echo, `e-${n}`).result({ timeout: "10s" });
    times.push(performance.now() - committed);
  }
  times.sort((a, b) => a - b);
  context.diagnostic(
    `commit to result: median ${times[10]?.toFixed(0)} ms, longest ${times[19]?.toFixed(0)} ms, of ${requestPause} ms at most and the work`,
  );
  assert.ok((times[10] as number) < requestPause + 500, `${times[10]} ms`);
});
