import assert from "node:assert/strict";
import { after, test } from "node:test";
import { setTimeout as pause } from "node:timers/promises";
import { type AnyWorkflow, activity, all, awaitEvent, event, sleep, step, Type, workflow } from "@wovyr/sdk";
import { createOrchestrator, memoryStore, type Orchestrator } from "../../src/index.ts";
import { logLines } from "./log-lines.ts";
import { until } from "./until.ts";

const orchestrators: Orchestrator[] = [];
after(() => Promise.all(orchestrators.map((orchestrator) => orchestrator.close())));

/** An orchestrator; whoever had the store before is taken for dead. */
async function host(store: ReturnType<typeof memoryStore>, ...workflows: readonly AnyWorkflow[]): Promise<Orchestrator> {
  const orchestrator = await createOrchestrator({ workflows, store, log: logLines().log, turnTimeout: false, shutdownGrace: 0 });
  orchestrators.push(orchestrator);
  return orchestrator;
}

const parked = (orchestrator: Orchestrator, id: string) =>
  until("it is parked", async () => (await orchestrator.client.handle(id).describe()).status === "Parked");

test("H059 a parked run whose activity died with its process runs it again when its code is mended", async () => {
  const store = memoryStore();
  let executions = 0;
  const work = activity("work", async (_: unknown, ctx) => {
    executions += 1;
    if (executions === 1) await pause(60_000, undefined, { signal: ctx.signal });
    return "done";
  });
  const good = workflow("changing", async function* () {
    return yield* work(null);
  });
  const changed = workflow("changing", async function* () {
    yield* sleep(1);
    return yield* work(null);
  });
  await (await host(store, good)).client.start(good, undefined, { id: "c" });
  await until("the activity runs", () => executions === 1);
  await parked(await host(store, changed), "c");
  const mended = await host(store, good);
  assert.equal(await mended.client.handle(good, "c").result({ timeout: "5s" }), "done");
  assert.equal(executions, 2);
  const types: string[] = [];
  for await (const { type } of mended.client.handle("c").history()) types.push(type);
  assert.deepEqual(types, [
    "InstanceStarted",
    "ActivityScheduled",
    "Parked",
    "Resumed",
    "AttemptLost",
    "ActivityCompleted",
    "InstanceCompleted",
  ]);
});

test("H059 what an activity of a parked run returned is not lost, and the activity is not run again", async () => {
  const store = memoryStore();
  const Poke = event("poke", Type.Null());
  let executions = 0;
  let mistaken = true;
  let open = (_: string) => {};
  const result = new Promise<string>((resolve) => {
    open = resolve;
  });
  const work = activity("work", async () => {
    executions += 1;
    return result;
  });
  const both = workflow("both", async function* () {
    const [value] = yield* all([
      work(undefined),
      async function* () {
        yield* awaitEvent(Poke);
        if (mistaken) await pause(20);
        yield* step("after", async () => {});
      },
    ]);
    return value;
  });
  const first = await host(store, both);
  const handle = await first.client.start(both, undefined, { id: "b" });
  await until("the activity runs", () => executions === 1);
  void handle.send(Poke, null).catch(() => {});
  await parked(first, "b");
  open("kept");
  await pause(20);
  await first.close();
  mistaken = false;
  const second = await host(store, both);
  assert.equal(await second.client.handle(both, "b").result({ timeout: "5s" }), "kept");
  assert.equal(executions, 1);
});

test("H060 an activity and a run that take many times the lease are entered once", async () => {
  const lease = 300;
  let entries = 0;
  let executions = 0;
  const long = activity("long", async () => {
    executions += 1;
    await pause(lease * 2);
  });
  const series = workflow("series", async function* () {
    entries += 1;
    for (let index = 0; index < 4; index += 1) yield* long(undefined);
    return "done";
  });
  const orchestrator = await createOrchestrator({
    workflows: [series],
    store: memoryStore(),
    log: logLines().log,
    turnTimeout: false,
    lease,
  });
  orchestrators.push(orchestrator);
  assert.equal(await orchestrator.client.execute(series), "done");
  assert.deepEqual([entries, executions], [1, 4]);
});
