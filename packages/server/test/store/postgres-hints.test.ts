import assert from "node:assert/strict";
import { type TestContext, test } from "node:test";
import { cutSessions, tcpProxy } from "@wovyr/testing";
import { PostgresHints, type PostgresHintsOptions } from "../../src/store/postgres/hints.ts";
import { until, within } from "../recovery/until.ts";
import { createDatabase } from "./postgres-database.ts";

type Heard = readonly number[] | undefined;

/** What a listener hears, one after another. */
class Ear {
  readonly #heard: Heard[] = [];
  #wake = () => {};
  readonly hear = (shards: Heard) => {
    this.#heard.push(shards);
    this.#wake();
  };

  async next(): Promise<Heard> {
    while (this.#heard.length === 0)
      await new Promise<void>((resolve) => {
        this.#wake = resolve;
      });
    return this.#heard.shift();
  }
}

/** The first failure that somebody is told of. */
function told() {
  let tell = (_: Error | undefined) => {};
  const failure = new Promise<Error>((resolve) => {
    tell = (failure) => failure !== undefined && resolve(failure);
  });
  return { failure, tell: (failure: Error | undefined) => tell(failure) };
}

async function stage(context: TestContext) {
  const database = await createDatabase();
  const opened: PostgresHints[] = [];
  context.after(async () => {
    await Promise.all(opened.map((hints) => hints.close()));
    await database.drop();
  });
  return {
    ...database,
    async open(name: string, options: Partial<PostgresHintsOptions> = {}) {
      const hints = new PostgresHints({ url: database.url, connectTimeout: 4_000, name, ...options });
      opened.push(hints);
      const ear = new Ear();
      hints.listen(ear.hear);
      assert.equal(await within("the first catching up", 10_000, ear.next()), undefined, "it may have missed something before");
      return { hints, ear };
    },
    async sessions(): Promise<number> {
      const [row] = await database.admin.unsafe(
        "select count(*)::integer as n from pg_stat_activity where application_name = 'wovyr' and datname = current_database()",
      );
      return row?.n;
    },
  };
}

test("what one tells, the others hear", async (context) => {
  const place = await stage(context);
  const one = await place.open("one");
  const two = await place.open("two");
  one.hints.tell([3, 200]);
  assert.deepEqual(await two.ear.next(), [3, 200]);
  assert.equal(one.hints.healthy && two.hints.healthy, true);
});

test("H083 H084 more shards than fit into a notification are told as any shard", async (context) => {
  const place = await stage(context);
  const one = await place.open("one");
  const two = await place.open("two");
  one.hints.tell(Array.from({ length: 256 }, (_, shard) => shard));
  assert.equal((await two.ear.next())?.length, 256);
  one.hints.tell(Array.from({ length: 50_000 }, (_, shard) => shard));
  assert.equal(await two.ear.next(), undefined);
});

test("H085 a connection that was cut is made again, and what was missed is told; one session is left", async (context) => {
  const place = await stage(context);
  const { hints, ear } = await place.open("one");
  const other = await place.open("two");
  for (let cut = 0; cut < 20; cut += 1) {
    await cutSessions(place.url, { application: "wovyr" });
    assert.equal(await within("catching up", 5_000, ear.next()), undefined);
    assert.equal(await within("catching up", 5_000, other.ear.next()), undefined);
  }
  assert.equal(hints.healthy, true);
  assert.equal(await place.sessions(), 2);
  other.hints.tell([7]);
  assert.deepEqual(await within("a hint after the cuts", 5_000, ear.next()), [7]);
});

test("H085 a connection that swallows everything is found out and given up", async (context) => {
  const place = await stage(context);
  await using proxy = await tcpProxy(place.url);
  const lost = told();
  const { hints, ear } = await place.open("one", {
    url: proxy.url(),
    beat: 100,
    patience: 300,
    heard: lost.tell,
  });
  proxy.blackhole();
  assert.match((await within("finding it out", 5_000, lost.failure)).message, /do not arrive within 300 ms/);
  assert.equal(hints.healthy, false);
  hints.tell([1]);
  proxy.flow();
  assert.equal(await within("catching up", 10_000, ear.next()), undefined);
  assert.equal(hints.healthy, true);
});

test("H089 behind a pooler that passes no notifications on, hints say that they are not heard", async (context) => {
  const place = await stage(context);
  // Another session listens, as behind a pooler in transaction mode: nothing comes back here.
  const deaf = told();
  const hints = new PostgresHints({ url: place.url, connectTimeout: 4_000, name: "deaf", patience: 200, heard: deaf.tell });
  context.after(() => hints.close());
  await place.admin.unsafe(`
    create schema deaf;
    create function deaf.pg_notify(text, text) returns void language sql as $$ select null::void $$;
    do $$ begin execute format('alter database %I set search_path = deaf, pg_catalog', current_database()); end $$`);
  hints.listen(() => {});
  assert.match((await within("finding it out", 10_000, deaf.failure)).message, /do not arrive within 200 ms/);
  assert.equal(hints.healthy, false);
});

test("closing ends the connection, also while it is being made", async (context) => {
  const place = await stage(context);
  const { hints } = await place.open("one");
  await hints.close();
  const early = new PostgresHints({ url: place.url, connectTimeout: 4_000, name: "early" });
  early.listen(() => {});
  await early.close();
  await until("no session is left", async () => (await place.sessions()) === 0);
});
