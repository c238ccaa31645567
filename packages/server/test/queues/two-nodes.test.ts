/** Two orchestrators over one Postgres, and a worker that knows one of them. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { createClient } from "@wovyr/sdk/client";
import { createWorker } from "@wovyr/sdk/worker";
import { createOrchestrator, postgresStore } from "../../src/index.ts";
import { createDatabase } from "../store/postgres-database.ts";
import { single, work } from "./work.ts";

const silent = { debug: () => {}, info: () => {}, warn: () => {}, error: () => {} };

test("a worker that speaks to one node does the tasks of runs that another node owns", { timeout: 60_000 }, async (context) => {
  const database = await createDatabase();
  const node = () => createOrchestrator({ workflows: [single], store: postgresStore(database.url), lease: "3s", log: silent });
  const first = await node();
  const second = await node();
  const quick = work.implement(async ({ n }) => ({ n, worker: "w" }));
  const worker = await createWorker({ url: await second.listen({ port: 0 }), activities: [quick], log: silent });
  context.after(async () => {
    await worker.stop();
    await Promise.all([first.close(), second.close()]);
    await database.drop();
  });
  void worker.run();
  const client = createClient({ url: await first.listen({ port: 0 }), retry: { maxAttempts: 200, maxDuration: "50s", maxDelay: "100ms" } });
  // Whichever node owns them.
  const runs = await Promise.all(Array.from({ length: 12 }, (_, n) => client.start(single, { n, milliseconds: 0 })));
  const outcomes = await Promise.all(runs.map((run) => run.result()));
  assert.deepEqual(
    outcomes.map(({ n }) => n),
    runs.map((_, n) => n),
  );
});
