/** A store that takes what it is asked and says nothing, in virtual time. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { activity, awaitEvent, event, workflow } from "@wovyr/sdk";
import type { Operations } from "@wovyr/sdk/internal";
import { grace, patience } from "../../src/engine/answering.ts";
import { Cluster } from "./simulation.ts";

const Go = event("go");
const work = activity("work", { queue: "elsewhere" }, async () => {});
const waiter = workflow("waiter", { events: [Go] }, async function* () {
  yield* awaitEvent(Go);
  yield* work();
  return "went";
});

test("every call is answered in bounded time while the store is silent, and what was asked for counts once", async () => {
  const cluster = new Cluster([waiter]);
  const node = cluster.join();
  await cluster.until("it is ready", () => node.host.ready);
  const { operations } = node;
  const known = operations.start({ workflow: "waiter", id: "known", input: undefined });
  await cluster.advance(100);
  await known;
  let speak = () => {};
  node.silence = new Promise((resolve) => {
    speak = resolve;
  });
  const began = cluster.clock.now();
  const answers = new Map<string, { readonly code: string | undefined; readonly after: number }>();
  const ask = (name: string, call: Promise<unknown>) => {
    const told = (code: string | undefined) => answers.set(name, { code, after: cluster.clock.now() - began });
    call.then(
      () => told(undefined),
      (error: { readonly code?: string }) => told(error.code),
    );
  };
  const short = patience;
  const most: Record<string, number> = {};
  const calls: Record<string, readonly [most: number, call: (to: Operations) => Promise<unknown>]> = {
    start: [short, (to) => to.start({ workflow: "waiter", id: "x", input: undefined, idempotencyKey: "x" })],
    "start and wait": [25_000, (to) => to.start({ workflow: "waiter", id: "y", input: undefined, wait: 20_000 })],
    event: [short, (to) => to.sendEvent("known", "go", undefined, { idempotencyKey: "go" })],
    describe: [short, (to) => to.describe("known")],
    list: [short, (to) => to.list({})],
    queues: [short, (to) => to.listQueues()],
    poll: [2_000 + grace, (to) => to.pollTasks({ queues: ["elsewhere"], worker: "w", wait: 2_000 })],
    result: [2_000 + grace, (to) => to.result("known", { wait: 2_000 })],
    delete: [short, (to) => to.delete("known")],
    export: [short, async (to) => to.export("known")[Symbol.asyncIterator]().next()],
    import: [short, (to) => to.import(lines("nothing that can be read"))],
  };
  for (const [name, [latest, call]] of Object.entries(calls)) {
    most[name] = latest;
    ask(name, call(operations));
  }
  await cluster.advance(30_000);
  for (const name of Object.keys(calls)) {
    const { code, after } = answers.get(name) ?? {};
    assert.ok(after !== undefined && after <= (most[name] as number), `${name} was answered after ${after} ms`);
    if (name !== "import") assert.equal(code, "STORE_UNAVAILABLE", name);
  }
  node.silence = undefined;
  speak();
  await cluster.until("it is ready again", () => node.host.ready);
  ask(
    "start again",
    operations
      .start({ workflow: "waiter", id: "x", input: undefined, idempotencyKey: "x" })
      .then(({ replayed }) => assert.equal(replayed, true)),
  );
  ask("event again", operations.sendEvent("known", "go", undefined, { idempotencyKey: "go" }));
  const polled = operations.pollTasks({ queues: ["elsewhere"], worker: "w", max: 10, wait: 2_000 });
  ask("poll again", polled);
  await cluster.advance(3_000);
  for (const name of ["start again", "event again", "poll again"]) assert.equal(answers.get(name)?.code, undefined, name);
  assert.deepEqual(
    (await polled).map(({ instanceId }) => instanceId),
    ["known"],
    "no task was given to the poll that was over",
  );
});

async function* lines(...all: string[]): AsyncGenerator<string> {
  yield* all;
}
