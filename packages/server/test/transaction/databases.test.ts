/** Transactions of applications in one of several databases. */
import assert from "node:assert/strict";
import { test } from "node:test";
import postgres from "postgres";
import { shardOf } from "../../src/engine/shard-of.ts";
import { createOrchestrator, postgresStore } from "../../src/index.ts";
import { publishIn, sendIn, startIn } from "../../src/transaction.ts";
import { until } from "../recovery/until.ts";
import { createDatabase } from "../store/postgres-database.ts";
import { account, order, Paid } from "./workflows.ts";

const placeOf = (id: string) => shardOf("default", id, 256) % 2;
const idIn = (place: number, prefix: string): string => {
  for (let n = 0; ; n += 1) if (placeOf(`${prefix}-${n}`) === place) return `${prefix}-${n}`;
};

test("a transaction starts runs in its own database, and tells those of all what it has to say", async () => {
  const databases = await Promise.all([createDatabase(), createDatabase()]);
  const store = postgresStore(databases.map(({ url }) => url));
  const { client, close } = await createOrchestrator({
    workflows: [account, order],
    store,
    log: { debug() {}, info() {}, warn() {}, error() {} },
  });
  for (const [place, { url }] of databases.entries()) {
    const sql = postgres(url, { onnotice: () => {}, fetch_types: false });
    const [own, other] = [idIn(place, `own-${place}`), idIn(1 - place, `other-${place}`)];
    const far = await client.start(account, "far", { id: other });
    const waiting = [
      await client.start(order, `k-${place}`, { id: idIn(0, `w-${place}`) }),
      await client.start(order, `k-${place}`, { id: idIn(1, `w-${place}`) }),
    ];
    const begun = await sql.begin(async (tx) => {
      const drawn: string[] = [];
      for (let n = 0; n < 6; n += 1) drawn.push((await startIn(tx, account, "drawn")).id);
      await startIn(tx, account, "own", { id: own });
      await assert.rejects(startIn(tx, account, "other", { id: idIn(1 - place, "refused") }), { code: "INVALID_OPTION" });
      for (const id of [...drawn, own, other]) for (const amount of [1, 2]) await sendIn(tx, id, Paid, { amount });
      for (const amount of [3, 4]) await publishIn(tx, Paid, { amount }, { key: `k-${place}` });
      return drawn;
    });
    assert.ok(begun.every((id) => placeOf(id) === place));
    for (const id of [...begun, own]) assert.deepEqual(await client.handle(account, id).result({ timeout: "20s" }), [1, 2]);
    assert.deepEqual(await far.result({ timeout: "20s" }), [1, 2]);
    for (const handle of waiting) assert.deepEqual(await handle.result({ timeout: "20s" }), [3, 4]);
    await sql.end();
  }
  for (const { admin } of databases)
    await until(
      "every request is done",
      async () => (await admin`select from wovyr.requests`).length === 0 && (await admin`select from wovyr.outbox`).length === 0,
    );
  await close();
  await Promise.all(databases.map((database) => database.drop()));
});
