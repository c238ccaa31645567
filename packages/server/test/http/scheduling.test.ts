/** Priorities, singletons, debounced starts and runs that wait for their turn: over HTTP and in the orchestrator's own process. */
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { activity, awaitEvent, event, Type, workflow } from "@wovyr/sdk";
import { type Client, createClient } from "@wovyr/sdk/client";
import { createOrchestrator, memoryStore, type Orchestrator, priority } from "../../src/index.ts";

const Go = event("go");
const Input = Type.Object({ id: Type.String() });

const single = workflow("single", { input: Input, singleton: { key: ({ id }) => id } }, async function* () {
  yield* awaitEvent(Go);
  return "single";
});
const quiet = workflow("quiet", { input: Input, debounce: { key: ({ id }) => id, period: "200ms" } }, async function* ({ id }) {
  yield* awaitEvent(Go);
  return id;
});
const narrow = workflow("narrow", { concurrency: { limit: 1 } }, async function* () {
  yield* awaitEvent(Go);
  return "narrow";
});
const hold = activity("hold", { concurrency: { limit: 1, key: (id: string) => id } }, async (_: string, { signal }) => {
  await new Promise((end) => signal.addEventListener("abort", end));
});
const holder = workflow("holder", async function* () {
  yield* hold("k");
});

let orchestrator: Orchestrator;
let url: string;
before(async () => {
  orchestrator = await createOrchestrator({
    workflows: [single, quiet, narrow, holder],
    store: memoryStore(),
    scheduling: priority(),
    tenantLimits: { concurrency: 100 },
    shutdownGrace: 1,
  });
  url = await orchestrator.listen({ port: 0 });
});
after(() => orchestrator.close());

const post = (path: string, body: object) =>
  fetch(`${url}/v1/workflows/${path}/instances`, {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: JSON.stringify(body),
  });

for (const [where, clientOf] of [
  ["over HTTP", () => createClient({ url })],
  ["in process", () => orchestrator.client],
] as [string, () => Client][]) {
  test(`${where}: a singleton is returned while it is open`, async () => {
    const client = clientOf();
    const first = await client.start(single, { id: where.replaceAll(" ", "-") });
    const again = await client.start(single, { id: where.replaceAll(" ", "-") });
    assert.deepEqual([again.id, again.runId], [first.id, first.runId]);
    await first.send(Go);
    assert.equal(await again.result(), "single");
  });

  test(`${where}: debounced starts are one run`, async () => {
    const client = clientOf();
    const [first, second] = [await client.start(quiet, { id: where }), await client.start(quiet, { id: where })];
    assert.equal(second.runId, first.runId);
    await first.send(Go);
    assert.equal(await second.result(), where);
  });

  test(`${where}: a run shows that it waits for its turn, and an attempt what it waits for`, async () => {
    const client = clientOf();
    const [first, second] = [await client.start(narrow), await client.start(narrow)];
    const described = await second.describe();
    assert.deepEqual([described.status, described.waitingFor], ["Scheduled", { kind: "concurrency", of: "narrow" }]);
    for (const run of [first, second]) {
      await run.send(Go);
      assert.equal(await run.result(), "narrow");
    }
    const [holds, waits] = [await client.start(holder), await client.start(holder, undefined, { priority: "high" })];
    const [pending] = (await waits.describe()).activities;
    assert.deepEqual([pending?.priority, pending?.waitingFor], ["high", { kind: "concurrency", of: "hold", key: "k" }]);
    await waits.terminate();
    await holds.terminate();
  });

  test(`${where}: a priority that is none is refused`, async () => {
    await assert.rejects(clientOf().start(narrow, undefined, { priority: "urgent" as never }), { code: "INVALID_OPTION" });
  });
}

test("a start of a singleton that is open is answered with 200, and an id of its own is refused", async () => {
  const made = await post("single", { input: { id: "x" } });
  assert.equal(made.status, 201);
  const again = await post("single", { input: { id: "x" }, priority: "low" });
  assert.equal(again.status, 200);
  const { id } = (await again.json()) as { id: string };
  assert.equal(id, "singleton~single~x");
  const refused = await post("single", { input: { id: "x" }, id: "mine" });
  assert.deepEqual([refused.status, ((await refused.json()) as { code: string }).code], [400, "INVALID_OPTION"]);
  const wrong = await post("single", { input: { id: "x" }, priority: "urgent" });
  assert.deepEqual([wrong.status, ((await wrong.json()) as { code: string }).code], [422, "SCHEMA_VIOLATION"]);
  await orchestrator.client.handle(id).terminate();
});
