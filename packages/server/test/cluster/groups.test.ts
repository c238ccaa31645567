/** What a node tells of runs of other groups that share its database. */
import assert from "node:assert/strict";
import { type TestContext, test } from "node:test";
import { awaitEvent, event, Type, workflow } from "@wovyr/sdk";
import { createOrchestrator, memoryStore } from "../../src/index.ts";
import { until } from "../recovery/until.ts";

const Go = event("go", Type.String());
const waiting = workflow("waiting", { events: [Go] }, async function* () {
  return yield* awaitEvent(Go);
});
async function twoGroups(context: TestContext) {
  const errors: string[] = [];
  const log = { debug() {}, info() {}, warn() {}, error: (message: string) => void errors.push(message) };
  const options = { store: memoryStore({ shared: true }), log, turnTimeout: false } as const;
  const mine = await createOrchestrator({ ...options, workflows: [waiting], group: "mine" });
  const other = await createOrchestrator({ ...options, workflows: [], group: "other" });
  context.after(() => Promise.all([mine.close(), other.close()]));
  return { mine, other, errors };
}

test("the result and the events of a run are told by a node of another group", async (context) => {
  const { mine, other } = await twoGroups(context);
  const run = await mine.client.start(waiting);
  const there = other.client.handle(run.id);
  const result = there.result({ timeout: "20s" });
  const seen: string[] = [];
  const stream = (async () => {
    for await (const { type } of there.stream()) seen.push(type);
  })();
  await until("what is recorded was told", () => seen.includes("EventAwaited"));
  await run.send(Go, "done");
  assert.equal(await result, "done");
  await stream;
  assert.equal(seen.at(-1), "InstanceCompleted");
});

test("who would change it there is told so once and for all, and nothing is logged as a fault", async (context) => {
  const { mine, other, errors } = await twoGroups(context);
  const run = await mine.client.start(waiting);
  await assert.rejects(other.client.handle(run.id).terminate(), { code: "NOT_OWNER", retryable: false, message: /not of group "other"/ });
  const url = await other.listen({ port: 0 });
  const answer = await fetch(`${url}/v1/instances/${run.id}/terminate`, { method: "POST" });
  assert.deepEqual([answer.status, answer.headers.get("retry-after")], [421, null]);
  assert.deepEqual(errors, []);
  await run.terminate();
});
