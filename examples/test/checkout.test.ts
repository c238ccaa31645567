import assert from "node:assert/strict";
import { test } from "node:test";
import { createOrchestrator, postgresStore } from "@wovyr/server";
import postgres from "postgres";
import { bookPayment, createTables, fulfil, placeOrder, SoldOut } from "../src/checkout.ts";

test("an order exists exactly if its piece was taken from stock, and a payment exactly if the order heard of it", async (context) => {
  const server = process.env.WOVYR_TEST_DATABASE_URL;
  assert.ok(server, "run the tests with `npm run test:only`");
  const name = `checkout_${process.pid}`;
  const root = postgres(server, { max: 1 });
  await root.unsafe(`create database ${name}`);
  const url = Object.assign(new URL(server), { pathname: `/${name}` }).href;
  const sql = postgres(url, { onnotice: () => {} });
  const orchestrator = await createOrchestrator({ workflows: [fulfil], store: postgresStore(url) });
  context.after(async () => {
    await orchestrator.close();
    await sql.end();
    await root.unsafe(`drop database ${name} with (force)`);
    await root.end();
  });
  await createTables(sql);
  await sql`insert into stock values ('lamp', 1)`;

  await placeOrder(sql, { id: "1", item: "lamp", total: 50 });
  await assert.rejects(placeOrder(sql, { id: "2", item: "lamp", total: 50 }), SoldOut);
  await assert.rejects(orchestrator.client.handle(fulfil, "2").describe(), { code: "INSTANCE_NOT_FOUND" });

  await bookPayment(sql, "1", 20);
  await assert.rejects(bookPayment(sql, "2", 20), { code: "INSTANCE_NOT_FOUND" });
  await bookPayment(sql, "1", 40);
  assert.equal(await orchestrator.client.handle(fulfil, "1").result({ timeout: "10s" }), "paid, with 10 to return");
  assert.equal((await sql`select * from payments`).length, 2);
});
