/** Queries, updates, waking and events that go with a start: over HTTP and in the orchestrator's own process. */
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { awaitEvent, condition, event, query, sleep, Type, update, WovyrError, workflow } from "@wovyr/sdk";
import { type Client, createClient, delivery } from "@wovyr/sdk/client";
import { createOrchestrator, memoryStore, type Orchestrator } from "../../src/index.ts";

const Item = event("item", Type.Date());
const Open = event("open");
const Items = query("items", { input: Type.Object({ from: Type.Number() }), output: Type.Array(Type.Date()) });
const Nothing = query("nothing");
const Add = update("add", { input: Type.Number(), output: Type.Number() });
const Stuck = update("stuck");

const box = workflow("box", { variables: () => ({ items: [] as Date[], sum: 0 }) }, async function* (_: undefined, ctx) {
  let open = false;
  ctx.on(Item, (item) => {
    ctx.variables.items.push(item);
  });
  ctx.onQuery(Items, ({ from }) => ctx.variables.items.slice(from));
  ctx.onQuery(Nothing, () => undefined);
  ctx.onUpdate(Add, {
    validate: (n) => {
      if (n > 100) throw new RangeError("too many");
    },
    handler: (n) => {
      if (n === 13) throw Object.assign(new RangeError("unlucky"), { by: new Date(0) });
      ctx.variables.sum += n;
      return ctx.variables.sum;
    },
  });
  ctx.onUpdate(Stuck, {
    handler: async function* () {
      yield* condition(() => open);
    },
  });
  yield* awaitEvent(Open);
  open = true;
  yield* condition(() => ctx.handlersFinished);
  yield* sleep("30 days");
  return ctx.variables.sum;
});

let orchestrator: Orchestrator;
let url: string;
before(async () => {
  orchestrator = await createOrchestrator({ workflows: [box], store: memoryStore() });
  url = await orchestrator.listen({ port: 0 });
});
after(() => orchestrator.close());

const code = (wanted: string) => (error: unknown) => error instanceof WovyrError && error.code === wanted;
const ways: readonly (readonly [string, () => Client])[] = [
  ["over HTTP", () => createClient({ url })],
  ["in process", () => orchestrator.client],
];

for (const [way, client] of ways)
  test(`a run is told, asked, changed and woken ${way}`, async () => {
    const date = new Date("2026-01-02T03:04:05Z");
    const start = () => client().start(box, undefined, { id: `box ${way}`.replaceAll(" ", "-"), event: delivery(Item, date) });
    const run = await start();
    assert.equal((await start()).runId, run.runId, "the second event goes to the run that is open");
    assert.deepEqual(await run.query(Items, { from: 0 }), [date, date]);
    assert.deepEqual(await run.query(Items, { from: 1 }), [date]);
    assert.equal(await run.query(Nothing), undefined);
    assert.equal(await run.update(Add, 5, { idempotencyKey: "five" }), 5);
    assert.equal(await run.update(Add, 5, { idempotencyKey: "five" }), 5);
    assert.equal(await run.update(Add, 1), 6);
    await assert.rejects(run.update(Add, 101), (error) => code("UPDATE_REJECTED")(error) && /too many/.test(String(error)));
    await assert.rejects(run.update(Add, "x" as never), code("INVALID_INPUT"));
    await assert.rejects(run.query(query("other")), code("HANDLER_NOT_FOUND"));
    await assert.rejects(run.update(Add, 13), (error) => {
      const cause = (error as Error).cause as Error & { by: Date };
      return code("UPDATE_FAILED")(error) && cause instanceof RangeError && cause.by instanceof Date;
    });
    const stuck = run.update(Stuck);
    await run.send(Open);
    assert.equal(await stuck, undefined);
    await run.wake();
    assert.equal(await run.result(), 6);
    assert.deepEqual(await run.query(Items, { from: 0 }), [date, date], "a closed run answers too");
    await assert.rejects(run.update(Add, 1), code("INSTANCE_CLOSED"));
  });

test("an update that is still at work is answered 202, and its key waits on", async () => {
  await orchestrator.client.start(box, undefined, { id: "raw" });
  const ask = (wait: string) =>
    fetch(`${url}/v1/instances/raw/updates/stuck?wait=${wait}`, { method: "POST", headers: { "idempotency-key": "s-1" } });
  const first = await ask("10ms");
  assert.equal(first.status, 202);
  assert.deepEqual({ ...((await first.json()) as object), runId: "" }, { id: "raw", runId: "", updateId: "s-1", status: "Open" });
  const second = ask("30s");
  await orchestrator.client.handle("raw").send(Open);
  assert.equal((await second).status, 200);
  assert.deepEqual(
    { ...((await (await ask("1s")).json()) as object), runId: "" },
    { id: "raw", runId: "", updateId: "s-1", status: "Completed", output: null },
  );
  const plain = await fetch(`${url}/v1/instances/raw/queries/nothing`, { method: "POST" });
  assert.deepEqual(await plain.json(), { output: null });
});

for (const [way, client] of ways)
  test(`the runs of an id, and the history of an older one, are listed ${way}`, async () => {
    const id = `again-${way}`.replaceAll(" ", "-");
    const first = await client().start(box, undefined, { id });
    await first.terminate();
    const second = await client().start(box, undefined, { id });
    const runs: string[] = [];
    for await (const run of second.runs()) runs.push(`${run.runId} ${run.status}`);
    assert.deepEqual(runs, [`${second.runId} Waiting`, `${first.runId} Terminated`]);
    const types: string[] = [];
    for await (const { type } of second.history({ runId: first.runId })) types.push(type);
    assert.equal(types.at(-1), "InstanceTerminated");
    await assert.rejects(client().handle("nobody").runs()[Symbol.asyncIterator]().next(), code("INSTANCE_NOT_FOUND"));
  });

for (const [way, client] of ways)
  test(`keys that no header can carry are refused ${way}`, async () => {
    for (const idempotencyKey of ["", "\u00e4", "a b", "x".repeat(256)]) {
      await assert.rejects(client().start(box, undefined, { idempotencyKey }), code("INVALID_OPTION"));
      const run = client().handle(box, "nobody");
      await assert.rejects(run.send(Open, undefined, { idempotencyKey }), code("INVALID_OPTION"));
      await assert.rejects(run.update(Add, 1, { idempotencyKey }), code("INVALID_OPTION"));
    }
  });
