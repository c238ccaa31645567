/** The group of this node, as `GET /v1/cluster` shows it. */
import type { ClusterDescription } from "@wovyr/sdk/internal";
import type { Engine } from "./engine.ts";
import { isOwnWorkflow } from "./registry.ts";

export function clusterOf({ ownership, options }: Engine): ClusterDescription {
  const { members } = ownership;
  const { group, node, shards } = options;
  const rows = [...members.shards];
  const first = Math.min(...rows.map(({ shard }) => shard));
  return {
    group,
    node,
    nodes: members.all.map(({ node, url, release, workflows, draining, shards, leaseUntil }) => ({
      node,
      ...(url !== undefined && { url }),
      release,
      workflows: workflows.filter((label) => !isOwnWorkflow(label)),
      state: draining ? "draining" : "active",
      shards: shards.map((shard) => shard - first),
      leaseUntil: new Date(leaseUntil),
    })),
    shards,
    unowned: rows.flatMap(({ shard }) => (members.ownerOf(shard) === undefined ? [shard - first] : [])),
  };
}
