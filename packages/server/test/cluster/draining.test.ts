import assert from "node:assert/strict";
import { test } from "node:test";
import { activity, query, Type, workflow } from "@wovyr/sdk";
import { until } from "../recovery/until.ts";
import { type Node, nodes } from "./nodes.ts";

const step = query("step", { output: Type.Number() });

test("a node that drains keeps its port: clients are told to ask again, and other nodes get answers about the runs that it still has", async (context) => {
  let end = () => {};
  const ended = new Promise<void>((resolve) => {
    end = resolve;
  });
  context.after(() => end());
  let running = 0;
  const held = activity("held", async () => {
    running += 1;
    await ended;
    return 7;
  });
  const holding = workflow("holding", async function* (_: undefined, ctx) {
    ctx.onQuery(step, () => 1);
    return yield* held();
  });
  const { all, idOf } = await nodes(context, 2, [holding], { shutdownGrace: "30s" });
  const [one, two] = all as [Node, Node];
  const handle = await one.client.start(holding, undefined, { id: await idOf(two) });
  await until("its activity runs", () => running === 1);
  const closed = two.orchestrator.close();
  const drains = async () => (await one.local.cluster()).nodes.some(({ url, state }) => url === two.url && state === "draining");
  await until("the other node knows that it drains", drains);
  for (const client of [one.client, one.local]) assert.equal(await client.handle(holding, handle.id).query(step), 1);
  const health = await fetch(`${two.url}/health/ready`);
  assert.deepEqual([health.status, await health.json()], [503, { ready: false, reason: "shutting down" }]);
  for (const path of ["queries/step", "cancel"]) {
    const refused = await fetch(`${two.url}/v1/instances/${handle.id}/${path}`, { method: "POST", body: "{}" });
    assert.deepEqual([refused.status, ((await refused.json()) as { code: string }).code], [503, "SHUTTING_DOWN"]);
    assert.ok(refused.headers.has("retry-after"));
  }
  const result = handle.result({ timeout: "20s" });
  end();
  await closed;
  assert.equal(await result, 7);
  assert.equal(running, 1);
  await assert.rejects(fetch(`${two.url}/health/ready`));
});
