/** Workers and orchestrators in processes of their own, over Postgres, that are killed and frozen. */
import assert from "node:assert/strict";
import { once } from "node:events";
import { test } from "node:test";
import { createWorker } from "@wovyr/sdk/worker";
import { until } from "../recovery/until.ts";
import { destroyed, place } from "./processes.ts";
import { many, recorded, single, work } from "./work.ts";

const limit = 120_000;
const silent = { debug: () => {}, info: () => {}, warn: () => {}, error: () => {} };

test("H059 a worker that is killed in the middle loses its task, which is counted, and another one does it", {
  timeout: limit,
}, async (context) => {
  const at = await place(context);
  await at.orchestrator();
  const first = await at.worker("first");
  const run = await at.client.start(single, { n: 1, milliseconds: 2_000 });
  await until("the task has begun", () => at.lines("began 1 1 first").length === 1);
  await destroyed(first);
  await at.worker("second");
  assert.deepEqual(await run.result(), { n: 1, worker: "second" });
  assert.deepEqual(at.lines("began"), ["began 1 1 first", "began 1 1 second"]);
  const lost = [];
  for await (const { type, data } of run.history()) if (type === "AttemptLost") lost.push(data);
  assert.equal(lost.length, 1);
  const states = new Map<string, string>();
  for await (const { id, state } of at.client.workers()) states.set(id, state);
  assert.equal(states.get("first"), "Lost");
  assert.ok(["Idle", "Busy"].includes(states.get("second") ?? ""), states.get("second"));
});

test("H063 a worker that was frozen beyond its lease and wakes is refused: there is one result, of the other one", {
  timeout: limit,
}, async (context) => {
  const at = await place(context);
  await at.orchestrator();
  const first = await at.worker("first");
  const run = await at.client.start(single, { n: 1, milliseconds: 1_000 });
  await until("the task has begun", () => at.lines("began 1 1 first").length === 1);
  first.kill("SIGSTOP");
  await at.worker("second");
  assert.deepEqual(await run.result(), { n: 1, worker: "second" });
  first.kill("SIGCONT");
  const next = await at.client.start(single, { n: 2, milliseconds: 0 });
  await next.result();
  await until("the one that woke has seen to its task", async () => {
    for await (const worker of at.client.workers()) if (worker.id === "first") return worker.state === "Idle" && worker.running === 0;
    return false;
  });
  const completed = [];
  for await (const { type, data } of run.history()) if (type === "ActivityCompleted") completed.push(data.output);
  assert.deepEqual(completed, [{ n: 1, worker: "second" }]);
});

test("an orchestrator that is killed while workers have tasks loses nothing of them: no attempt is lost, each is made once", {
  timeout: limit,
}, async (context) => {
  const at = await place(context);
  const orchestrator = await at.orchestrator();
  await at.worker("first", { lease: 30_000 });
  const runs = [];
  for (let n = 0; n < 5; n += 1) runs.push(await at.client.start(single, { n, milliseconds: 1_500 }));
  const waiting = await at.client.start(single, { n: 99, milliseconds: 0 });
  await until("the tasks have begun", () => at.lines("began").length >= 6);
  await destroyed(orchestrator);
  await until("the tasks have ended without an orchestrator", () => at.lines("ended").length >= 6);
  await at.orchestrator();
  for (const [n, run] of runs.entries()) assert.deepEqual(await run.result(), { n, worker: "first" });
  await waiting.result();
  assert.equal(at.lines("began").length, 6);
  for (const run of runs) for await (const { type } of run.history()) assert.notEqual(type, "AttemptLost");
});

test("a worker that is told to stop hands its tasks back at once", { timeout: limit }, async (context) => {
  const at = await place(context);
  await at.orchestrator();
  const first = await at.worker("first", { lease: 600_000 });
  const run = await at.client.start(single, { n: 1, milliseconds: 60_000 });
  await until("the task has begun", () => at.lines("began 1 1 first").length === 1);
  first.kill("SIGTERM");
  await once(first, "exit");
  const [shown] = (await run.describe()).activities;
  assert.deepEqual([shown?.state, shown?.losses], ["Running", undefined]);
  const quick = work.implement(async ({ n }) => ({ n, worker: "second" }));
  const second = await createWorker({ url: at.url, activities: [quick], log: silent });
  const working = second.run();
  assert.deepEqual(await run.result(), { n: 1, worker: "second" });
  await second.stop();
  await working;
  const states = [];
  for await (const { id, state } of at.client.workers()) if (id === "first") states.push(state);
  assert.deepEqual(states, ["Stopped"]);
});

test("10,000 tasks on four workers: each is made once and recorded once", { timeout: limit }, async (context) => {
  const at = await place(context);
  await at.orchestrator();
  const workers = await Promise.all(
    ["a", "b", "c", "d"].map((id) =>
      createWorker({ url: at.url, id, activities: [recorded(at.record, id)], concurrency: 100, log: silent }),
    ),
  );
  const working = workers.map((worker) => worker.run());
  const runs = await Promise.all(Array.from({ length: 10 }, () => at.client.start(many, 1_000)));
  const expected = [...Array(1_000).keys()];
  for (const run of runs) assert.deepEqual(await run.result({ timeout: "2m" }), expected);
  assert.equal(at.lines("began").length, 10_000);
  for (const run of runs) {
    let completed = 0;
    for await (const { type } of run.history()) if (type === "ActivityCompleted") completed += 1;
    assert.equal(completed, 1_000);
  }
  assert.deepEqual(await at.client.queues(), []);
  await Promise.all(workers.map((worker) => worker.stop()));
  await Promise.all(working);
});
