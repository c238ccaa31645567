import assert from "node:assert/strict";
import { test } from "node:test";
import { child, TimeoutError, workflow } from "@wovyr/sdk";
import { createOrchestrator, memoryStore } from "../../src/index.ts";

const missing = workflow("missing", async function* () {});
const parent = workflow("parent", async function* () {
  yield* child(missing);
});
const awaiting = workflow("awaiting", async function* () {
  await new Promise((resolve) => setTimeout(resolve, 1));
});

async function hosted() {
  const lines: string[] = [];
  const note = (message: string) => lines.push(message);
  const log = { debug: note, info: note, warn: note, error: note };
  return { lines, orchestrator: await createOrchestrator({ workflows: [parent, awaiting], store: memoryStore(), log }) };
}

test("a child whose workflow is not registered waits, and the log says for what", async () => {
  const { lines, orchestrator } = await hosted();
  const handle = await orchestrator.client.start(parent);
  await assert.rejects(handle.result({ timeout: 100 }), TimeoutError);
  await orchestrator.close();
  assert.ok(lines.some((line) => line.includes('child workflow "missing"') && line.includes("not registered")));
});

test("a result that does not come in time says that the run is parked", async () => {
  const { orchestrator } = await hosted();
  const handle = await orchestrator.client.start(awaiting);
  await assert.rejects(handle.result({ timeout: 100 }), (error: TimeoutError) => error.message.includes("Parked"));
  await orchestrator.close();
});
