import assert from "node:assert/strict";
import { test } from "node:test";
import type { Connection } from "../../src/store/postgres/connection.ts";
import { Pool } from "../../src/store/postgres/pool.ts";
import { DriverError } from "../../src/store/sql/driver.ts";

type FakeConnection = { broken: boolean; number: number; discard(): void; close(): Promise<void> };

const refused = new DriverError("refused", { code: "ECONNREFUSED", answered: false });

function fakePool(options: { size?: number; deadline?: number; fails?: () => boolean } = {}) {
  const events: string[] = [];
  const opened: FakeConnection[] = [];
  const pool = new Pool({
    size: options.size ?? 2,
    deadline: options.deadline ?? 10_000,
    reachable: (failure) => events.push(failure === undefined ? "up" : "down"),
    async open() {
      events.push("open");
      if (options.fails?.()) throw refused;
      const connection: FakeConnection = {
        broken: false,
        number: opened.length,
        discard() {
          connection.broken = true;
        },
        close: () => Promise.resolve(),
      };
      opened.push(connection);
      return connection as unknown as Connection;
    },
  });
  const numberOf = (connection: Connection) => (connection as unknown as FakeConnection).number;
  return { pool, events, opened, numberOf };
}

test("a connection is used again, and more are made only while statements wait", async () => {
  const { pool, opened, numberOf } = fakePool();
  for (let round = 0; round < 3; round += 1) assert.equal(await pool.run(async (connection) => numberOf(connection)), 0);
  const used = await Promise.all(Array.from({ length: 6 }, () => pool.run(async (connection) => numberOf(connection))));
  assert.ok(opened.length <= 2);
  assert.equal(used.length, 6);
});

test("a broken connection is replaced before the next statement", async () => {
  const { pool, numberOf } = fakePool({ size: 1 });
  await assert.rejects(
    pool.run(async (connection) => {
      connection.discard();
      throw refused;
    }),
    refused,
  );
  assert.equal(await pool.run(async (connection) => numberOf(connection)), 1);
});

test("everything that waits is rejected with the reason while no connection can be made; later ones are tried again", async () => {
  let down = true;
  const { pool, events, numberOf } = fakePool({ fails: () => down });
  const waiting = Array.from({ length: 5 }, () => pool.run(async () => "never"));
  for (const each of waiting) await assert.rejects(each, refused);
  await assert.rejects(
    pool.run(async () => "never"),
    refused,
  );
  down = false;
  assert.equal(await pool.run(async (connection) => numberOf(connection)), 0);
  assert.deepEqual(
    events.filter((event) => event !== "open"),
    ["down", "up"],
  );
});

test("what waits is served by the connections that are left when no more can be made", async () => {
  let first = true;
  const { pool } = fakePool({
    fails: () => {
      const fails = !first;
      first = false;
      return fails;
    },
  });
  const gate = gateway();
  const held = pool.run(async () => gate.promise);
  const waiting = pool.run(async () => "served");
  await new Promise((resolve) => setImmediate(resolve));
  gate.resolve();
  await held;
  assert.equal(await waiting, "served");
});

test("a statement that waits too long rejects, and one that runs too long takes its connection with it", async () => {
  const { pool, opened } = fakePool({ size: 1, deadline: 30 });
  const running = pool.run(() => new Promise<never>(() => {}));
  const waiting = pool.run(async () => "never");
  await assert.rejects(running, /no answer in 30 ms/);
  await assert.rejects(waiting, /no connection was free in 30 ms/);
  assert.equal(opened[0]?.broken, true);
});

test("closing rejects what waits and what comes later", async () => {
  const { pool } = fakePool({ size: 1 });
  const gate = gateway();
  const running = pool.run(async () => gate.promise);
  await new Promise((resolve) => setImmediate(resolve));
  const waiting = assert.rejects(
    pool.run(async () => "never"),
    /closed/,
  );
  const closed = pool.close();
  await waiting;
  gate.resolve();
  await running;
  await closed;
  await assert.rejects(
    pool.run(async () => "never"),
    /closed/,
  );
});

function gateway(): { promise: Promise<void>; resolve(): void } {
  let resolve = (): void => {};
  const promise = new Promise<void>((settle) => {
    resolve = settle;
  });
  return { promise, resolve: () => resolve() };
}
