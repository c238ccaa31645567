/**
 * Which nodes live, and who owns which shard.
 *
 * 1. Taking a shard raises its epoch; nothing else changes an epoch.
 * 2. The shards of a group are numbered consecutively, and no number belongs to two groups.
 * 3. Every owner is a node of the table.
 */
import { WovyrError } from "@wovyr/sdk";
import type { Beat, Membership, NodeRow, ShardEpoch } from "../../engine/ports/store.ts";
import { compareText } from "../text-order.ts";

type Shard = {
  readonly shard: number;
  epoch: number;
  owner: string | undefined;
  needs: string | undefined;
};

type Node = Omit<NodeRow, "remaining"> & { readonly leaseUntil: number };

type Group = { readonly shards: readonly Shard[]; readonly nodes: Map<string, Node> };

export function shardCountMismatch(group: string, has: number, asked: number): WovyrError {
  return new WovyrError(`group "${group}" was created with ${has} shards and cannot be opened with ${asked}`, { code: "INVALID_OPTION" });
}

export class ShardTable {
  readonly #shards: (Shard | undefined)[] = [];
  readonly #groups = new Map<string, Group>();

  beat(beat: Beat, now: number): Membership {
    const { node, url, release, workflows, draining } = beat;
    const group = this.#group(beat.group, beat.shards);
    const row = { node, ...(url !== undefined && { url }), release, workflows: [...workflows], draining };
    group.nodes.set(node, { ...row, leaseUntil: now + beat.lease });
    for (const [name, { leaseUntil }] of group.nodes)
      if (name !== node && (leaseUntil <= now || beat.dead?.includes(name))) remove(group, name);
    for (const { shard, epoch, needs } of beat.give) {
      const known = this.#shards[shard];
      if (known?.owner !== node || known.epoch !== epoch) continue;
      known.owner = undefined;
      known.needs = needs ?? known.needs;
    }
    for (const shard of group.shards) {
      if (shard.owner !== undefined || (beat.take !== "free" && !beat.take.includes(shard.shard))) continue;
      shard.epoch += 1;
      shard.owner = node;
    }
    return membership(group, now);
  }

  leave(group: string, node: string): void {
    const known = this.#groups.get(group);
    if (known !== undefined) remove(known, node);
  }

  /** Nobody lives any more. */
  releaseAll(): void {
    for (const group of this.#groups.values()) for (const node of [...group.nodes.keys()]) remove(group, node);
  }

  /** Those of the shards that are owned with exactly the given epoch. */
  fence(shards: readonly ShardEpoch[]): Set<number> {
    const owned = new Set<number>();
    for (const { shard, epoch } of shards) {
      const known = this.#shards[shard];
      if (known !== undefined && known.owner !== undefined && known.epoch === epoch) owned.add(shard);
    }
    return owned;
  }

  get isEmpty(): boolean {
    return this.#groups.size === 0;
  }

  /** Where the shards of a group begin, and how many there are. */
  span(name: string): { readonly first: number; readonly shards: number } | undefined {
    const shards = this.#groups.get(name)?.shards;
    const [first] = shards ?? [];
    return first && { first: first.shard, shards: shards?.length ?? 0 };
  }

  /** Makes a group whose shards begin at a number. */
  make(name: string, count: number, first = this.#shards.length): void {
    this.#group(name, count, first);
  }

  #group(name: string, count: number, first = this.#shards.length): Group {
    const known = this.#groups.get(name);
    if (known !== undefined) {
      if (known.shards.length !== count) throw shardCountMismatch(name, known.shards.length, count);
      return known;
    }
    const shards = Array.from(
      { length: count },
      (_, slot): Shard => ({ shard: first + slot, epoch: 0, owner: undefined, needs: undefined }),
    );
    for (const shard of shards) this.#shards[shard.shard] = shard;
    const created = { shards, nodes: new Map<string, Node>() };
    this.#groups.set(name, created);
    return created;
  }
}

function remove({ shards, nodes }: Group, node: string): void {
  nodes.delete(node);
  for (const shard of shards) if (shard.owner === node) shard.owner = undefined;
}

function membership({ shards, nodes }: Group, now: number): Membership {
  return {
    nodes: [...nodes.values()]
      .sort((a, b) => compareText(a.node, b.node))
      .map(({ leaseUntil, ...node }) => ({ ...node, remaining: Math.max(0, leaseUntil - now) })),
    shards: shards.map(({ shard, epoch, owner, needs }) => ({
      shard,
      epoch,
      ...(owner !== undefined && { owner }),
      ...(needs !== undefined && { needs }),
    })),
  };
}
