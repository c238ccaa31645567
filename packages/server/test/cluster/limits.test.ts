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
