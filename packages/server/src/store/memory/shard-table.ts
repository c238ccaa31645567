/**
 * Who owns which shard.
 *
 * 1. A claim raises the epoch of every shard that it grants; nothing else changes an epoch.
 * 2. The shards of a group are numbered consecutively, and no number belongs to two groups.
 */
import { WovyrError } from "@wovyr/sdk";
import type { Claim, ClaimRequest, ShardEpoch } from "../../engine/ports/store.ts";

type Shard = {
  readonly shard: number;
  epoch: number;
  owner: string | undefined;
  leaseUntil: number;
};

export function shardCountMismatch(group: string, has: number, asked: number): WovyrError {
  return new WovyrError(`group "${group}" was created with ${has} shards and cannot be opened with ${asked}`, { code: "INVALID_OPTION" });
}

export class ShardTable {
  readonly #shards: Shard[] = [];
  readonly #groups = new Map<string, readonly Shard[]>();

  claim(request: ClaimRequest, now: number): Claim {
    const granted: ShardEpoch[] = [];
    const held: { shard: number; owner: string; remaining: number }[] = [];
    for (const shard of this.#group(request.group, request.shards)) {
      const { owner } = shard;
      if (owner === undefined || owner === request.owner || shard.leaseUntil <= now || request.dead?.includes(owner)) {
        shard.epoch += 1;
        shard.owner = request.owner;
        shard.leaseUntil = now + request.lease;
        granted.push({ shard: shard.shard, epoch: shard.epoch });
      } else {
        held.push({
          shard: shard.shard,
          owner,
          remaining: shard.leaseUntil - now,
        });
      }
    }
    return { granted, held };
  }

  renew(owner: string, shards: readonly ShardEpoch[], lease: number, now: number): ShardEpoch[] {
    const kept = this.#ownedBy(owner, shards);
    for (const shard of kept) shard.leaseUntil = now + lease;
    return kept.map(({ shard, epoch }) => ({ shard, epoch }));
  }

  release(owner: string, shards: readonly ShardEpoch[]): void {
    for (const shard of this.#ownedBy(owner, shards)) shard.owner = undefined;
  }

  releaseAll(): void {
    for (const shard of this.#shards) shard.owner = undefined;
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

  #ownedBy(owner: string, shards: readonly ShardEpoch[]): Shard[] {
    return shards.flatMap(({ shard, epoch }) => {
      const known = this.#shards[shard];
      return known !== undefined && known.owner === owner && known.epoch === epoch ? [known] : [];
    });
  }

  #group(name: string, count: number): readonly Shard[] {
    const known = this.#groups.get(name);
    if (known !== undefined) {
      if (known.length !== count) throw shardCountMismatch(name, known.length, count);
      return known;
    }
    const first = this.#shards.length;
    const created = Array.from(
      { length: count },
      (_, slot): Shard => ({
        shard: first + slot,
        epoch: 0,
        owner: undefined,
        leaseUntil: 0,
      }),
    );
    this.#shards.push(...created);
    this.#groups.set(name, created);
    return created;
  }
}
