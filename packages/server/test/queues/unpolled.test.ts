/** Queues in which tasks wait and that no worker polls, in virtual time. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { activity, Type, workflow } from "@wovyr/sdk";
import { type StoreProvider, StoreUnavailableError } from "@wovyr/server/internal";
import type { TestEnvironment } from "@wovyr/testing";
import { memoryStore } from "../../src/index.ts";
import { Cluster } from "../cluster/simulation.ts";
import { storeAround } from "../cluster/store-around.ts";
import { inCase } from "../engine/case.ts";

const render = activity.contract("render", { queue: "gpu", input: Type.Number(), output: Type.Number() });
const mail = activity.contract("mail", { queue: "mail", requires: ["eu"] });
const rendering = workflow("rendering", async function* (n: number) {
  return yield* render(n);
});
const mailing = workflow("mailing", async function* () {
  yield* mail();
});
const workflows = [rendering, mailing];
const line = "tasks wait in a queue that no worker polls";

const told = ({ logs }: TestEnvironment) => logs.flatMap(({ level, message, data }) => (message === line ? [{ level, ...data }] : []));
const said = (env: TestEnvironment) => told(env).map((each) => (each as { queue?: string }).queue);
/** One minute after the other: what is due between them happens at its time. */
const minutes = async (env: TestEnvironment, count: number) => {
  for (let minute = 0; minute < count; minute += 1) await env.advance("1m");
};
/** A store in memory that tells of each call before it is made. */
const asked = (hear: (name: string) => void): StoreProvider => {
  const memory = memoryStore();
  const open: StoreProvider["open"] = async (options) =>
    storeAround(await memory.open(options), async (name, _args, call) => {
      hear(name);
      return call();
    });
  return { ...memory, open };
};
const completeAll = async (env: TestEnvironment, queue: string) => {
  for (const { token } of await env.tasks.pollTasks({ queues: [queue], worker: "w1", labels: ["eu"], max: 10 }))
    await env.tasks.completeTask(token, 1);
};

test("queues tell since when their oldest task waits, and how many workers take from them", async () => {
  await inCase({ workflows, queues: "workers" }, async (env) => {
    const began = env.now();
    const first = await env.start(rendering, 1);
    await env.advance("5s");
    const second = await env.start(rendering, 2);
    assert.deepEqual(await env.client.queues(), [{ name: "gpu", waiting: 2, leased: 0, oldestAt: began, workers: 0 }]);
    const [task] = await env.tasks.pollTasks({ queues: ["gpu"], worker: "w1", lease: 20_000 });
    const after = new Date(began.getTime() + 5_000);
    assert.deepEqual(await env.client.queues(), [{ name: "gpu", waiting: 1, leased: 1, oldestAt: after, workers: 1 }]);
    await env.tasks.heartbeatWorker("w2", { state: "Idle", queues: ["gpu", "gpu", "mail"] });
    await env.tasks.heartbeatWorker("w3", { state: "Draining", queues: ["gpu"] });
    await env.tasks.heartbeatWorker("w4", { state: "Stopped", queues: ["gpu"] });
    assert.equal((await env.client.queues())[0]?.workers, 2);
    await env.tasks.completeTask(task?.token ?? "", 1);
    await env.advance("40s");
    assert.equal((await env.client.queues())[0]?.workers, 0, "what they told holds no more");
    const [last] = await env.tasks.pollTasks({ queues: ["gpu"], worker: "w1", lease: 20_000 });
    assert.deepEqual(await env.client.queues(), [{ name: "gpu", waiting: 0, leased: 1, workers: 1 }]);
    await env.tasks.completeTask(last?.token ?? "", 2);
    assert.deepEqual([await first.result(), await second.result()], [1, 2]);
  });
});

test("a queue that no worker polls is told of once when a task has waited for a minute, and again after it was served", async () => {
  await inCase({ workflows, queues: "workers" }, async (env) => {
    for (const n of [1, 2, 3]) await env.start(rendering, n);
    await env.advance("59s");
    assert.deepEqual(told(env), []);
    await env.advance("1s");
    assert.deepEqual(told(env), [{ level: "warn", queue: "gpu", waited: 60_000 }]);
    await env.start(rendering, 4);
    await minutes(env, 60);
    assert.deepEqual(said(env), ["gpu"]);
    await env.tasks.heartbeatWorker("w1", { state: "Idle", queues: ["gpu"], lease: 90_000 });
    await minutes(env, 1);
    assert.deepEqual(said(env), ["gpu"]);
    await minutes(env, 1);
    assert.deepEqual(said(env), ["gpu", "gpu"], "a worker was there");
    await completeAll(env, "gpu");
    await minutes(env, 1);
    await env.start(rendering, 5);
    await env.advance("59s");
    assert.deepEqual(said(env), ["gpu", "gpu"]);
    await minutes(env, 2);
    assert.deepEqual(said(env), ["gpu", "gpu", "gpu"], "nothing waited there");
    await completeAll(env, "gpu");
  });
});

test("a queue with a worker is not told of, whatever its worker can do; one whose workers take no more is", async () => {
  await inCase({ workflows, queues: "workers" }, async (env) => {
    await env.start(mailing);
    await env.start(rendering, 1);
    const work = (id: string, state: "Idle" | "Draining", queue: string) =>
      env.tasks.heartbeatWorker(id, { state, queues: [queue], lease: 600_000 });
    await work("w1", "Idle", "mail");
    await work("w2", "Draining", "gpu");
    await minutes(env, 5);
    assert.deepEqual(said(env), ["gpu"]);
    await completeAll(env, "gpu");
    await completeAll(env, "mail");
  });
});

test("what waited before a restart is told of after it", async () => {
  await inCase({ workflows, queues: "workers" }, async (env) => {
    await env.start(rendering, 1);
    await env.restart();
    await env.advance("1m");
    assert.deepEqual(said(env), ["gpu"]);
    await completeAll(env, "gpu");
  });
});

test("a look that fails is made again a minute later", async () => {
  const failures: Error[] = [new StoreUnavailableError("away"), new Error("bad")];
  const store = asked((name) => {
    const failure = name === "waiting" ? failures.shift() : undefined;
    if (failure !== undefined) throw failure;
  });
  await inCase({ workflows, queues: "workers", store }, async (env) => {
    await env.start(rendering, 1);
    await minutes(env, 2);
    assert.deepEqual([failures, said(env)], [[], []]);
    const errors = env.logs.filter(({ level }) => level === "error").map(({ message }) => message);
    assert.deepEqual(errors, ["queues that no worker polls could not be looked for"]);
    await minutes(env, 1);
    assert.deepEqual(said(env), ["gpu"]);
    await completeAll(env, "gpu");
  });
});

test("a node that closes looks no more", async (context) => {
  const cluster = new Cluster(workflows);
  context.after(() => cluster.crashAll());
  const node = cluster.join();
  await cluster.until("it owns all", () => cluster.shares()[0] === 32);
  const started = cluster.ask("r", (operations) => operations.start({ workflow: "rendering", id: "r", input: 1, idempotencyKey: "r" }));
  await cluster.advance(5_000);
  await started;
  const closed = node.close();
  await cluster.advance(10_000);
  await closed;
  assert.equal(cluster.clock.next, undefined);
});

test("nothing is asked of the store while no task waits, and two things a minute while one does", async () => {
  let calls: string[] = [];
  const store = asked((name) => {
    if (name === "takers" || name === "waiting") calls.push(name);
  });
  await inCase({ workflows, queues: "workers", store }, async (env) => {
    await minutes(env, 10);
    assert.deepEqual(calls, []);
    await env.start(rendering, 1);
    await minutes(env, 3);
    assert.deepEqual(calls, ["takers", "waiting", "takers", "waiting", "takers", "waiting"]);
    await completeAll(env, "gpu");
    await minutes(env, 1);
    calls = [];
    await minutes(env, 10);
    assert.deepEqual(calls, []);
  });
});

for (const databases of [1, 2])
  test(`of several nodes one tells (databases: ${databases})`, async (context) => {
    const cluster = new Cluster(workflows, 1, databases);
    context.after(() => cluster.crashAll());
    cluster.join();
    await cluster.until("the first owns all", () => cluster.shares()[0] === 32);
    cluster.join();
    cluster.join();
    await cluster.until("three share", () => cluster.shares().length === 3 && cluster.shares().every((share) => share > 5));
    for (let n = 0; n < 12; n += 1)
      await Promise.all([
        cluster.ask(`run-${n}`, (operations) =>
          operations.start({ workflow: "rendering", id: `run-${n}`, input: n, idempotencyKey: `${n}` }),
        ),
        cluster.advance(2_000),
      ]);
    await cluster.advance(150_000);
    assert.equal(cluster.nodes.flatMap(({ logs }) => logs.filter((each) => each.includes(line))).length, 1);
  });
