import assert from "node:assert/strict";
import type { ChildProcess } from "node:child_process";
import { once } from "node:events";
import { join } from "node:path";
import { test } from "node:test";
import { setTimeout as pause } from "node:timers/promises";
import { forkProcess } from "../processes.ts";
import { held } from "./held.ts";
import { stage } from "./stage.ts";

test("an owner that was frozen in the middle of a step, and was succeeded, commits nothing when it wakes up", async (context) => {
  const { admin, host, notes, url } = await stage(context);
  const workflow = held("taken over", async () => {});
  const child: ChildProcess = forkProcess(join(import.meta.dirname, "held-process.ts"), { url });
  context.after(() => child.kill("SIGKILL"));
  assert.deepEqual((await once(child, "message"))[0], "written");
  child.kill("SIGSTOP");
  const idle = await admin`select pid from pg_stat_activity where datname = current_database() and state = 'idle in transaction'`;
  assert.equal(idle.length, 1);
  const session = Number(idle[0]?.pid);
  const open = () => admin`select from pg_stat_activity where pid = ${session} and xact_start is not null`;

  const { client } = await host([workflow], { lease: 1_000 });
  assert.equal(await client.handle(workflow, "held").result(), "taken over");
  assert.equal((await open()).length, 1, "the transaction of the frozen one is still open");

  child.kill("SIGCONT");
  child.send("go on");
  assert.deepEqual((await once(child, "message"))[0], "returns");
  const patience = performance.now() + 20_000;
  while (performance.now() < patience && (await open()).length > 0) await pause(20);
  assert.equal((await open()).length, 0);
  assert.deepEqual(await notes(), ["taken over"]);
});
