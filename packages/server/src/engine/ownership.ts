/**
 * The node's life in its group: it says that it lives, hears who else does, and takes and gives up shards so that all own as many.
 *
 * 1. A node may act until the lease that it asked for last runs out, counted from before the request was sent: `holds`.
 * 2. What it owns is what the store said last; a shard that it has begun to give up is its no more, whatever the store says of it.
 * 3. It looks again soon while shards are to change hands, and seldom when none is. What was noticed elsewhere (a refused turn) makes it look at once.
 * 4. Shards are taken here; they are given up in hand-over.ts, which is told how many are too many.
 */
import { WovyrError } from "@wovyr/sdk";
import { Members } from "./members.ts";
import { pause } from "./pause.ts";
import { placesOf, shardsAt } from "./places.ts";
import type { Clock } from "./ports/clock.ts";
import type { EngineLog } from "./ports/log.ts";
import type { Random } from "./ports/random.ts";
import { type HandedShard, type Membership, type Store, StoreUnavailableError } from "./ports/store.ts";
import { type Plan, spread } from "./spreading.ts";

/** Shards of one database: how many of them are too many, and which another node should have in any case. */
export type TooMany = Pick<Plan, "excess" | "unfit"> & { readonly of: readonly number[] };

export type OwnershipOptions = {
  readonly store: Store;
  readonly clock: Clock;
  readonly random: Random;
  readonly log: EngineLog;
  readonly group: string;
  readonly shards: number;
  readonly node: string;
  /** Where other nodes reach it, once that is known. */
  readonly url: () => string | undefined;
  readonly release: string;
  readonly workflows: readonly string[];
  /** Milliseconds. */
  readonly lease: number;
  /** Nodes among the given that are known to be dead. */
  readonly deadOwners: (nodes: readonly string[]) => readonly string[];
  /** These shards are the node's from now on. */
  readonly gained: (shards: readonly number[]) => void;
  /** Another node has taken these shards, or may. */
  readonly lost: (shards: ReadonlySet<number>) => void;
  /** The node may act again after its lease had run out. */
  readonly resumed: () => void;
  /** Of each database, so many shards are too many. */
  readonly shed: (tooMany: readonly TooMany[]) => void;
  /** All that was heard has been told: what other nodes may have left for this one is worth a look. */
  readonly looked: () => void;
};

const retryMilliseconds = 500;
/** Between two looks while other nodes live. */
const longestPause = 1_000;
/** Between two looks while shards are to change hands; it grows as long as nothing does, but not for a node that waits for some. */
const shortestPause = 100;
const waitingPause = 250;

export class Ownership {
  readonly members: Members;
  readonly #options: OwnershipOptions;
  readonly #epochs = new Map<number, number>();
  /** Given up here, and still the node's in the store. */
  readonly #giving = new Map<number, HandedShard>();
  #first = 0;
  #validUntil = Number.NEGATIVE_INFINITY;
  /** For how long what was heard last was so from then on, in milliseconds. */
  #within = 0;
  #heard = "";
  #pause = shortestPause;
  #draining = false;
  #stopped = false;
  #unreachable: StoreUnavailableError | undefined;
  #cancelTimer = () => {};
  #looking: Promise<void> | undefined;
  #tellStarted = () => {};

  constructor(options: OwnershipOptions) {
    this.#options = options;
    this.members = new Members(options.node);
  }

  /** Whether this node may act now, on what it owns. */
  get holds(): boolean {
    return this.#options.clock.now() < this.#validUntil;
  }

  /** Why the store could not be asked the last time. */
  get unreachable(): StoreUnavailableError | undefined {
    return this.#unreachable;
  }

  get shards(): readonly number[] {
    return [...this.#epochs.keys()];
  }

  get ownsNone(): boolean {
    return this.#epochs.size === 0;
  }

  /** The number of the group's first shard. */
  get firstShard(): number {
    return this.#first;
  }

  owns(shard: number): boolean {
    return this.#epochs.has(shard);
  }

  epochOf(shard: number): number | undefined {
    return this.#epochs.get(shard);
  }

  /** Joins the group; resolves when the node owns its first shards, or after `patience` milliseconds, and goes on by itself then. */
  async start(patience: number): Promise<void> {
    const { clock } = this.#options;
    let cancel = () => {};
    const started = new Promise<void>((resolve) => {
      this.#tellStarted = resolve;
      cancel = clock.wakeAt(clock.now() + patience, resolve);
    });
    try {
      const first = this.#lookNow();
      this.#looking = first
        .catch(() => {})
        .finally(() => {
          this.#looking = undefined;
        });
      await first;
      await started;
    } finally {
      cancel();
    }
  }

  /** Looks now whether all is as it was heard last; one look at a time. */
  verify(): Promise<void> {
    if (this.#stopped) return Promise.resolve();
    this.#looking ??= this.#look().finally(() => {
      this.#looking = undefined;
    });
    return this.#looking;
  }

  /** Resolves when the store has said who owns what, or when the node may not act any more: until then nobody knows. */
  async ascertain(): Promise<void> {
    const { clock } = this.#options;
    for (;;) {
      await this.verify();
      if (this.#unreachable === undefined || this.#stopped || !this.holds) return;
      await pause(clock, retryMilliseconds / 2);
    }
  }

  /** From now on the node takes no shards, and the others know that it leaves. */
  async drain(): Promise<void> {
    this.#draining = true;
    await this.#looking;
    await this.verify();
  }

  /** Nothing of the shards is in memory any more: others may have them. */
  async give(shards: readonly Pick<HandedShard, "shard" | "needs">[]): Promise<void> {
    for (const { shard, needs } of shards) {
      const epoch = this.#epochs.get(shard);
      this.#epochs.delete(shard);
      if (epoch !== undefined) this.#giving.set(shard, { shard, epoch, ...(needs !== undefined && { needs }) });
    }
    await this.#looking;
    await this.verify();
  }

  /** Leaves the group with all that is owned. */
  async release(): Promise<void> {
    if (this.#stopped) return;
    this.#stopped = true;
    this.#validUntil = Number.NEGATIVE_INFINITY;
    this.#cancelTimer();
    this.#tellStarted();
    await this.#looking;
    const { store, group, node } = this.#options;
    await store.leave(group, node).catch(() => {});
  }

  // ── looking ────────────────────────────────────────────────────────────────────────────────────────────

  async #look(): Promise<void> {
    const { log } = this.#options;
    this.#cancelTimer();
    try {
      await this.#lookNow();
    } catch (error) {
      log.error("the node could not say that it lives; it is tried again", { error });
      this.#lookIn(retryMilliseconds);
    }
  }

  /** Rejects when the store refuses for good. */
  async #lookNow(): Promise<void> {
    const { lease, log } = this.#options;
    try {
      await this.#beatUntilSettled();
    } catch (error) {
      if (this.#stopped) return;
      if (error instanceof StoreUnavailableError) this.#unreachable = error;
      else if (error instanceof WovyrError) throw error;
      else log.error("the node could not say that it lives; it is tried again", { error });
      this.#lookIn(Math.min(retryMilliseconds, lease / 6));
    }
  }

  #lookIn(milliseconds: number): void {
    if (this.#stopped) return;
    const { clock } = this.#options;
    this.#cancelTimer();
    this.#cancelTimer = clock.wakeAt(clock.now() + milliseconds, () => void this.verify());
  }

  /** Says that it lives, and once more as long as that made clear what else there is to say. */
  async #beatUntilSettled(): Promise<void> {
    const { node, deadOwners } = this.#options;
    let dead: readonly string[] = [];
    let take: readonly number[] = [];
    for (;;) {
      const heard = await this.#beat(take, dead);
      if (heard === undefined) return;
      const found = deadOwners(this.members.all.map((member) => member.node).filter((name) => name !== node));
      const news = found.length > 0 && dead.length === 0;
      dead = found;
      const plans = this.#plans(heard, found);
      // What was asked for and not given is in somebody's hands for a moment.
      const wanted = this.#draining ? [] : plans.flatMap(({ take }) => take).filter((shard) => !this.#giving.has(shard));
      const isNew = wanted.some((shard) => !take.includes(shard));
      take = wanted;
      if (news || isNew) continue;
      this.#settled(plans, wanted.length > 0, found.length > 0);
      return;
    }
  }

  /** One for each database, of the nodes that live there. */
  #plans({ shards }: Membership, dead: readonly string[]): readonly Plan[] {
    const { store, node } = this.#options;
    const living = this.members.all.filter((member) => !dead.includes(member.node));
    // What the dead had is free with the next beat, which says that they are.
    const left = shards.map(({ owner, ...row }) => (owner === undefined || dead.includes(owner) ? row : { ...row, owner }));
    return placesOf(store).map((place) => {
      const here = new Set(
        shardsAt(
          store,
          place,
          left.map(({ shard }) => shard),
        ),
      );
      return spread(
        living.filter(({ absent }) => absent?.includes(place) !== true),
        left.filter(({ shard }) => here.has(shard)),
        node,
      );
    });
  }

  async #beat(take: readonly number[], dead: readonly string[]): Promise<Membership | undefined> {
    const { store, clock, group, shards, node, url, release, workflows, lease } = this.#options;
    const sent = clock.now();
    const give = [...this.#giving.values()];
    const heard = await store.beat({
      group,
      shards,
      node,
      url: url(),
      release,
      workflows,
      draining: this.#draining,
      lease,
      dead,
      give,
      take,
    });
    this.#unreachable = undefined;
    if (this.#stopped) return undefined;
    const lapsed = this.#validUntil !== Number.NEGATIVE_INFINITY && !this.holds;
    this.#within = heard.within ?? lease;
    this.#validUntil = sent + this.#within;
    this.members.heard(heard, clock.now());
    this.#first = heard.shards[0]?.shard ?? 0;
    this.#compare(heard, give);
    if (lapsed) this.#options.resumed();
    return heard;
  }

  /** What has changed hands since the last time. */
  #compare({ shards }: Membership, given: readonly HandedShard[]): void {
    const { node } = this.#options;
    const owned = new Map(shards.filter(({ owner }) => owner === node).map(({ shard, epoch }) => [shard, epoch]));
    for (const { shard, epoch } of given) if (owned.get(shard) !== epoch) this.#giving.delete(shard);
    const lost = new Set<number>();
    for (const [shard, epoch] of this.#epochs)
      if (owned.get(shard) !== epoch) {
        lost.add(shard);
        this.#epochs.delete(shard);
      }
    const gained = [...owned].filter(([shard]) => !this.#epochs.has(shard) && !this.#giving.has(shard));
    for (const [shard, epoch] of gained) this.#epochs.set(shard, epoch);
    if (lost.size > 0) this.#options.lost(lost);
    if (gained.length > 0) this.#options.gained(gained.map(([shard]) => shard));
  }

  /** Until the next look. */
  #settled(plans: readonly Plan[], refused: boolean, dying: boolean): void {
    const { lease, random, shards, store } = this.#options;
    const share = plans.reduce((sum, plan) => sum + plan.share, 0);
    if (this.#epochs.size > 0 || (share === 0 && !this.members.alone)) this.#tellStarted();
    const most = Math.floor(this.#within < lease ? this.#within / 2 : lease / 3);
    if (this.members.alone) {
      this.#lookIn(most);
      this.#options.looked();
      return;
    }
    const { all } = this.members;
    const heard = JSON.stringify(all.map(({ node, draining, shards: owned }) => [node, draining, owned.length]));
    const inMotion =
      refused ||
      dying ||
      this.#giving.size > 0 ||
      share > this.#epochs.size ||
      all.some(({ draining }) => draining) ||
      this.#ownedByAll < shards;
    const longest = inMotion && share > this.#epochs.size ? waitingPause : longestPause;
    this.#pause = !inMotion ? longestPause : heard === this.#heard ? Math.min(longest, this.#pause * 1.5) : shortestPause;
    this.#heard = heard;
    this.#lookIn(Math.min(most, this.#pause * (0.9 + 0.2 * random.fraction())));
    this.#options.looked();
    if (this.#draining) return;
    const tooMany = plans.map(({ share, excess, unfit }, place): TooMany => {
      const own = shardsAt(store, place, this.shards);
      return { of: own, excess: Math.min(excess, own.length - share), unfit: unfit.filter((shard) => this.#epochs.has(shard)) };
    });
    if (tooMany.some(({ excess, unfit }) => excess > 0 || unfit.length > 0)) this.#options.shed(tooMany);
  }

  get #ownedByAll(): number {
    return this.members.all.reduce((sum, { shards }) => sum + shards.length, 0);
  }
}
