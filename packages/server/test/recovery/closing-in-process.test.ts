import assert from "node:assert/strict";
import { test } from "node:test";
import { type ApiError, sleep, step, type WovyrError, workflow } from "@wovyr/sdk";
import { createOrchestrator, memoryStore, pgliteStore } from "../../src/index.ts";

const long = workflow("long", async function* () {
  yield* sleep("1h");
});

const chatty = workflow("chatty", async function* (_: undefined, ctx) {
  ctx.log.warn("a number that JSON does not have", { total: 10n });
  yield* step("one", () => 1);
  ctx.log.error("again");
  return "done";
});

const isShuttingDown = (error: unknown) => (error as ApiError).code === "SHUTTING_DOWN";

test("who waits for a result or follows a stream in the same process is told at once that it closes", async () => {
  const orchestrator = await createOrchestrator({ workflows: [long], store: memoryStore() });
  const handle = await orchestrator.client.start(long);
  const result = assert.rejects(handle.result(), isShuttingDown);
  const executed = assert.rejects(orchestrator.client.execute(long), isShuttingDown);
  let seen = () => {};
  const streaming = new Promise<void>((resolve) => {
    seen = resolve;
  });
  const streamed = assert.rejects(async () => {
    for await (const _ of handle.stream()) seen();
  }, isShuttingDown);
  await streaming;
  await orchestrator.close();
  await Promise.all([result, executed, streamed]);
  await assert.rejects(orchestrator.listen({ port: 0 }), isShuttingDown);
});

test("a log that throws harms nobody", async () => {
  const fail = () => {
    throw new TypeError("this log does not work");
  };
  await using orchestrator = await createOrchestrator({
    workflows: [chatty],
    store: memoryStore(),
    log: { debug: fail, info: fail, warn: fail, error: fail },
  });
  assert.equal(await orchestrator.client.execute(chatty), "done");
});

const mistakes: readonly [string, object][] = [
  ["an unknown option", { foo: 1 }],
  ["an unknown limit", { limits: { foo: 1 } }],
  ["a limit below 1", { limits: { payload: -1 } }],
  ["a turn timeout of nothing", { turnTimeout: 0 }],
  ["a store that is none", { store: {} }],
];

for (const [what, options] of mistakes)
  test(`createOrchestrator refuses ${what}`, async () => {
    await assert.rejects(
      createOrchestrator({ workflows: [], store: memoryStore(), ...options }),
      (error: WovyrError) => error.code === "INVALID_OPTION",
    );
  });

test("pgliteStore refuses a directory without a name", () => {
  assert.throws(
    () => pgliteStore(""),
    (error: WovyrError) => error.code === "INVALID_OPTION",
  );
});
