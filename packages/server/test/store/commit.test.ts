import assert from "node:assert/strict";
import { test } from "node:test";
import { type Flush, StoreUnavailableError, type TurnWrite } from "../../src/engine/ports/store.ts";
import { commit } from "../../src/store/sql/commit.ts";
import { aloneStatement } from "../../src/store/sql/commit-alone.ts";
import { DriverError, type SqlDriver, type SqlValue } from "../../src/store/sql/driver.ts";

function turn(run: string): TurnWrite {
  return {
    tenant: "t",
    run,
    shard: 1,
    tail: 2,
    count: 1,
    at: 5,
    node: "n",
    nonce: "x",
    events: "[]",
    status: "open",
    busy: false,
    timers: [],
    timersDone: [],
    children: [],
    sends: [],
    consumed: [],
    waits: [],
    waitsDone: [],
    deadLetters: [],
    deadLettersDone: [],
  };
}

function flush(...runs: readonly string[]): Flush {
  return { fence: [{ shard: 1, epoch: 1 }], turns: runs.map(turn) };
}

/** A driver that answers a commit of these runs as it is told; remembers which runs it was asked for. */
function driver(answer: (runs: readonly string[], call: number) => string | undefined): SqlDriver & { asked: string[][] } {
  const asked: string[][] = [];
  return {
    asked,
    async query(_lane: string, text: string, params: readonly SqlValue[]) {
      const isAlone = text === aloneStatement;
      const runs = isAlone ? [String(params[3])] : String(params[5]).split("\u001f").slice(0, -1);
      asked.push(runs);
      const code = answer(runs, asked.length);
      if (code !== undefined) throw new DriverError(`failed with ${code}`, { code, answered: /^[0-9A-Z]{5}$/.test(code) });
      return [isAlone ? [true] : [null, null]];
    },
    script: () => Promise.reject(new Error("not asked for")),
    close: () => Promise.resolve(),
  };
}

test("H091 a serialization failure, a deadlock and a lock timeout are retried inside, as often as is sensible", async () => {
  for (const code of ["40001", "40P01", "55P03"]) {
    const some = driver((_, call) => (call <= 3 ? code : undefined));
    assert.deepEqual([...(await commit(some, flush("a", "b"))).done], ["a", "b"]);
    assert.equal(some.asked.length, 4);
    const always = driver(() => code);
    await assert.rejects(commit(always, flush("a")), StoreUnavailableError);
    assert.ok(always.asked.length <= 10, `${always.asked.length} tries`);
  }
});

test("H078 a flush that is refused for its values is halved until the turn to blame stands alone", async () => {
  for (const code of ["22P05", "22001", "23514", "54000"]) {
    const runs = Array.from({ length: 16 }, (_, index) => `run-${index}`);
    const refusing = driver((asked) => (asked.includes("run-5") || asked.includes("run-6") ? code : undefined));
    const { done, failed } = await commit(refusing, flush(...runs));
    assert.deepEqual(
      [...done],
      runs.filter((run) => run !== "run-5" && run !== "run-6"),
    );
    assert.deepEqual([...failed.keys()], ["run-5", "run-6"]);
    assert.match(String(failed.get("run-5")), /run-5.*failed with/);
    assert.ok(refusing.asked.length <= 20);
    assert.ok(refusing.asked.filter((asked) => asked.length === 1 && asked[0] === "run-5").length === 1, "never retried as transient");
  }
});

test("H090 a server that is read-only, shutting down, out of connections or gone makes the store unavailable, at once and without retries", async () => {
  for (const code of [
    "25006",
    "57P01",
    "57P03",
    "08006",
    "53300",
    "42883",
    "42501",
    "ECONNRESET",
    "CONNECTION_CLOSED",
    "CONNECT_TIMEOUT",
  ]) {
    const gone = driver(() => code);
    await assert.rejects(commit(gone, flush("a", "b")), (error) => error instanceof StoreUnavailableError && error.message.includes(code));
    assert.equal(gone.asked.length, 1);
  }
});

test("turns without a fence are refused without asking the database", async () => {
  const none = driver(() => "57P01");
  const { done, failed } = await commit(none, { fence: [], turns: [turn("a")] });
  assert.deepEqual([done.size, failed.size, none.asked.length], [0, 0, 0]);
});

test("a lost connection half way through a halved flush leaves the whole flush in doubt", async () => {
  const losing = driver((runs, call) => (call === 1 ? "22P05" : runs.includes("d") ? "ECONNRESET" : undefined));
  await assert.rejects(commit(losing, flush("a", "b", "c", "d")), StoreUnavailableError);
});
