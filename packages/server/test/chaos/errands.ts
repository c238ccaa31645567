/** Work for the workers: runs whose activity is on a task queue, started at any node, each with a result of its own. */
import assert from "node:assert/strict";
import type { ChildProcess } from "node:child_process";
import { once } from "node:events";
import { join } from "node:path";
import type { Client } from "@wovyr/sdk/client";
import { forkProcess } from "../processes.ts";
import { single } from "../queues/work.ts";
import { within } from "../recovery/until.ts";

export type ChaosWorker = {
  readonly name: string;
  process: ChildProcess;
  restart(): Promise<void>;
};

const startLimit = 60_000;
/** Milliseconds. */
const lease = 2_000;

/** A worker as a process, which speaks to one node. */
export async function startWorker(name: string, url: string, record: string): Promise<ChaosWorker> {
  const launch = async () => {
    const child = forkProcess(join(import.meta.dirname, "../queues/worker-process.ts"), { url, id: name, record, lease, concurrency: 10 });
    await within(`the start of ${name}`, startLimit, once(child, "message"));
    return child;
  };
  const worker: ChaosWorker = {
    name,
    process: await launch(),
    async restart() {
      worker.process = await launch();
    },
  };
  return worker;
}

/** SIGKILL, also of one that is frozen, and waits for the end. */
export async function endProcess(child: ChildProcess): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return;
  child.kill("SIGKILL");
  await once(child, "exit");
}

/** A few callers at a time; `stop` resolves with how many runs they began, once all have ended as they should. */
export function runErrands(clients: readonly Client[], callers: number): { stop(): Promise<number> } {
  let stopping = false;
  let next = 0;
  const caller = async () => {
    while (!stopping) {
      const n = next++;
      const client = clients[n % clients.length] as Client;
      const handle = await client.start(single, { n, milliseconds: n % 40 }, { id: `errand-${n}`, idempotencyKey: `errand-${n}` });
      assert.equal((await handle.result()).n, n);
    }
  };
  const all = Promise.all(Array.from({ length: callers }, caller));
  all.catch(() => {});
  return {
    async stop() {
      stopping = true;
      await all;
      return next;
    },
  };
}
