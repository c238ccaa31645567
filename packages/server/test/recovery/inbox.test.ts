/** What lies in the durable inbox of a store that only one process opens: nobody but a recovery looks for it. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { awaitEvent, event, Type, workflow } from "@wovyr/sdk";
import { encodePayload } from "@wovyr/sdk/internal";
import { createOrchestrator, memoryStore } from "../../src/index.ts";
import { logLines } from "./log-lines.ts";

const Go = event("go", Type.String());
const waiting = workflow("waiting", { events: [Go] }, async function* () {
  return yield* awaitEvent(Go);
});

test("a message that no process had delivered when it died is delivered by the next one, to a run that does nothing", async () => {
  const store = memoryStore();
  const options = { workflows: [waiting], store, turnTimeout: false } as const;
  const before = await createOrchestrator(options);
  const { id, runId: run } = await before.client.start(waiting);
  await before.close();
  const opened = await store.open({ now: () => 0, log: logLines().log });
  const row = await opened.getInstance({ tenant: "default", run, shard: undefined });
  assert.ok(row);
  const fact = { type: "EventReceived", message: "m", name: "go", payload: encodePayload("done") };
  await opened.post([{ tenant: "default", run, shard: row.shard, message: "m", fact: JSON.stringify(fact) }]);
  await opened.close();
  const next = await createOrchestrator(options);
  assert.equal(await next.client.handle(waiting, id).result({ timeout: "10s" }), "done");
  await next.close();
});
