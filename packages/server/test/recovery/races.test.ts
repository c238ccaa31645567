import assert from "node:assert/strict";
import { type TestContext, test } from "node:test";
import { activity, all, awaitEvent, child, event, Type, type WorkflowError, type WovyrError, workflow } from "@wovyr/sdk";
import postgres from "postgres";
import { createOrchestrator, postgresStore } from "../../src/index.ts";
import { createDatabase } from "../store/postgres-database.ts";

const Note = event("note", Type.Number());

const oneNote = workflow("one-note", { events: [Note] }, async function* () {
  return yield* awaitEvent(Note, { timeout: "1m" });
});

const work = activity("work", async (n: number) => n * 2);
const busy = workflow("busy", async function* (n: number) {
  const [value, inner] = yield* all([work(n), child(inner1, n)]);
  return value + inner;
});
const inner1 = workflow("inner", async function* (n: number) {
  return yield* work(n);
});

async function stage(context: TestContext) {
  const { url, drop } = await createDatabase();
  const orchestrator = await createOrchestrator({ workflows: [oneNote, busy, inner1], store: postgresStore(url) });
  context.after(async () => {
    await orchestrator.close();
    await drop();
  });
  return { url, client: orchestrator.client };
}

const orders = [
  ["send", "start", "send"],
  ["start", "send", "send"],
  ["send", "send", "start"],
] as const;

for (const order of orders)
  test(`H029 a finished id is started again while events for it arrive (${order.join(", ")}): the new run works, and every event is taken or refused`, async (context) => {
    const { client } = await stage(context);
    for (let round = 0; round < 20; round++) {
      const id = `again-${round}`;
      const first = await client.start(oneNote, undefined, { id });
      await first.send(Note, 0);
      assert.equal(await first.result(), 0);
      const outcomes = await Promise.allSettled(
        order.map((what, place) =>
          what === "start" ? client.start(oneNote, undefined, { id }) : client.handle(oneNote, id).send(Note, place + 1),
        ),
      );
      for (const outcome of outcomes)
        if (outcome.status === "rejected") assert.equal((outcome.reason as WovyrError).code, "INSTANCE_CLOSED", String(outcome.reason));
      const second = client.handle(oneNote, id);
      await second.send(Note, 9).catch((error: unknown) => assert.equal((error as WovyrError).code, "INSTANCE_CLOSED"));
      assert.ok([1, 2, 3, 9].includes(await second.result({ timeout: "20s" })));
    }
  });

test("H092 cancel, completion, events and children of the same runs at once end in one state each, without a deadlock in the database", async (context) => {
  const { url, client } = await stage(context);
  const ends = await Promise.all(
    Array.from({ length: 300 }, async (_, n) => {
      const handle = await client.start(busy, n);
      const nudges = [() => handle.cancel(), () => handle.terminate(), () => handle.send(Note, 1)].slice(0, n % 4);
      await Promise.allSettled(nudges.map((nudge) => nudge()));
      const end = await handle.result().then(
        (value) => ({ value }),
        (error: unknown) => ({ status: (error as WorkflowError).status }),
      );
      const { status } = await handle.describe();
      if ("value" in end) assert.deepEqual([end.value, status], [n * 4, "Completed"]);
      else assert.equal(end.status, status);
      return status;
    }),
  );
  assert.ok(ends.every((status) => ["Completed", "Cancelled", "Terminated"].includes(status)));
  const sql = postgres(url, { max: 1 });
  const [row] = await sql`select deadlocks::int from pg_stat_database where datname = current_database()`;
  const [open] = await sql`select count(*)::int as runs from wovyr.instances where closed_at is null`;
  await sql.end();
  assert.deepEqual([row?.deadlocks, open?.runs], [0, 0]);
});
