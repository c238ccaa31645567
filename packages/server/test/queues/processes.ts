/** Orchestrators and workers as child processes over one Postgres: started, killed, frozen, thawed. */
import type { ChildProcess } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { TestContext } from "node:test";
import { type Client, createClient } from "@wovyr/sdk/client";
import { forkProcess } from "../processes.ts";
import { freePort } from "../recovery/free-port.ts";
import { within } from "../recovery/until.ts";
import { createDatabase } from "../store/postgres-database.ts";

const startLimit = 60_000;

export type Place = {
  readonly client: Client;
  readonly url: string;
  /** Where workers record what they do. */
  readonly record: string;
  orchestrator(): Promise<ChildProcess>;
  worker(id: string, options?: { readonly lease?: number; readonly concurrency?: number }): Promise<ChildProcess>;
  /** Lines of the record that begin so. */
  lines(beginning: string): readonly string[];
};

export async function place(context: Pick<TestContext, "after">): Promise<Place> {
  const directory = mkdtempSync(join(tmpdir(), "wovyr-queues-"));
  const record = join(directory, "record");
  writeFileSync(record, "");
  const database = await createDatabase();
  const port = await freePort();
  const url = `http://127.0.0.1:${port}`;
  const children: ChildProcess[] = [];
  context.after(async () => {
    await Promise.all(children.map(destroyed));
    await database.drop();
    rmSync(directory, { recursive: true, force: true, maxRetries: 5 });
  });
  const started = async (file: string, options: object): Promise<ChildProcess> => {
    const child = forkProcess(join(import.meta.dirname, file), options);
    children.push(child);
    await within(`the start of ${file}`, startLimit, once(child, "message"));
    return child;
  };
  return {
    client: createClient({ url, retry: { maxAttempts: 100, maxDuration: "2m" } }),
    url,
    record,
    orchestrator: () => started("orchestrator-process.ts", { database: database.url, port }),
    worker: (id, { lease = 1_500, concurrency = 10 } = {}) => started("worker-process.ts", { url, id, record, lease, concurrency }),
    lines: (beginning) =>
      readFileSync(record, "utf8")
        .split("\n")
        .filter((line) => line.startsWith(beginning)),
  };
}

/** SIGKILL, also of one that is frozen, and waits for the end. */
export async function destroyed(child: ChildProcess): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return;
  child.kill("SIGKILL");
  await once(child, "exit");
}
