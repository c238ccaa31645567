/** A payment whose bank is closed, from the failure to the decision, on each store. */
import assert from "node:assert/strict";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type TestContext, test } from "node:test";
import { activity, Type, workflow } from "@wovyr/sdk";
import type { DeadLetterSummary } from "@wovyr/sdk/client";
import type { StoreProvider } from "../../src/engine/ports/store.ts";
import { memoryStore } from "../../src/store/memory.ts";
import { pgliteStore } from "../../src/store/pglite.ts";
import { postgresStore } from "../../src/store/postgres.ts";
import { inCase } from "../engine/case.ts";
import { createDatabase } from "../store/postgres-database.ts";

let open = false;
const charge = activity(
  "charge",
  { onExhausted: "pause", output: Type.String(), retry: { maxAttempts: 2, initialDelay: "1s", jitter: "none" } },
  async (amount: number) => {
    if (!open) throw Object.assign(new Error("closed", { cause: new Error("503") }), { code: "BANK_CLOSED" });
    return `paid ${amount}`;
  },
);
const pay = workflow("pay", async function* (amount: number) {
  return yield* charge(amount).with({ timeout: { scheduleToClose: "1d" } });
});

const stores: Readonly<Record<string, (context: TestContext) => Promise<StoreProvider>>> = {
  memory: async () => memoryStore(),
  pglite: async (context) => {
    const directory = mkdtempSync(join(tmpdir(), "wovyr-letters-"));
    context.after(() => rmSync(directory, { recursive: true, force: true, maxRetries: 5 }));
    return pgliteStore(directory);
  },
  postgres: async (context) => {
    const { url, drop } = await createDatabase();
    context.after(drop);
    return postgresStore(url);
  },
};

for (const [kind, provider] of Object.entries(stores))
  test(`${kind}: exhausted, kept over a restart, retried in bulk, resolved, failed, and out of time`, async (context) => {
    await inCase({ workflows: [pay], store: await provider(context) }, async (env) => {
      open = false;
      const { deadLetters, batches } = env.client;
      const letters = async () => {
        const found = new Map<string, DeadLetterSummary>();
        for await (const letter of deadLetters.list({ workflow: pay, code: "BANK_CLOSED" })) found.set(letter.instanceId, letter);
        return found;
      };
      const runs = [];
      for (let amount = 0; amount < 6; amount += 1) runs.push(await env.start(pay, amount, { id: `p${amount}` }));
      await env.advance("5s");
      assert.equal((await letters()).size, 6);
      await env.restart();
      const found = await letters();
      assert.deepEqual([...found.keys()].sort(), ["p0", "p1", "p2", "p3", "p4", "p5"]);
      const idOf = (id: string) => found.get(id)?.id ?? "";
      assert.equal((await deadLetters.get(idOf("p0"))).failures.length, 2);
      await deadLetters.resolve(idOf("p0"), { output: "by hand" });
      await deadLetters.fail(idOf("p1"));
      open = true;
      const batch = await deadLetters.decideAll("retry", { ids: ["p2", "p3", "p4"].map(idOf) }, { note: "open again" });
      await env.until(async () => (await batches.get(batch)).closedAt !== undefined);
      assert.equal((await batches.get(batch)).done, 3);
      const outcomes = await Promise.all(runs.slice(0, 5).map((run) => run.result().catch((error: Error) => error.name)));
      assert.deepEqual(outcomes, ["by hand", "WorkflowError", "paid 2", "paid 3", "paid 4"]);
      assert.deepEqual([...(await letters()).keys()], ["p5"]);
      await env.advance("1d");
      await assert.rejects(runs[5]?.result() ?? Promise.resolve(), /scheduleToClose/);
      assert.equal((await letters()).size, 0);
    });
  });
