/**
 * Which shards a node of a group should take, and how many it should give up: computed by each node for itself, from what all of them heard.
 *
 * 1. Each node that stays owns as many shards as any other, or one more or less.
 * 2. No more shards change hands than that takes: those who own most keep one more.
 * 3. Of what nobody owns, later releases get their share first. A shard that needs a workflow goes to a node that has it, whatever its share, as long as
 *    there is one.
 * 4. Nodes that heard the same come to plans that fit together: no shard is taken by two of them.
 */
import type { ShardRow } from "./ports/store.ts";

export type SpreadNode = {
  readonly node: string;
  readonly release: string;
  readonly workflows: readonly string[];
  readonly draining: boolean;
};

export type Plan = {
  /** How many shards the node should own. */
  readonly share: number;
  /** Shards that nobody owns, and that are for it. */
  readonly take: readonly number[];
  /** How many of its shards it owns too many. */
  readonly excess: number;
  /** Those of its shards that another node should have because of what they need. */
  readonly unfit: readonly number[];
};

type Standing = SpreadNode & { readonly owned: number; share: number; missing: number };

export function spread(nodes: readonly SpreadNode[], shards: readonly ShardRow[], self: string): Plan {
  const staying = standings(nodes, shards);
  const assigned = assign(staying, shards);
  const own = shards.filter(({ owner }) => owner === self);
  const here = staying.find(({ node }) => node === self);
  const share = here?.share ?? 0;
  return {
    share,
    take: shards.filter(({ shard }) => assigned.get(shard) === self).map(({ shard }) => shard),
    // With nobody else to take it, what is owned is kept.
    excess: staying.length === 0 ? 0 : Math.max(0, own.length - share),
    unfit: own.filter(({ needs }) => isElsewhere(staying, needs, here)).map(({ shard }) => shard),
  };
}

/** Those that stay, with their shares; whoever owns most is first. */
function standings(nodes: readonly SpreadNode[], shards: readonly ShardRow[]): Standing[] {
  const owned = new Map<string, number>();
  for (const { owner } of shards) if (owner !== undefined) owned.set(owner, (owned.get(owner) ?? 0) + 1);
  const staying = nodes
    .filter(({ draining }) => !draining)
    .map((node): Standing => ({ ...node, owned: owned.get(node.node) ?? 0, share: 0, missing: 0 }))
    .sort((a, b) => b.owned - a.owned || laterFirst(a, b));
  const even = Math.floor(shards.length / staying.length);
  const rest = shards.length % staying.length;
  for (const [place, node] of staying.entries()) {
    node.share = even + (place < rest ? 1 : 0);
    node.missing = Math.max(0, node.share - node.owned);
  }
  return staying;
}

/** For whom each shard is that nobody owns. */
function assign(staying: readonly Standing[], shards: readonly ShardRow[]): ReadonlyMap<number, string> {
  const assigned = new Map<number, string>();
  const give = (shard: number, node: Standing) => {
    assigned.set(shard, node.node);
    node.missing -= 1;
  };
  const free = shards.filter(({ owner }) => owner === undefined);
  for (const { shard, needs } of free) {
    const able = needs === undefined ? [] : staying.filter(({ workflows }) => workflows.includes(needs));
    const [most] = able.sort((a, b) => b.missing - a.missing || laterFirst(a, b));
    if (most !== undefined) give(shard, most);
  }
  const rest = free.filter(({ shard }) => !assigned.has(shard)).values();
  for (const node of [...staying].sort(laterFirst))
    while (node.missing > 0) {
      const next = rest.next();
      if (next.done) return assigned;
      give(next.value.shard, node);
    }
  return assigned;
}

function isElsewhere(staying: readonly SpreadNode[], needs: string | undefined, here: SpreadNode | undefined): boolean {
  if (needs === undefined || here?.workflows.includes(needs) === true) return false;
  return staying.some(({ workflows }) => workflows.includes(needs));
}

function laterFirst(a: SpreadNode, b: SpreadNode): number {
  return compareReleases(b.release, a.release) || (a.node < b.node ? -1 : 1);
}

/** Orders releases: numbers in them by their size, all else by its characters. "1.10" comes after "1.9". */
export function compareReleases(a: string, b: string): number {
  const [left, right] = [partsOf(a), partsOf(b)];
  for (let at = 0; at < Math.min(left.length, right.length); at += 1) {
    const order = compareParts(left[at] as string, right[at] as string);
    if (order !== 0) return order;
  }
  return left.length - right.length;
}

const partsOf = (release: string): string[] => release.match(/\d+|\D+/g) ?? [];
const isNumber = (part: string): boolean => /^\d/.test(part);

function compareParts(a: string, b: string): number {
  if (isNumber(a) && isNumber(b)) {
    const [left, right] = [a.replace(/^0+(?=\d)/, ""), b.replace(/^0+(?=\d)/, "")];
    if (left.length !== right.length) return left.length - right.length;
    return left === right ? 0 : left < right ? -1 : 1;
  }
  return a === b ? 0 : a < b ? -1 : 1;
}
