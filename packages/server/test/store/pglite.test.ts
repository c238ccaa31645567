import assert from "node:assert/strict";
import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync, mkdirSync, mkdtempSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import { hostname, tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, describe, test } from "node:test";
import { claim, commit, firstTurn, next, scenario, start } from "../../src/store/contract/scenario.ts";
import { DirectoryLock } from "../../src/store/pglite/directory-lock.ts";
import { processStart } from "../../src/store/pglite/process-identity.ts";
import { pgliteStore } from "../../src/store/pglite.ts";
import { recordStrike } from "../../src/store/strike-sink.ts";
import { contractStoreOptions, storeContract } from "../../src/store-contract.ts";
import { programOf } from "../processes.ts";

storeContract("the embedded store", () => ({ provider: pgliteStore("memory://") }));

const program = programOf(join(import.meta.dirname, "pglite-process.ts"));

/** Starts a process on a directory; resolves with it and the first line that it prints. */
async function startProcess(mode: string, directory: string): Promise<{ child: ChildProcess; line: string }> {
  const child = spawn(process.execPath, [...program.execArgv, program.file, mode, directory], {
    stdio: ["ignore", "pipe", "inherit"],
  });
  const [chunk] = await once(child.stdout, "data");
  return { child, line: String(chunk).trim() };
}

async function kill(child: ChildProcess): Promise<void> {
  const ended = once(child, "exit");
  child.kill("SIGKILL");
  await ended;
}

describe("an embedded store in a directory", () => {
  let directory: string;
  before(() => {
    directory = mkdtempSync(join(tmpdir(), "wovyr-embedded-"));
  });
  after(() => rmSync(directory, { recursive: true, force: true }));

  test("is made anew when its first making was interrupted, without blocking the event loop", async () => {
    mkdirSync(join(directory, "data"));
    writeFileSync(join(directory, "data", "PG_VERSION"), "");
    let beats = 0;
    const heart = setInterval(() => {
      beats += 1;
    }, 10);
    const warnings: string[] = [];
    const log = { info: () => {}, warn: (message: string) => warnings.push(message) };
    const store = await pgliteStore(directory).open({ now: () => 7, log });
    clearInterval(heart);
    assert.ok(beats > 20, `${beats} beats`);
    assert.match(warnings.join(), /made anew/);
    assert.ok(existsSync(join(directory, "data.interrupted-7")));
    await assert.rejects(pgliteStore(directory).open(contractStoreOptions), {
      code: "STORE_LOCKED",
      message: new RegExp(`process ${process.pid}`),
    });
    await store.close();
  });

  test("has its records, its strikes and higher epochs when it is opened again, and nobody owns its shards", async () => {
    const store = await pgliteStore(directory).open(contractStoreOptions);
    const first = await scenario(store);
    const turn = await start(first);
    const strike = { tenant: first.tenant, run: turn.run, tail: 2, workflow: "order" };
    await recordStrike(store.strikes, strike);
    await recordStrike(store.strikes, strike);
    await store.close();
    const again = await pgliteStore(directory).open(contractStoreOptions);
    assert.deepEqual(await again.listStrikes(), [{ ...strike, count: 2 }]);
    await again.clearStrikes({ tenant: first.tenant, run: "other" });
    assert.equal((await again.listStrikes()).length, 1);
    await again.clearStrikes(strike);
    assert.deepEqual(await again.listStrikes(), []);
    const closed = await start(
      {
        ...first,
        fence: (await claim({ ...first, store: again }, "before")).granted,
        store: again,
      },
      { status: "Completed" },
    );
    for (const { run } of [turn, closed]) await recordStrike(again.strikes, { ...strike, run });
    assert.equal(await again.deleteRuns([turn, closed]), 1);
    assert.deepEqual(await again.listStrikes(), [{ ...strike, count: 1 }], "the strikes of a deleted run go with it");
    await again.clearStrikes(strike);
    const { granted } = await claim({ ...first, store: again }, "heir", { dead: ["before"] });
    assert.equal(granted[0]?.epoch, (first.fence[0]?.epoch ?? 0) + 2);
    const second = { ...first, store: again, fence: granted };
    assert.deepEqual(await commit(second, next(second, turn)), [turn.run]);
    await again.close();
  });

  test("is respected while another process holds it, and taken over with all its records when that process was killed", async () => {
    const { child, line } = await startProcess("hold", directory);
    await assert.rejects(pgliteStore(directory).open(contractStoreOptions), {
      code: "STORE_LOCKED",
      message: new RegExp(`process ${child.pid};`),
    });
    await kill(child);
    const store = await pgliteStore(directory).open(contractStoreOptions);
    assert.equal((await store.getInstance({ tenant: "held", run: line }))?.tail, 2);
    await store.close();
  });

  test("H094 lets commits under way end when it is closed, and lets its process end", async () => {
    const { child, line } = await startProcess("close", directory);
    const ended = once(child, "exit");
    assert.equal(line, "closing");
    const watchdog = setTimeout(() => child.kill("SIGKILL"), 10_000);
    assert.deepEqual(await ended, [0, null]);
    clearTimeout(watchdog);
    const store = await pgliteStore(directory).open(contractStoreOptions);
    assert.equal((await store.listInstances("closed", {}, { limit: 100 })).length, 20);
    const at = await scenario(store);
    await commit(at, firstTurn(at));
    await store.close();
  });
});

describe("the lock of a directory", () => {
  const withDirectory = async (body: (directory: string) => Promise<void> | void): Promise<void> => {
    const directory = mkdtempSync(join(tmpdir(), "wovyr-lock-"));
    try {
      await body(directory);
    } finally {
      rmSync(directory, { recursive: true, force: true });
    }
  };
  const owner = (details: object) => JSON.stringify({ pid: process.pid, start: processStart(process.pid), host: hostname(), ...details });

  test("is held by one, free after its release, and leaves one file behind however often it changes hands", () =>
    withDirectory((directory) => {
      for (let round = 0; round < 5; round += 1) {
        const lock = DirectoryLock.acquire(directory);
        assert.throws(() => DirectoryLock.acquire(directory), { code: "STORE_LOCKED" });
        lock.release();
      }
      assert.equal(readdirSync(directory).length, 1);
    }));

  test("is taken from a process that is gone and from a number that another process has now, never from a live one", () =>
    withDirectory((directory) => {
      writeFileSync(join(directory, "lock.3"), owner({ start: "long ago" }));
      DirectoryLock.acquire(directory).release();
      writeFileSync(join(directory, "lock.9"), owner({ pid: 2 ** 22 + 1 }));
      DirectoryLock.acquire(directory).release();
      writeFileSync(join(directory, "lock.20"), owner({}));
      assert.throws(() => DirectoryLock.acquire(directory), { code: "STORE_LOCKED", message: /choose another directory/ });
    }));

  test("of another host, or without sense, is respected, and the message says what to do", () =>
    withDirectory((directory) => {
      writeFileSync(join(directory, "lock.1"), owner({ host: "elsewhere" }));
      assert.throws(() => DirectoryLock.acquire(directory), { code: "STORE_LOCKED", message: /host elsewhere.*remove .*lock\.1/ });
      writeFileSync(join(directory, "lock.2"), "{");
      assert.throws(() => DirectoryLock.acquire(directory), { code: "STORE_LOCKED", message: /remove it if no process uses/ });
    }));

  test("of a killed process goes to exactly one of those who want it", () =>
    withDirectory(async (directory) => {
      const { child } = await startProcess("lock", directory);
      await kill(child);
      const rivals = await Promise.all(Array.from({ length: 4 }, () => startProcess("lock", directory)));
      assert.deepEqual(rivals.map(({ line }) => line).sort(), ["STORE_LOCKED", "STORE_LOCKED", "STORE_LOCKED", "taken"]);
      await Promise.all(rivals.map((rival) => kill(rival.child)));
    }));
});
