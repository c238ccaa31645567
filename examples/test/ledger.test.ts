import assert from "node:assert/strict";
import { test } from "node:test";
import { WorkflowError } from "@wovyr/sdk";
import { createOrchestrator, memoryStore, postgresStore } from "@wovyr/server";
import { createTestEnvironment, fake } from "@wovyr/testing";
import { createDatabase } from "../../packages/server/test/store/postgres-database.ts";
import { book, moveMoney, openAccount } from "../src/ledger.ts";

const skip =
  process.env.WOVYR_TEST_DATABASE_URL === undefined && "no Postgres: run it with `npm run test:only -- examples/test/ledger.test.ts`";

test("money moves exactly once, and comes back when it cannot arrive", { skip }, async () => {
  const database = await createDatabase();
  const orchestrator = await createOrchestrator({ workflows: [moveMoney, openAccount], store: postgresStore(database.url) });
  try {
    const { client } = orchestrator;
    await client.execute(openAccount, { account: "ada", amount: 100 });
    await client.execute(openAccount, { account: "bob", amount: 0 });
    assert.equal(await client.execute(moveMoney, { from: "ada", to: "bob", amount: 30 }), 70);
    await assert.rejects(client.execute(moveMoney, { from: "ada", to: "nobody", amount: 30 }), WorkflowError);
    await assert.rejects(client.execute(moveMoney, { from: "ada", to: "bob", amount: 1_000 }), WorkflowError);
    const balances = await database.admin`select name, balance from accounts order by name`;
    assert.deepEqual(
      [...balances],
      [
        { name: "ada", balance: 70 },
        { name: "bob", balance: 30 },
      ],
    );
    const bookings =
      await database.admin`select account, sum(amount)::int as amount, count(*)::int as count from bookings group by account order by account`;
    assert.deepEqual(
      [...bookings],
      [
        { account: "ada", amount: -30, count: 3 },
        { account: "bob", amount: 30, count: 1 },
      ],
    );
  } finally {
    await orchestrator.close();
    await database.drop();
  }
});

test("a test of the workflow alone fakes its steps, and needs no database", async () => {
  const booked = fake(book, ({ amount }) => 100 + amount);
  await using env = await createTestEnvironment({ workflows: [moveMoney], fakes: [booked], store: memoryStore() });
  assert.equal(await env.execute(moveMoney, { from: "ada", to: "bob", amount: 30 }), 70);
  assert.deepEqual(
    booked.calls.map(({ input }) => input.amount),
    [-30, 30],
  );
});
