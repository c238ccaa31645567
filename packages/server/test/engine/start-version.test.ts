/** Which version of a workflow a start gets, in the orchestrator's own process and over HTTP. */
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { Type, WovyrError, workflow } from "@wovyr/sdk";
import { type Client, createClient } from "@wovyr/sdk/client";
import { createOrchestrator, memoryStore, type Orchestrator } from "@wovyr/server";

const first = workflow("order", { version: "1", input: Type.Number() }, async function* (n) {
  return `first ${n}`;
});
const second = workflow("order", { version: "2", input: Type.String() }, async function* (text) {
  return `second ${text}`;
});
const gone = workflow.contract("order", { version: "0", input: Type.String(), output: Type.String() });
const unknown = workflow.contract("unknown", { output: Type.String() });
const quiet = { debug() {}, info() {}, warn() {}, error() {} };

let orchestrator: Orchestrator;
let url: string;
before(async () => {
  orchestrator = await createOrchestrator({ workflows: [first, second], store: memoryStore(), log: quiet });
  url = await orchestrator.listen({ port: 0 });
});
after(() => orchestrator.close());

const ways: Record<string, () => Client> = { "in process": () => orchestrator.client, "over HTTP": () => createClient({ url }) };
const missing = (error: unknown) => error instanceof WovyrError && error.code === "WORKFLOW_NOT_FOUND";

for (const [way, client] of Object.entries(ways)) {
  test(`a definition starts its own version ${way}, whichever was registered last`, async () => {
    assert.equal(await client().execute(first, 5), "first 5");
    assert.equal(await client().execute(second, "x"), "second x");
    const run = await client().start(first, 6);
    assert.equal(await run.result(), "first 6");
    assert.equal((await run.describe()).version, "1");
    const batch = await client().startBatch(first, [{ input: 1 }, { input: 2 }]);
    assert.deepEqual(await Promise.all(batch.map((item) => (item.ok ? item.handle.result() : item.error))), ["first 1", "first 2"]);
  });

  test(`a definition whose version is not registered starts the one that was registered last, ${way}`, async () => {
    assert.equal(await client().execute(gone, "x"), "second x");
    assert.equal(await (await client().start(gone, "y")).result(), "second y");
    const batch = await client().startBatch(gone, [{ input: "a" }, { input: "b", version: "0" }, { input: "c" }]);
    assert.deepEqual(await Promise.all(batch.map((item) => (item.ok ? item.handle.result() : missing(item.error)))), [
      "second a",
      true,
      "second c",
    ]);
    await assert.rejects(client().start(unknown), missing);
  });

  test(`a start that names a version gets that one or none, ${way}`, async () => {
    assert.equal(await client().execute(second, 7 as never, { version: "1" }), "first 7");
    await assert.rejects(client().start(first, 7, { version: "9" }), missing);
  });

  test(`a client that was upgraded between two tries of a start gets the run that there is, ${way}`, async () => {
    const loose = (version: string) => workflow.contract("order", { version });
    const key = { idempotencyKey: `k ${way}`.replaceAll(" ", "-"), version: "2" };
    const run = await client().start(second, "x", key);
    const again = await client().start(loose("3"), "x" as never, { idempotencyKey: key.idempotencyKey });
    assert.equal(again.runId, run.runId);
  });
}

test("a start by name over HTTP takes the version that was registered last, unless its body names one", async () => {
  const start = async (body: object) => {
    const response = await fetch(`${url}/v1/workflows/order/instances?wait=10s`, {
      method: "POST",
      headers: { "content-type": "application/json" },
      body: JSON.stringify(body),
    });
    return ((await response.json()) as { output: unknown }).output;
  };
  assert.equal(await start({ input: "x" }), "second x");
  assert.equal(await start({ input: 1, version: "1" }), "first 1");
});
