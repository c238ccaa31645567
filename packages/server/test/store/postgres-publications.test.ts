/** Publishers and waiters in real transactions that are held open by a lock. */
import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";
import type { FlushOutcome, PublishOutcome, Store } from "../../src/engine/ports/store.ts";
import {
  commit,
  firstTurn,
  inboxOf,
  next,
  publication,
  type Scenario,
  scenario,
  start,
  unique,
} from "../../src/store/contract/scenario.ts";
import { postgresStore } from "../../src/store/postgres.ts";
import { insertStepOutcome } from "../../src/store/sql/step-outcomes.ts";
import { contractStoreOptions } from "../../src/store-contract.ts";
import { createDatabase, type TestDatabase } from "./postgres-database.ts";

const waitsFor = (key?: string) => [{ effect: "1", name: "paid", ...(key !== undefined && { key }), after: 0 }];

describe("publishers and waiters", () => {
  let database: TestDatabase;
  let store: Store;
  let at: Scenario;

  before(async () => {
    database = await createDatabase();
    store = await postgresStore(database.url, { writeConnections: 6 }).open(contractStoreOptions);
    at = await scenario(store);
  });
  after(async () => {
    await store.close();
    await database.drop();
  });

  /** Resolves when so many such statements wait for a lock of a kind. */
  async function waitingFor(statement: string, event: "advisory" | "transactionid" | "tuple", count = 1): Promise<void> {
    const patience = performance.now() + 20_000;
    while (performance.now() < patience) {
      const rows = await database.admin`select pid from pg_stat_activity
        where datname = current_database() and wait_event = ${event} and query like ${`%${statement}%`}`;
      if (rows.length === count) return;
    }
    throw new Error(`no ${count} of ${statement} wait for a lock of the kind ${event}`);
  }

  /** Holds publishers of an id between their lock and their commit, while the body runs. */
  async function whilePublicationIsHeld(id: string, body: () => Promise<void>): Promise<void> {
    await database.admin
      .begin(async (sql) => {
        await sql`insert into wovyr.publications (at, tenant, id, name, topic, digest, fact) values (1, ${at.tenant}, ${id}, 'n', 't', 'd', '{}')`;
        await body();
        throw new Error("undone");
      })
      .catch((error: Error) => assert.equal(error.message, "undone"));
  }

  test("a publisher who comes while a flush that waits for its key is under way waits for it, and reaches its runs", async () => {
    const key = unique("key-");
    const blocked = await start(at);
    const waiter = firstTurn(at, { waits: waitsFor(key) });
    let flush: Promise<FlushOutcome> | undefined;
    let published: Promise<PublishOutcome> | undefined;
    await database.admin.begin(async (sql) => {
      await sql`select from wovyr.instances where run = ${blocked.run} for update`;
      flush = store.commit({ fence: at.fence, turns: [next(at, blocked), waiter] });
      await waitingFor("commit_%1", "transactionid");
      published = store.publish(publication(at, { key }));
      const first = await Promise.race([published.then(() => "published"), waitingFor("publish_1", "advisory").then(() => "waits")]);
      assert.equal(first, "waits");
    });
    assert.deepEqual([(await flush)?.done.size, (await flush)?.found.size], [2, 0]);
    assert.deepEqual(
      (await published)?.delivered.map(({ run }) => run),
      [waiter.run],
    );
    assert.equal((await inboxOf(at, waiter.run)).length, 1);
  });

  test("a flush that begins to wait for a key while its publisher is under way waits for it, and finds the publication", async () => {
    const key = unique("key-");
    const event = publication(at, { key });
    const waiter = firstTurn(at, { waits: waitsFor(key) });
    let flush: Promise<FlushOutcome> | undefined;
    let published: Promise<PublishOutcome> | undefined;
    await whilePublicationIsHeld(event.id, async () => {
      published = store.publish(event);
      await waitingFor("publish_1", "transactionid");
      flush = store.commit({ fence: at.fence, turns: [waiter] });
      const first = await Promise.race([flush.then(() => "committed"), waitingFor("commit_%1", "advisory").then(() => "waits")]);
      assert.equal(first, "waits");
      // Whoever waits for nothing with a key does not care.
      assert.equal((await commit(at, firstTurn(at, { waits: waitsFor() }))).length, 1);
    });
    assert.deepEqual((await published)?.delivered, []);
    assert.deepEqual([...((await flush)?.found ?? [])], [waiter.run]);
    assert.equal((await inboxOf(at, waiter.run)).length, 1);
  });

  test("positions of one key rise in the order of commits: a publisher waits for the one before it", async () => {
    const key = unique("key-");
    const [held, later] = [publication(at, { key }), publication(at, { key })];
    let first: Promise<PublishOutcome> | undefined;
    let second: Promise<PublishOutcome> | undefined;
    await whilePublicationIsHeld(held.id, async () => {
      first = store.publish(held);
      await waitingFor("publish_1", "transactionid");
      second = store.publish(later);
      const answer = await Promise.race([second.then(() => "published"), waitingFor("publish_1", "advisory").then(() => "waits")]);
      assert.equal(answer, "waits");
      await store.publish(publication(at));
    });
    const [before, after] = [await first, await second];
    assert.ok(before && after && before.position < after.position, `${before?.position} before ${after?.position}`);
  });

  test("flushes with many keys in any order and publishers never block each other for ever", async () => {
    const keys = Array.from({ length: 600 }, () => unique("key-"));
    const shuffled = (seed: number) =>
      keys.map((key, index) => ({ key, rank: (index * 7_919 + seed * 104_729) % 601 })).sort((a, b) => a.rank - b.rank);
    const runs = await Promise.all(Array.from({ length: 8 }, () => start(at)));
    const flushes = runs.map((turn, seed) =>
      store.commit({
        fence: at.fence,
        turns: [next(at, turn, { waits: shuffled(seed).map(({ key }, index) => ({ effect: `e-${index}`, name: "paid", key, after: 0 })) })],
      }),
    );
    const published = keys.slice(0, 100).map((key) => store.publish(publication(at, { key })));
    await Promise.all([...flushes, ...published]);
    for (const { run } of runs) assert.equal((await store.readInbox({ tenant: at.tenant, run }, { limit: 1_000 })).length, 100);
    const [locks] = await database.admin<{ count: string }[]>`
      select count(*) from pg_locks where locktype = 'advisory' and database = (select oid from pg_database where datname = current_database())`;
    assert.equal(locks?.count, "0", "no lock outlives its transaction");
  });

  test("a database whose transactions are not read committed is refused where that would lose events, and told what to set", async () => {
    const other = await createDatabase();
    const strict = await postgresStore(other.url).open(contractStoreOptions);
    const here = await scenario(strict);
    await other.admin.unsafe(
      `alter database ${new URL(other.url).pathname.slice(1)} set default_transaction_isolation = 'repeatable read'`,
    );
    await strict.close();
    const reopened = await postgresStore(other.url).open(contractStoreOptions);
    await assert.rejects(reopened.publish(publication(here, { key: "k" })), {
      code: "STORE_UNAVAILABLE",
      message: /default_transaction_isolation/,
    });
    assert.equal((await reopened.publish(publication(here))).known, false);
    await reopened.close();
    await other.drop();
  });

  test("the outcome that a step wrote in its own transaction wins over one that came while it was open, unless it is rolled back", async () => {
    for (const outcome of ["committed", "undone"]) {
      const run = unique("run-");
      let saved: Promise<{ won: boolean; outcome: string | null }> | undefined;
      const transaction = database.admin.begin(async (sql) => {
        const { count } = await sql.unsafe(insertStepOutcome, [at.tenant, run, "1", 5, '"mine"']);
        assert.equal(count, 1);
        saved = store.saveStepOutcome({ tenant: at.tenant, run, effect: "1", at: 6, outcome: null });
        await waitingFor("save_step_outcome_1", "transactionid");
        if (outcome === "undone") throw new Error("undone");
      });
      if (outcome === "undone") await assert.rejects(transaction, /undone/);
      else await transaction;
      assert.deepEqual(await saved, outcome === "undone" ? { won: true, outcome: null } : { won: false, outcome: '"mine"' });
      const { count } = await database.admin.unsafe(insertStepOutcome, [at.tenant, run, "1", 7, '"late"']);
      assert.equal(count, 0);
    }
  });
});
