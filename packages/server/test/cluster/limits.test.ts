import assert from "node:assert/strict";
import { test } from "node:test";
import { activity, workflow } from "@wovyr/sdk";
import { Cluster } from "./simulation.ts";

const tenant = "default";

test("H118 limits hold over nodes that come, crash and go: of attempts at once, and of runs at work; and all runs come to their end", async (context) => {
  let cluster: Cluster | undefined;
  const work = activity("work", { concurrency: { limit: 2 } }, async () => {
    await cluster?.sleep(300);
  });
  const worker = workflow("worker", { concurrency: { limit: 5 } }, async function* () {
    yield* work();
    yield* work();
  });
  const nodes = new Cluster([worker]);
  cluster = nodes;
  context.after(() => nodes.crashAll());
  const store = await nodes.opened();
  let most = 0;
  const check = () => {
    const running = nodes.alive.reduce((sum, { engine }) => sum + (engine?.dispatch.running ?? 0), 0);
    most = Math.max(most, running);
    assert.ok(running <= 2, `${running} attempts at once`);
  };
  const checkRuns = async () => {
    const open = await store.listInstances(tenant, { statuses: ["open"] }, { limit: 1_000 });
    assert.ok(open.length <= 5, `${open.length} runs at work`);
  };
  nodes.join();
  await nodes.until("the first owns all", () => nodes.shares()[0] === 32);
  nodes.join();
  nodes.join();
  await nodes.until("three share", () => nodes.shares().every((share) => share > 5) && nodes.shares().length === 3);
  const ids = Array.from({ length: 24 }, (_, n) => `run-${n}`);
  let started = 0;
  for (const id of ids)
    void nodes
      .ask(id, (operations) => operations.start({ workflow: "worker", id, input: undefined, idempotencyKey: id }))
      .then(() => {
        started += 1;
      });
  for (let second = 0; second < 3; second += 1) {
    await nodes.advance(1_000, check);
    await checkRuns();
  }
  nodes.alive[2]?.crash();
  nodes.join();
  const ended = async () => {
    const rows = await Promise.all(ids.map((id) => store.findInstance(tenant, id)));
    return rows.every((row) => row?.status === "Completed");
  };
  for (let second = 0; !(await ended()); second += 1) {
    assert.ok(second < 180, `${started} of ${ids.length} were started, and not all have ended`);
    await nodes.advance(1_000, check);
    await checkRuns();
  }
  assert.equal(most, 2);
});

for (const [what, options, places] of [
  ["a place", {}, 2],
  ["a permit", { concurrency: { limit: 2 } }, 1_000],
  ["a token", { rateLimit: { limit: 2, per: "1s" } }, 1_000],
  ["a circuit", { circuitBreaker: { failureThreshold: 1, openFor: "12s" } }, 2],
] as const)
  test(`a node that was frozen for longer than its lease begins nothing that waited there for ${what}, and all runs come to their end`, async (context) => {
    let cluster: Cluster | undefined;
    let failing = "circuitBreaker" in options ? 4 : 0;
    const work = activity("work", { ...options, retry: { initialDelay: "1ms" } }, async () => {
      await cluster?.sleep(300);
      failing -= 1;
      if (failing >= 0) throw new Error("not now");
    });
    const worker = workflow("worker", async function* () {
      yield* work();
    });
    const nodes = new Cluster([worker]);
    cluster = nodes;
    context.after(() => nodes.crashAll());
    const store = await nodes.opened();
    for (let count = 0; count < 2; count += 1) nodes.join({ activities: places });
    await nodes.until("both share", () => nodes.shares().length === 2 && nodes.shares().every((share) => share === 16));
    const ids = Array.from({ length: 24 }, (_, n) => `run-${n}`);
    const start = (id: string) => nodes.ask(id, (operations) => operations.start({ workflow: "worker", id, input: undefined }));
    const started = Promise.all(ids.map(start));
    await nodes.advance(600);
    await started;
    const frozen = nodes.nodes[1];
    const dispatch = frozen?.engine?.dispatch;
    assert.ok(dispatch !== undefined && dispatch.waiting + dispatch.held > 3, "attempts wait at the one that is frozen");
    frozen?.freeze();
    const rows = () => Promise.all(ids.map((id) => store.findInstance(tenant, id)));
    await nodes.until("the other one does all of it", async () => (await rows()).every((row) => row?.status === "Completed"), 90_000);
    frozen?.thaw();
    // Whatever begins at a node that does not own its shard is found by the simulation.
    await nodes.advance(20_000);
    assert.equal(dispatch.waiting + dispatch.held + dispatch.running, 0);
  });

test("what waited while the only node could not renew its lease begins when it can", async (context) => {
  let cluster: Cluster | undefined;
  const work = activity("work", { concurrency: { limit: 4 } }, async () => {
    await cluster?.sleep(3_000);
  });
  const worker = workflow("worker", async function* () {
    yield* work();
  });
  const nodes = new Cluster([worker]);
  cluster = nodes;
  context.after(() => nodes.crashAll());
  const store = await nodes.opened();
  const node = nodes.join({ activities: 2 });
  await nodes.until("it owns all", () => nodes.shares()[0] === 32);
  const ids = Array.from({ length: 10 }, (_, n) => `run-${n}`);
  const start = (id: string) => nodes.ask(id, (operations) => operations.start({ workflow: "worker", id, input: undefined }));
  const started = Promise.all(ids.map(start));
  await nodes.advance(600);
  await started;
  node.cutOff = true;
  await nodes.advance(12_000);
  assert.equal(node.engine?.dispatch.running, 0, "its lease has run out, and nothing begins");
  node.cutOff = false;
  const rows = () => Promise.all(ids.map((id) => store.findInstance(tenant, id)));
  await nodes.until("all have ended", async () => (await rows()).every((row) => row?.status === "Completed"));
});
