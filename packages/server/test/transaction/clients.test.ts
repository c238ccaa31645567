/** Every client that applications use: what is asked for in a transaction happens exactly if it commits. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { createClient } from "@wovyr/sdk/client";
import pg from "pg";
import { publishIn, sendIn, startIn } from "../../src/transaction.ts";
import { until } from "../recovery/until.ts";
import { stage } from "./stage.ts";
import { account, echo, Opened, order, Paid, welcome } from "./workflows.ts";

const workflows = [account, echo, order, welcome];

test("a start, events and a publication happen with the transaction that asks for them, with every client", async (context) => {
  const { clients, host, notes, count, errors } = await stage(context);
  const { client } = await host(workflows);
  for (const [index, { kind, transaction }] of clients.entries()) {
    const id = `account-${index}`;
    const waiting = await client.start(order, id);
    const started = await transaction(async ({ tx, note }) => {
      await note(kind);
      const started = await startIn(tx, account, "a", { id, attributes: { client: kind } });
      assert.deepEqual(await sendIn(tx, id, Paid, { amount: 1 }), { replayed: false });
      await sendIn(tx, id, Paid, { amount: 2 });
      await publishIn(tx, Paid, { amount: 3 }, { key: id });
      await publishIn(tx, Paid, { amount: 4 }, { key: id });
      assert.equal((await publishIn(tx, Opened, { name: kind }, { idempotencyKey: `opening-${index}` })).id, `opening-${index}`);
      return started;
    });
    assert.deepEqual({ ...started, runId: "" }, { id, runId: "", created: true, replayed: false });
    const handle = client.handle(account, id);
    assert.deepEqual(await handle.result({ timeout: "10s" }), [1, 2], kind);
    assert.deepEqual(await waiting.result({ timeout: "10s" }), [3, 4], kind);
    const described = await handle.describe();
    assert.equal(described.runId, started.runId);
    assert.deepEqual(described.attributes, { client: kind });
    await until("the opening has triggered a welcome", async () => {
      for await (const { id: run } of client.list({ workflow: welcome, status: "Completed" }))
        if ((await client.handle(welcome, run).result()) === `welcome ${kind}`) return true;
      return false;
    });
  }
  assert.deepEqual(await notes(), clients.map(({ kind }) => kind).sort());
  await until("every request is done", async () => (await count("requests")) === 0);
  assert.equal(await count("inbox"), 0);
  assert.deepEqual(errors, []);
});

test("a transaction that is rolled back, whole or to a savepoint, leaves nothing of what it asked for", async (context) => {
  const { clients, host, notes, count } = await stage(context);
  const orchestrator = await host(workflows);
  await orchestrator.close();
  for (const { kind, transaction } of clients) {
    const undone = transaction(async ({ tx, note }) => {
      await note(kind);
      await startIn(tx, account, "a", { id: "undone", idempotencyKey: "k" });
      await sendIn(tx, "undone", Paid, { amount: 1 });
      await publishIn(tx, Opened, { name: kind });
      throw new Error("undone");
    });
    await assert.rejects(undone, /undone/, kind);
    for (const table of ["instances", "inbox", "requests", "start_keys"]) assert.equal(await count(table), 0, `${kind}: ${table}`);
  }
  assert.deepEqual(await notes(), []);
  for (const [index, { kind, transaction }] of clients.entries()) {
    await transaction(async ({ tx, savepoint }) => {
      await startIn(tx, echo, { name: "kept" }, { id: `kept-${index}` });
      const inner = savepoint(async (nested) => {
        await startIn(nested, echo, { name: "undone" }, { id: "undone" });
        throw new Error("back");
      });
      await assert.rejects(inner, /back/, kind);
    });
    assert.equal(await count("instances"), index + 1, kind);
    assert.equal(await count("requests"), index + 1, kind);
  }
});

test("a transaction whose client dies before it commits leaves nothing; what has committed is done by an orchestrator that starts later", async (context) => {
  const { admin, clients, host, count, url } = await stage(context);
  await (await host(workflows)).close();
  const dying = new pg.Client({ connectionString: url });
  dying.on("error", () => {});
  await dying.connect();
  await dying.query("begin");
  await startIn(dying, echo, { name: "nobody" }, { id: "lost" });
  await admin`select pg_terminate_backend(pid, 5000) from pg_stat_activity where datname = current_database() and state = 'idle in transaction'`;
  assert.equal(await count("instances"), 0);
  for (const [index, { kind, transaction }] of clients.entries())
    await transaction(({ tx }) => startIn(tx, echo, { name: kind }, { id: `later-${index}` }));
  const orchestrator = await host(workflows);
  const over = createClient({ url: await orchestrator.listen({ port: 0 }) });
  for (const [index, { kind }] of clients.entries())
    assert.equal(await over.handle(echo, `later-${index}`).result({ timeout: "10s" }), `hello ${kind}`);
});
