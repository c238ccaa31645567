import assert from "node:assert/strict";
import { type TestContext, test } from "node:test";
import { type Client, createClient } from "@wovyr/sdk/client";
import type { Flush, Store, StoreProvider } from "../../src/engine/ports/store.ts";
import { createOrchestrator, memoryStore } from "../../src/index.ts";
import { logLines } from "./log-lines.ts";
import { chain, Go, listener, trio, workflows } from "./workflows.ts";

const poison = "nosiop";
const forbidden = "poison";

/** A store that can never keep a turn that completes an activity with a certain text, or brings it with an event. */
function squeamish(inner: StoreProvider): StoreProvider {
  const open: StoreProvider["open"] = async (options) => {
    const store = await inner.open(options);
    const refused = (events: string) =>
      (JSON.parse(events) as { type: string; output?: string; payload?: string; input?: string }[]).some(
        (fact) =>
          (fact.type === "ActivityCompleted" && fact.output?.includes(forbidden)) ||
          (fact.type === "EventReceived" && fact.payload?.includes(forbidden)) ||
          (fact.type === "InstanceStarted" && fact.input?.includes(forbidden)),
      );
    const commit = async ({ fence, turns }: Flush) => {
      const bad = turns.filter(({ events }) => refused(events));
      const outcome = await store.commit({ fence, turns: turns.filter((turn) => !bad.includes(turn)) });
      return { ...outcome, failed: new Map([...outcome.failed, ...bad.map(({ run }) => [run, new Error("it cannot be kept")] as const)]) };
    };
    return new Proxy(store, {
      get(target: Store, name) {
        if (name === "commit") return commit;
        const value: unknown = Reflect.get(target, name, target);
        return typeof value === "function" ? value.bind(target) : value;
      },
    });
  };
  return { ...inner, open };
}

async function served(context: TestContext): Promise<{ client: Client; local: Client }> {
  const orchestrator = await createOrchestrator({ workflows, store: squeamish(memoryStore()), log: logLines().log, turnTimeout: false });
  context.after(() => orchestrator.close());
  return { client: createClient({ url: await orchestrator.listen({ port: 0 }), retry: { maxAttempts: 1 } }), local: orchestrator.client };
}

test("H064 an activity whose result the store can never keep fails, alone of all that ended with it", async (context) => {
  const { client } = await served(context);
  const good = Array.from({ length: 100 }, (_, n) => client.execute(chain, n));
  const bad = client.execute(trio, ["ab", poison, "cd"]);
  const worse = client.execute(trio, [poison, poison, "ef"]);
  assert.deepEqual(await bad, ["ba", "failed", "dc"]);
  assert.deepEqual(await worse, ["failed", "failed", "fe"]);
  assert.deepEqual(
    await Promise.all(good),
    Array.from({ length: 100 }, (_, n) => n * 16),
  );
});

test("H064 an event that the store can never keep is refused to its sender, and the run waits on", async (context) => {
  const { client, local } = await served(context);
  const handle = await client.start(listener, undefined, { id: "l" });
  await assert.rejects(handle.send(Go, { text: forbidden }), { code: "PAYLOAD_UNSERIALIZABLE" });
  const both = await Promise.allSettled([local.handle("l").send(Go, { text: forbidden }), local.handle("l").send(Go, { text: "good" })]);
  assert.deepEqual(
    both.map(({ status }) => status),
    ["rejected", "fulfilled"],
  );
  assert.equal(await handle.result({ timeout: "5s" }), "good");
});

test("H064 a start that the store can never keep is refused", async (context) => {
  const { client } = await served(context);
  await assert.rejects(client.start(trio, [forbidden], { id: "s" }), { code: "PAYLOAD_UNSERIALIZABLE" });
  assert.deepEqual(await client.execute(trio, ["ab"], { id: "s" }), ["ba"]);
});
