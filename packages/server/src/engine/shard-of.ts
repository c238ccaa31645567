/** Which of a group's shards an instance belongs to: FNV-1a of tenant and id. All runs of one id share a shard. */
export function shardOf(tenant: string, id: string, shards: number): number {
  return shardHash(tenant, id) % shards;
}

/** From 0 to 2^32 - 1. */
export function shardHash(tenant: string, id: string): number {
  let hash = 0x811c9dc5;
  for (let i = 0; i < tenant.length; i++) hash = Math.imul(hash ^ tenant.charCodeAt(i), 0x01000193);
  hash = Math.imul(hash ^ 0x1f, 0x01000193);
  for (let i = 0; i < id.length; i++) hash = Math.imul(hash ^ id.charCodeAt(i), 0x01000193);
  return hash >>> 0;
}
