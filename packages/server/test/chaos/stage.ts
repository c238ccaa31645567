/** What chaos happens to: a Postgres of its own, orchestrators over it, each behind a network of its own, and workers. */
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { TestContext } from "node:test";
import { type TcpProxy, tcpProxy } from "@wovyr/testing";
import { startPostgres, type TestPostgres } from "../../../../scripts/test-postgres.ts";
import { PostgresDriver } from "../../src/store/postgres/driver.ts";
import { freePort } from "../recovery/free-port.ts";
import type { Ground } from "../recovery/ground.ts";
import { type Host, type HostOptions, startHost } from "../recovery/host.ts";
import { type ChaosWorker, endProcess, startWorker } from "./errands.ts";

export type ChaosNode = {
  readonly name: string;
  readonly url: string;
  /** Between it and the database. */
  readonly network: TcpProxy;
  host: Host;
  /** Starts it again, under the address that it had. */
  restart(): Promise<void>;
};

export type ChaosStage = Pick<Ground, "directory" | "sql"> & {
  readonly postgres: TestPostgres;
  readonly nodes: readonly ChaosNode[];
  readonly workers: readonly ChaosWorker[];
};

/** Milliseconds. */
export const lease = 3_000;

export async function chaosStage(
  context: Pick<TestContext, "after">,
  count: { readonly nodes: number; readonly workers: number },
): Promise<ChaosStage> {
  const directory = mkdtempSync(join(tmpdir(), "wovyr-chaos-"));
  const postgres = await startPostgres();
  const nodes: ChaosNode[] = [];
  const workers: ChaosWorker[] = [];
  context.after(async () => {
    await Promise.all([...nodes.map(({ host }) => host.destroy()), ...workers.map((worker) => endProcess(worker.process))]);
    await Promise.all(nodes.map(({ network }) => network.close()));
    await postgres.stop();
    rmSync(directory, { recursive: true, force: true, maxRetries: 5 });
  });
  for (let at = 0; at < count.nodes; at += 1) {
    const node = await newNode(`node ${at + 1}`, postgres.url, directory);
    nodes.push(node);
    await node.host.url;
  }
  for (let at = 0; at < count.workers; at += 1)
    workers.push(await startWorker(`worker-${at + 1}`, (nodes[at % nodes.length] as ChaosNode).url, join(directory, "errands")));
  return {
    directory,
    postgres,
    nodes,
    workers,
    async sql(work) {
      const connections = { write: 1, read: 1 };
      const driver = new PostgresDriver({
        url: postgres.url,
        prepare: false,
        connections,
        statementDeadline: 30_000,
        connectTimeout: 5_000,
      });
      try {
        return await work(driver);
      } finally {
        await driver.close();
      }
    },
  };
}

async function newNode(name: string, database: string, record: string): Promise<ChaosNode> {
  const network = await tcpProxy(database);
  const port = await freePort();
  const options: HostOptions = {
    store: { kind: "postgres", url: network.url() },
    record,
    port,
    lease,
    shutdownGrace: 1_000,
    statementDeadline: 10_000,
    programs: true,
  };
  const node: ChaosNode = {
    name,
    url: `http://127.0.0.1:${port}`,
    network,
    host: startHost(options),
    async restart() {
      node.host = startHost(options);
      await node.host.url;
    },
  };
  return node;
}
