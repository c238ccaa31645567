/** What a transaction is refused, and what it meets in others that are open. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { delivery } from "@wovyr/sdk/client";
import postgres from "postgres";
import { publishIn, type StartedIn, sendIn, startIn, type Transaction, transactionClient } from "../../src/transaction.ts";
import { createDatabase } from "../store/postgres-database.ts";
import { type AppClient, stage } from "./stage.ts";
import { account, echo, idle, Paid } from "./workflows.ts";

test("what is refused is answered, and the transaction goes on and commits the rest", async (context) => {
  const { clients, host, notes } = await stage(context);
  const { client } = await host([echo, idle]);
  await client.start(idle, undefined, { id: "taken" });
  await client.execute(echo, { name: "over" }, { id: "over" });
  for (const { kind, transaction } of clients) {
    const id = kind.replaceAll(/[^a-z]/g, "-");
    await transaction(async ({ tx, note }) => {
      await note(kind);
      await assert.rejects(startIn(tx, idle, undefined, { id: "taken" }), { code: "INSTANCE_EXISTS", message: /workflow "idle"/ });
      await assert.rejects(startIn(tx, echo, { name: "b" }, { id: "taken", onConflict: "return", idempotencyKey: "free" }), {
        code: "INSTANCE_EXISTS",
      });
      await assert.rejects(sendIn(tx, "nobody", Paid, { amount: 1 }), { code: "INSTANCE_NOT_FOUND" });
      await assert.rejects(sendIn(tx, "over", Paid, { amount: 1 }), { code: "INSTANCE_CLOSED" });
      await startIn(tx, echo, { name: "one" }, { id: `one-${id}`, idempotencyKey: `key-${id}` });
      await assert.rejects(startIn(tx, echo, { name: "two" }, { idempotencyKey: `key-${id}` }), { code: "IDEMPOTENCY_CONFLICT" });
      await publishIn(tx, Paid, { amount: 1 }, { idempotencyKey: `publication-${id}` });
      await assert.rejects(publishIn(tx, Paid, { amount: 2 }, { idempotencyKey: `publication-${id}` }), { code: "IDEMPOTENCY_CONFLICT" });
      await sendIn(tx, "taken", Paid, { amount: 1 }, { idempotencyKey: `event-${id}` });
      await assert.rejects(sendIn(tx, "taken", Paid, { amount: 2 }, { idempotencyKey: `event-${id}` }), { code: "IDEMPOTENCY_CONFLICT" });
    });
    assert.equal(await client.handle(echo, `one-${id}`).result({ timeout: "10s" }), "hello one", kind);
  }
  assert.equal((await notes()).length, clients.length);
});

test("the same start, event and publication under the same key are one, also over both doors", async (context) => {
  const { clients, host } = await stage(context);
  const { client } = await host([account, echo]);
  const { transaction } = clients[0] as AppClient;
  const start = { idempotencyKey: "start", id: "a" };
  const first = await transaction(async ({ tx }) => {
    const first = await startIn(tx, account, "a", start);
    assert.deepEqual(await startIn(tx, account, "a", start), { ...first, replayed: true });
    await sendIn(tx, "a", Paid, { amount: 1 }, { idempotencyKey: "event" });
    assert.deepEqual(await sendIn(tx, "a", Paid, { amount: 1 }, { idempotencyKey: "event" }), { replayed: true });
    return first;
  });
  assert.equal((await client.start(account, "a", start)).runId, first.runId);
  assert.equal((await transaction(({ tx }) => startIn(tx, account, "a", { id: "a", onConflict: "return" }))).runId, first.runId);
  await client.handle(account, "a").send(Paid, { amount: 1 }, { idempotencyKey: "event" });
  const event = delivery(Paid, { amount: 2 }, { idempotencyKey: "second" });
  const again = await transaction(({ tx }) => startIn(tx, account, "a", { id: "a", event }));
  assert.deepEqual(again, { id: "a", runId: first.runId, created: false, replayed: false });
  assert.deepEqual(await client.handle(account, "a").result({ timeout: "10s" }), [1, 2]);
  const both = await transaction(({ tx }) => startIn(tx, account, "b", { id: "b", event }));
  await client.handle(account, "b").send(Paid, { amount: 3 });
  assert.equal(both.created, true);
  assert.deepEqual(await client.handle(account, "b").result({ timeout: "10s" }), [2, 3]);
});

test("of two transactions that start one id, the second waits for the first: it is refused when that commits, and starts when it rolls back", async (context) => {
  const { clients, host, waiting, count } = await stage(context);
  await (await host([echo])).close();
  const [{ transaction: one }, , { transaction: other }] = clients as [AppClient, AppClient, AppClient];
  for (const ends of ["commits", "rolls-back"]) {
    let second: Promise<StartedIn> | undefined;
    const first = one(async ({ tx }) => {
      await startIn(tx, echo, { name: "first" }, { id: ends });
      second = other(({ tx }) => startIn(tx, echo, { name: "second" }, { id: ends }));
      second.catch(() => {});
      await waiting("start_in_1");
      if (ends === "rolls-back") throw new Error("undone");
    });
    if (ends === "commits") {
      await first;
      await assert.rejects(second as Promise<StartedIn>, { code: "INSTANCE_EXISTS" });
    } else {
      await assert.rejects(first, /undone/);
      assert.equal((await second)?.created, true);
    }
  }
  assert.equal(await count("instances"), 2);
});

test("a start over another door waits for the transaction that starts its id, and is told how that ended", async (context) => {
  const { clients, host, waiting } = await stage(context);
  const { client } = await host([account]);
  const { transaction } = clients[0] as AppClient;
  for (const ends of ["commits", "rolls-back"]) {
    let second: Promise<unknown> | undefined;
    const first = transaction(async ({ tx }) => {
      await startIn(tx, account, "a", { id: ends });
      second = client.start(account, "b", { id: ends });
      second.catch(() => {});
      await waiting("commit_%1");
      if (ends === "rolls-back") throw new Error("undone");
    });
    if (ends === "commits") {
      await first;
      await assert.rejects(second as Promise<unknown>, { code: "INSTANCE_EXISTS" });
    } else {
      await assert.rejects(first, /undone/);
      await second;
      assert.equal((await client.handle(account, ends).describe()).status, "Waiting");
    }
  }
});

test("every isolation works; where a transaction must not see who was first, the database has it tried again (40001)", async (context) => {
  const { host, url } = await stage(context);
  const { client } = await host([account, echo]);
  const sql = postgres(url, { onnotice: () => {} });
  context.after(() => sql.end());
  for (const isolation of ["read committed", "repeatable read", "serializable"]) {
    const id = isolation.replaceAll(" ", "-");
    await sql.begin(`isolation level ${isolation}`, async (tx) => {
      await startIn(tx, account, "a", { id, idempotencyKey: id });
      await sendIn(tx, id, Paid, { amount: 1 });
      await publishIn(tx, Paid, { amount: 1 }, { key: id });
      await sendIn(tx, id, Paid, { amount: 2 });
    });
    assert.deepEqual(await client.handle(account, id).result({ timeout: "10s" }), [1, 2], isolation);
    const late = sql.begin(`isolation level ${isolation}`, async (tx) => {
      await tx`select count(*) from notes`;
      await client.start(account, "a", { id: `${id}-2` });
      await startIn(tx, account, "a", { id: `${id}-2` });
    });
    await assert.rejects(late, { code: isolation === "read committed" ? "INSTANCE_EXISTS" : "40001" }, isolation);
  }
});

test("what is wrong is found before the database is asked, with the codes of the other doors", async () => {
  const asked: string[] = [];
  const tx: Transaction = { query: async (text: string) => ({ rows: [{ answer: asked.push(text) }] }) };
  const refusals: [Promise<unknown>, string][] = [
    [startIn(tx, echo, { name: 1 } as never), "INVALID_INPUT"],
    [startIn(tx, account, "a", { id: "" }), "INVALID_NAME"],
    [startIn(tx, account, "a", { idempotencyKey: "ü" }), "INVALID_OPTION"],
    [startIn(tx, account, "a", { version: "7" }), "INVALID_OPTION"],
    [startIn(tx, account, "a", { startAt: new Date(), delay: "1s" }), "INVALID_OPTION"],
    [startIn(tx, account, "a", { nonsense: 1 } as never), "INVALID_OPTION"],
    [startIn(tx, account, "x".repeat(3_000_000)), "PAYLOAD_TOO_LARGE"],
    [sendIn(tx, "a", Paid, { amount: -1 }), "INVALID_INPUT"],
    [sendIn(tx, "a", Paid, { amount: 1 }, { idempotencyKey: "" }), "INVALID_OPTION"],
    [publishIn(tx, Paid, { amount: -1 }), "INVALID_INPUT"],
    [publishIn(tx, Paid, { amount: 1 }, { key: "" }), "INVALID_OPTION"],
    [transactionClient({ limits: { payload: 8 } }).startIn(tx, account, "much too long"), "PAYLOAD_TOO_LARGE"],
    [startIn({} as never, account, "a"), "INVALID_OPTION"],
    [startIn(undefined as never, account, "a"), "INVALID_OPTION"],
    [startIn(tx, account, "a", { id: 5 } as never), "INVALID_NAME"],
    ...[undefined, null, "account", Paid].map((other): [Promise<unknown>, string] => [
      startIn(tx, other as never, "a"),
      "INVALID_DEFINITION",
    ]),
    ...[undefined, "paid", account.definition.run].flatMap((other): [Promise<unknown>, string][] => [
      [sendIn(tx, "a", other as never, { amount: 1 }), "INVALID_DEFINITION"],
      [publishIn(tx, other as never, { amount: 1 }), "INVALID_DEFINITION"],
    ]),
  ];
  for (const [index, [refusal, code]] of refusals.entries()) await assert.rejects(refusal, { code }, `refusal ${index}`);
  assert.deepEqual(asked, []);
});

test("a database without the tables, or without the group, is said to be the wrong one", async () => {
  const database = await createDatabase();
  await assert.rejects(startIn(database.admin, echo, { name: "a" }), { code: "STORE_INCOMPATIBLE", message: /start_in_1/ });
  await assert.rejects(sendIn(database.admin, "a", Paid, { amount: 1 }), { code: "STORE_INCOMPATIBLE" });
  await database.drop();
});

test("a group that nobody serves is refused; payloads pass through the codec of the orchestrators", async (context) => {
  const { clients, host, admin } = await stage(context);
  const codec = {
    name: "reversed",
    encode: (text: string) => [...text].reverse().join(""),
    decode: (text: string) => [...text].reverse().join(""),
  };
  const { client } = await host([account], { codec, group: "bank" });
  const bank = transactionClient({ codec, group: "bank" });
  const { transaction } = clients[0] as AppClient;
  await transaction(async ({ tx }) => {
    await assert.rejects(startIn(tx, account, "a"), { code: "STORE_INCOMPATIBLE", message: /group "default"/ });
    await bank.startIn(tx, account, "secret", { id: "a" });
    await bank.sendIn(tx, "a", Paid, { amount: 123456 });
    const rows = await admin`select fact from wovyr.inbox union all select fact from wovyr.requests`;
    assert.deepEqual([...rows], [], "nobody else sees it yet");
  });
  await client.handle(account, "a").send(Paid, { amount: 1 });
  const taken = await client.handle(account, "a").result({ timeout: "10s" });
  assert.deepEqual([...taken].sort(), [1, 123456]);
  const rows = await admin<{ events: string }[]>`select events from wovyr.history`;
  assert.doesNotMatch(rows.map(({ events }) => events).join(), /secret|123456/);
});
