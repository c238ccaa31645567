/** Several orchestrators of one process over one store, each behind its own HTTP server. */
import type { TestContext } from "node:test";
import type { AnyWorkflow } from "@wovyr/sdk";
import { type Client, createClient } from "@wovyr/sdk/client";
import { shardOf } from "../../src/engine/shard-of.ts";
import { createOrchestrator, memoryStore, type Orchestrator, type OrchestratorOptions } from "../../src/index.ts";
import { until } from "../recovery/until.ts";

export type Node = { readonly orchestrator: Orchestrator; readonly url: string; readonly client: Client; readonly local: Client };

export type Nodes = {
  readonly all: readonly Node[];
  /** An id that belongs to a node. */
  idOf(node: Node, prefix?: string): Promise<string>;
  open(options?: Partial<OrchestratorOptions>): Promise<Node>;
};

const silent = { debug() {}, info() {}, warn() {}, error() {} };

export async function nodes(
  context: Pick<TestContext, "after">,
  count: number,
  workflows: readonly AnyWorkflow[],
  options: Partial<OrchestratorOptions> = {},
): Promise<Nodes> {
  const store = options.store ?? memoryStore({ shared: true });
  const all: Node[] = [];
  context.after(() => Promise.all(all.map(({ orchestrator }) => orchestrator.close())));
  const open = async (own: Partial<OrchestratorOptions> = {}) => {
    const orchestrator = await createOrchestrator({ workflows, store, log: silent, turnTimeout: false, ...options, ...own });
    const url = await orchestrator.listen({ port: 0 });
    const node = { orchestrator, url, client: createClient({ url, retry: { maxAttempts: 1 } }), local: orchestrator.client };
    all.push(node);
    return node;
  };
  for (let index = 0; index < count; index += 1) await open();
  await evenly(all);
  return {
    all,
    open: async (own) => {
      const node = await open(own);
      await evenly(all);
      return node;
    },
    async idOf(node, prefix = "id") {
      const { shards, nodes } = await node.local.cluster();
      const own = new Set(nodes.find(({ url }) => url === node.url)?.shards);
      for (let n = 0; ; n += 1) if (own.has(shardOf("default", `${prefix}-${n}`, shards))) return `${prefix}-${n}`;
    },
  };
}

/** Waits until each of the nodes knows of the same shares of all. */
export async function evenly(all: readonly Node[]): Promise<void> {
  await until("the shards are spread", async () => {
    const seen = await Promise.all(all.map(({ local }) => local.cluster()));
    return seen.every(
      ({ nodes, unowned, shards }) =>
        nodes.length === all.length &&
        nodes.every((node) => node.url !== undefined && Math.abs(node.shards.length - shards / all.length) < 1) &&
        unowned.length === 0,
    );
  });
}
