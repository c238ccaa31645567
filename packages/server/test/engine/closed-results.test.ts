/** Who asks for the result of a run in the moment of its end. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { awaitEvent, event, workflow } from "@wovyr/sdk";
import type { StoreProvider } from "../../src/engine/ports/store.ts";
import { createOrchestrator, memoryStore } from "../../src/index.ts";
import { storeAround } from "../cluster/store-around.ts";

const Go = event("go");
const waiting = workflow("waiting", { events: [Go] }, async function* () {
  yield* awaitEvent(Go);
});

test("a run that has ended, and still has messages to turn away, is not waited for", async (context) => {
  let held: (() => void)[] | undefined;
  const memory = memoryStore();
  const store: StoreProvider = {
    ...memory,
    open: async (options) =>
      storeAround(await memory.open(options), async (name, _args, call) => {
        const committed = await call();
        if (name === "commit" && held !== undefined) await new Promise<void>((resolve) => held?.push(resolve));
        return committed;
      }),
  };
  const { client, close } = await createOrchestrator({ workflows: [waiting], store, turnTimeout: false });
  context.after(close);
  const run = await client.start(waiting);
  held = [];
  const first = run.cancel();
  while (held.length === 0) await new Promise((resolve) => setImmediate(resolve));
  const second = assert.rejects(run.cancel(), { code: "INSTANCE_CLOSED" });
  // The one whose end is told by the commit asks at once; the other one's request is still in the mailbox.
  const began = performance.now();
  const ended = first.then(() => run.result({ timeout: "20s" })).catch((error: Error) => error);
  const [commit] = held;
  held = undefined;
  commit?.();
  assert.equal(((await ended) as { code?: string }).code, "WORKFLOW_FAILED");
  assert.ok(performance.now() - began < 10_000, "its end was told before it was waited for");
  await second;
});
