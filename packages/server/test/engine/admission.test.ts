import assert from "node:assert/strict";
import { test } from "node:test";
import { activity, awaitEvent, event, workflow } from "@wovyr/sdk";
import { memoryStore } from "@wovyr/server";
import { createFaultyStore, FaultPlan, Gate } from "@wovyr/testing";
import { createOrchestrator } from "../../src/index.ts";
import { macrotasks } from "./case.ts";

const go = event("go");
const waiter = workflow("waiter", async function* () {
  yield* awaitEvent(go);
});

test("starts are refused while the store takes too long to write, and what belongs to runs is not", async () => {
  const plan = new FaultPlan();
  const store = createFaultyStore(memoryStore(), plan);
  await using orchestrator = await createOrchestrator({ workflows: [waiter], store, limits: { commitDelay: 20 } });
  const { client } = orchestrator;
  const [old, other] = [await client.start(waiter), await client.start(waiter)];
  const held = plan.hold("commit");
  const told = old.send(go);
  await held.reached;
  for (const began = performance.now(); performance.now() < began + 30; ) await macrotasks(1);
  await assert.rejects(client.start(waiter), { code: "OVERLOADED", message: /a turn has waited for \d+ ms/, retryAfter: 1_000 });
  const cancelled = other.cancel();
  held.release();
  await Promise.all([told, cancelled, old.result()]);
  await client.start(waiter);
});

test("starts are refused while more activities wait than may, and are taken again when there is room", async () => {
  const gate = new Gate<void, void>();
  const work = activity("work", gate.body);
  const worker = workflow("worker", async function* () {
    yield* work();
  });
  const limits = { activities: 1, waitingActivities: 2 };
  await using orchestrator = await createOrchestrator({ workflows: [worker], store: memoryStore(), limits, shutdownGrace: 0 });
  const { client } = orchestrator;
  const runs = [];
  for (let n = 0; n < 4; n += 1) runs.push(await client.start(worker));
  await macrotasks();
  await assert.rejects(client.start(worker), { code: "OVERLOADED", message: /3 activities wait for a place/ });
  for (let n = 0; n < 4; n += 1) {
    const { key } = await gate.arrived();
    gate.open(key, undefined);
  }
  await Promise.all(runs.map((run) => run.result()));
  await client.start(worker);
});
