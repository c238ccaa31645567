import assert from "node:assert/strict";
import { createServer } from "node:net";
import { after, before, describe, test } from "node:test";
import { type TcpProxy, tcpProxy } from "@wovyr/testing";
import { type Store, StoreUnavailableError } from "../../src/engine/ports/store.ts";
import { claim, commit, firstTurn, next, type Scenario, scenario, shard, start, tailOf } from "../../src/store/contract/scenario.ts";
import { postgresStore } from "../../src/store/postgres.ts";
import { contractStoreOptions } from "../../src/store-contract.ts";
import { createDatabase, type TestDatabase } from "./postgres-database.ts";

describe("a Postgres store whose connections fail", () => {
  let database: TestDatabase;
  let proxy: TcpProxy;
  let store: Store;
  let at: Scenario;

  before(async () => {
    database = await createDatabase();
    proxy = await tcpProxy(database.url);
    store = await postgresStore(proxy.url()).open(contractStoreOptions);
    at = await scenario(store);
  });
  after(async () => {
    await store.close();
    await proxy.close();
    await database.drop();
  });

  /** Holds the shards' rows, so that flushes wait inside the database, until the body is done. */
  async function whileShardsAreLocked(body: () => Promise<void>): Promise<void> {
    await database.admin.begin(async (sql) => {
      await sql`select id from wovyr.shards for update`;
      await body();
    });
  }

  /** Resolves when so many such statements wait for a lock: their process ids. */
  async function waitingFor(statement: string, count: number): Promise<readonly number[]> {
    const patience = performance.now() + 20_000;
    while (performance.now() < patience) {
      const rows = await database.admin<{ pid: number }[]>`
        select pid from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock' and query like ${`%${statement}%`}`;
      if (rows.length === count) return rows.map(({ pid }) => pid);
    }
    throw new Error(`no ${count} of ${statement} wait for a lock`);
  }

  async function waitForTail(run: string, tail: number): Promise<void> {
    while ((await tailOf(at, run)) !== tail) await store.ping();
  }

  /** Calls until the store is back. */
  async function untilAvailable<T>(call: () => Promise<T>): Promise<T> {
    for (;;) {
      try {
        return await call();
      } catch (error) {
        if (!(error instanceof StoreUnavailableError)) throw error;
      }
    }
  }

  test("a flush whose connection was lost may commit later; a retry under another nonce is refused then, and nothing is doubled", async () => {
    const first = await start(at);
    const lost = next(at, first, { nonce: "lost", timers: [{ effect: "1", due: 7 }] });
    await whileShardsAreLocked(async () => {
      const flush = commit(at, lost);
      await waitingFor("commit_%1", 1);
      proxy.dropClients();
      await assert.rejects(flush, StoreUnavailableError);
      assert.equal(await untilAvailable(() => tailOf(at, first.run)), 2, "the tail that a writer in doubt reads again");
    });
    await waitForTail(first.run, 4);
    assert.deepEqual(await commit(at, { ...lost, nonce: "retry", timers: [{ effect: "1", due: 8 }] }), []);
    assert.equal((await store.getInstance(first))?.nonce, "lost");
    assert.equal((await store.readHistory(first, 1, 10)).length, 2);
    assert.deepEqual(
      (await store.listTimers(at.shards, 10, 10)).filter(({ run }) => run === first.run).map(({ due }) => due),
      [7],
    );
  });

  test("a lost flush and its retry that are under way together: one of them wins, whole", async () => {
    const first = await start(at);
    const lost = next(at, first, { nonce: "lost" });
    let retry: Promise<readonly string[]> | undefined;
    await whileShardsAreLocked(async () => {
      const flush = commit(at, lost);
      await waitingFor("commit_%1", 1);
      proxy.dropClients();
      await assert.rejects(flush, StoreUnavailableError);
      await untilAvailable(() => store.ping());
      retry = untilAvailable(() => commit(at, { ...lost, nonce: "retry" }));
      await waitingFor("commit_%1", 2);
    });
    const done = await retry;
    await waitForTail(first.run, 4);
    assert.equal((await store.getInstance(first))?.nonce, done?.length === 1 ? "retry" : "lost");
    assert.equal((await store.readHistory(first, 1, 10)).length, 2);
  });

  test("a server process that is ended in the middle of a commit leaves nothing of it, and the store comes back by itself", async () => {
    const first = await start(at);
    const turn = next(at, first);
    await whileShardsAreLocked(async () => {
      const flush = assert.rejects(commit(at, turn), StoreUnavailableError);
      const [pid] = await waitingFor("commit_%1", 1);
      await database.admin`select pg_terminate_backend(${pid ?? 0})`;
      await flush;
    });
    assert.equal(await untilAvailable(() => tailOf(at, first.run)), 2);
    assert.deepEqual(await untilAvailable(() => commit(at, turn)), [first.run]);
  });

  test("connections that were ended while idle are replaced without a stray rejection", async () => {
    for (let round = 0; round < 5; round += 1) {
      await Promise.all([store.ping(), tailOf(at, "x"), commit(at, firstTurn(at))]);
      await database.admin`select pg_terminate_backend(pid) from pg_stat_activity where datname = current_database() and pid <> pg_backend_pid()
        and application_name = 'wovyr'`;
      assert.equal((await untilAvailable(() => commit(at, firstTurn(at)))).length, 1);
      await untilAvailable(() => store.ping());
    }
  });

  test("H087 a connection that ends in the middle of a flush of thirty megabytes leaves nothing of it", async () => {
    const first = await start(at);
    const large = next(at, first, { events: JSON.stringify("x".repeat(30 << 20)) });
    proxy.cutAfter(10 << 20);
    await assert.rejects(commit(at, large), StoreUnavailableError);
    assert.equal(await untilAvailable(() => tailOf(at, first.run)), 2);
    assert.deepEqual(await untilAvailable(() => commit(at, large)), [first.run]);
  });

  test("H063 a takeover leaves the shard of a flush under way for later, whose turns are the last under the old epoch", async () => {
    const here = await scenario(store);
    const turn = await start(here);
    let flush: Promise<readonly string[]> | undefined;
    await database.admin.begin(async (sql) => {
      await sql`select from wovyr.instances where run = ${turn.run} for update`;
      flush = commit(here, next(here, turn));
      await waitingFor("commit_%1", 1);
      // Of the shard that the flush holds nothing is taken yet; the other one is.
      assert.deepEqual(
        (await claim(here, "taker", { dead: [here.owner] })).granted.map((each) => each.shard),
        [shard(here, 1)],
      );
    });
    assert.deepEqual(await flush, [turn.run]);
    assert.equal((await claim(here, "taker", { dead: [here.owner] })).granted.length, 2);
    assert.equal(await tailOf(here, turn.run), 4);
    assert.deepEqual(await commit(here, next(here, turn, { tail: 4 })), []);
  });

  test("H063 a flush that meets a takeover under way waits for it and is refused", async () => {
    const here = await scenario(store);
    const turn = await start(here);
    let flush: Promise<readonly string[]> | undefined;
    await database.admin.begin(async (sql) => {
      await sql`update wovyr.shards set epoch = epoch + 1, owner = 'taker' where id in ${sql([...here.shards])}`;
      flush = commit(here, next(here, turn));
      const first = await Promise.race([flush.then(() => "committed"), waitingFor("commit_%1", 1).then(() => "waits")]);
      assert.equal(first, "waits");
    });
    assert.deepEqual(await flush, []);
    assert.equal(await tailOf(here, turn.run), 2);
  });

  test("H090 a server that turned read-only makes the store unavailable until it takes writes again", async () => {
    const name = new URL(database.url).pathname.slice(1);
    const first = await start(at);
    await database.admin.unsafe(`alter database ${name} set default_transaction_read_only = on`);
    proxy.dropClients();
    await assert.rejects(async () => {
      for (;;) await untilReadOnly(commit(at, next(at, first)));
    }, /25006/);
    await database.admin.unsafe(`set default_transaction_read_only = off`);
    await database.admin.unsafe(`alter database ${name} reset default_transaction_read_only`);
    proxy.dropClients();
    assert.deepEqual(await untilAvailable(() => commit(at, next(at, first))), [first.run]);
  });

  /** Lets the lost connection pass; the read-only answer is what rejects. */
  async function untilReadOnly(flush: Promise<unknown>): Promise<void> {
    try {
      await flush;
    } catch (error) {
      assert.ok(error instanceof StoreUnavailableError);
      if (error.message.includes("25006")) throw error;
    }
  }

  test("H088 reads that hang do not hold up commits", async () => {
    await database.admin.begin(async (sql) => {
      await sql`lock table wovyr.strikes in access exclusive mode`;
      const reads = Array.from({ length: 20 }, () => store.listStrikes());
      assert.equal((await commit(at, firstTurn(at))).length, 1);
      await sql`rollback`.catch(() => {});
      await Promise.all(reads);
    });
  });

  test("a commit without an answer within the deadline is in doubt, and later ones go over another connection", async () => {
    const hasty = await postgresStore(database.url, { statementDeadline: 300, writeConnections: 1 }).open(contractStoreOptions);
    const here: Scenario = { ...at, store: hasty };
    const first = await start(here);
    await whileShardsAreLocked(async () => {
      await assert.rejects(
        commit(here, next(here, first)),
        (error) => error instanceof StoreUnavailableError && /300 ms/.test(error.message),
      );
    });
    assert.equal((await untilAvailable(() => commit(here, firstTurn(here)))).length, 1);
    await hasty.close();
  });

  test("H078 a turn that breaks a rule of the database fails alone", async () => {
    await database.admin`alter table wovyr.history add constraint no_poison check (events not like '%poison%')`;
    const turns = Array.from({ length: 50 }, (_, index) => firstTurn(at, index % 20 === 7 ? { events: '["poison"]' } : {}));
    const { done, failed } = await store.commit({ fence: at.fence, turns });
    assert.equal(done.size, 47);
    assert.deepEqual(
      [...failed.keys()],
      [7, 27, 47].map((index) => turns[index]?.run),
    );
    for (const [run, error] of failed) assert.match(error.message, new RegExp(`${run}.*no_poison`));
  });
});

test("a store without a server says where it looked, within seconds, and keeps the password to itself", async () => {
  const silent = createServer((socket) => socket.on("error", () => {}));
  await new Promise<void>((resolve) => silent.listen(0, "127.0.0.1", resolve));
  const { port } = silent.address() as { port: number };
  const began = performance.now();
  const attempts = [`postgres://user:s3cret@127.0.0.1:1/orders`, `postgres://user:s3cret@127.0.0.1:${port}/orders`].map(async (url) => {
    const place = new URL(url).host;
    await assert.rejects(postgresStore(url).open(contractStoreOptions), (error: Error) => {
      assert.ok(error instanceof StoreUnavailableError);
      assert.ok(error.message.includes(`${place}/orders`), error.message);
      assert.ok(!JSON.stringify([error.message, error.stack]).includes("s3cret"));
      return true;
    });
  });
  await Promise.all(attempts);
  assert.ok(performance.now() - began < 10_000);
  silent.close();
  assert.throws(() => postgresStore("mysql://x"), { code: "INVALID_OPTION" });
  assert.throws(() => postgresStore("somewhere"), { code: "INVALID_OPTION" });
});
