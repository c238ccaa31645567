/**
 * Who belongs to the group, and who owns which shard, as this node heard it last.
 *
 * 1. It is as old as the last beat, and may be wrong about others: who asks one that does not own the shard any more is told so.
 * 2. What this node owns itself is told by its ownership, which is always right about what it may do.
 */

import type { Membership, NodeRow, ShardRow } from "./ports/store.ts";
import { workflowLabel } from "./registry.ts";
import { compareReleases } from "./spreading.ts";

export type Member = Omit<NodeRow, "remaining"> & {
  /** When its lease ends, by this node's clock, unless it is renewed. */
  readonly leaseUntil: number;
  /** When it was heard of first. */
  readonly since: number;
  /** The shards that it owns, by number. */
  readonly shards: readonly number[];
};

export class Members {
  readonly #self: string;
  #byName: ReadonlyMap<string, Member> = new Map();
  #shards: ReadonlyMap<number, ShardRow> = new Map();
  readonly #listeners = new Set<() => void>();

  constructor(self: string) {
    this.#self = self;
  }

  /** `at`: now. */
  heard({ nodes, shards }: Membership, at: number): void {
    const owned = new Map<string, number[]>(nodes.map(({ node }) => [node, []]));
    for (const { shard, owner } of shards) if (owner !== undefined) owned.get(owner)?.push(shard);
    const known = this.#byName;
    this.#byName = new Map(
      nodes.map(({ remaining, ...row }) => {
        const { node } = row;
        return [node, { ...row, leaseUntil: at + remaining, since: known.get(node)?.since ?? at, shards: owned.get(node) ?? [] }];
      }),
    );
    this.#shards = new Map(shards.map((row) => [row.shard, row]));
    for (const listener of this.#listeners) listener();
  }

  /** The listener is called whenever something was heard. */
  listen(listener: () => void): void {
    this.#listeners.add(listener);
  }

  /** Those that live, by name, this node among them. */
  get all(): readonly Member[] {
    return [...this.#byName.values()];
  }

  /** This node as the others see it; undefined before the first beat. */
  get self(): Member | undefined {
    return this.#byName.get(this.#self);
  }

  /** Whether no other node of the group lives. */
  get alone(): boolean {
    return this.#byName.size === 0 || (this.#byName.size === 1 && this.#byName.has(this.#self));
  }

  /** Who owns a shard; undefined when nobody does, or when it is of another group. */
  ownerOf(shard: number): Member | undefined {
    const owner = this.#shards.get(shard)?.owner;
    return owner === undefined ? undefined : this.#byName.get(owner);
  }

  isOwn(shard: number): boolean {
    return this.#shards.get(shard)?.owner === this.#self;
  }

  /** Whether a shard belongs to this node's group. */
  has(shard: number): boolean {
    return this.#shards.has(shard);
  }

  /** All shards of the group, by number. */
  get shards(): Iterable<ShardRow> {
    return this.#shards.values();
  }

  /** Other nodes that live, and stay, and can run a workflow, in any version where none is given; those of later releases first. */
  thatHave(name: string, version: string | undefined): readonly Member[] {
    const has = (label: string) =>
      version === undefined ? label.startsWith(workflowLabel(name, "")) : label === workflowLabel(name, version);
    return this.all
      .filter(({ node, draining, workflows }) => node !== this.#self && !draining && workflows.some(has))
      .sort((a, b) => compareReleases(b.release, a.release));
  }

  /** Whether another node lives, and stays, that can run a workflow (`name@version`). */
  othersHave(workflow: string): boolean {
    for (const { node, draining, workflows } of this.#byName.values())
      if (node !== this.#self && !draining && workflows.includes(workflow)) return true;
    return false;
  }
}
