/** Every step that history calls completed was applied once, every other not at all, whenever the process is killed. */
import assert from "node:assert/strict";
import type { ChildProcess } from "node:child_process";
import { once } from "node:events";
import { join } from "node:path";
import { test } from "node:test";
import { setTimeout as pause } from "node:timers/promises";
import type { HistoryFact } from "@wovyr/sdk/internal";
import { createOrchestrator, postgresStore } from "../../src/index.ts";
import { forkProcess } from "../processes.ts";
import { seeded } from "../recovery/seeded.ts";
import { stage } from "./stage.ts";
import { accounts, transfer } from "./transfers.ts";

const kills = 15;
const killingTime = 60_000;
const count = 300;

test("H057 killed at random while steps write: each completed step is applied once, and no other", async (context) => {
  const random = seeded("transactional steps under SIGKILL");
  const { admin, url, notes } = await stage(context);
  await (await createOrchestrator({ workflows: [transfer], store: postgresStore(url), turnTimeout: false })).close();
  await admin`insert into accounts ${admin(accounts.map((name) => ({ name, balance: 0 })))}`;
  const begin = (): ChildProcess => forkProcess(join(import.meta.dirname, "transfers-process.ts"), { url, count });
  let child = begin();
  context.after(() => child.kill("SIGKILL"));
  let killed = 0;
  let done = false;
  const began = performance.now();
  while (killed < kills && performance.now() - began < killingTime) {
    let [said]: unknown[] = await Promise.race([once(child, "message"), ended(child)]);
    assert.equal(said, "ready");
    [said] = await Promise.race([once(child, "message"), pause(100 + random.whole(900), ["kill"])]);
    done = said === "done";
    if (done) break;
    const gone = child.exitCode === null && child.signalCode === null ? once(child, "exit") : undefined;
    child.kill("SIGKILL");
    await gone;
    assert.equal(child.exitCode, null, "the process ended by itself");
    killed += 1;
    child = begin();
  }
  while (!done) done = (await Promise.race([once(child, "message"), ended(child)]))[0] === "done";

  const rows = await admin<{ run: string; events: string }[]>`select run, events from wovyr.history order by run, seq`;
  const expected: string[] = [];
  const ends = new Map<string, number>();
  for (const { run, events } of rows)
    for (const fact of JSON.parse(events) as HistoryFact[]) {
      ends.set(fact.type, (ends.get(fact.type) ?? 0) + 1);
      if (fact.type === "ActivityCompleted") expected.push(`${run}/${fact.effect}`);
    }
  assert.deepEqual([...(await notes())].sort(), expected.sort(), "the ledger holds what history says, each once");
  const [sum] = await admin`select sum(balance)::int as sum from accounts`;
  assert.equal(sum?.sum, 0);
  const told = ["ActivityCompleted", "ActivityFailed", "EffectCancelled", "AttemptLost"].map((type) => `${ends.get(type) ?? 0} ${type}`);
  console.log(`${count} transfers, ${killed} kills: ${told.join(", ")}`);
});

async function ended(child: ChildProcess): Promise<never> {
  const [code, signal] = await once(child, "exit");
  throw new Error(`the process ended by itself (${code ?? signal})`);
}
