/**
 * Which shards this node owns, and until when.
 *
 * 1. A shard is owned from a successful claim or renewal until the lease that was asked for then runs out, counted from before the request was sent.
 * 2. For now one node owns all shards of its group, or none: it claims until it has them all, and stands by meanwhile.
 * 3. What was lost is claimed again; between loss and claim nothing runs.
 */
import { WovyrError } from "@wovyr/sdk";
import { Members } from "./members.ts";
import type { Clock } from "./ports/clock.ts";
import type { EngineLog } from "./ports/log.ts";
import { type Beat, type ShardEpoch, type Store, StoreUnavailableError } from "./ports/store.ts";

export type OwnershipOptions = {
  readonly store: Store;
  readonly clock: Clock;
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
  /** Owners among the given that are known to be dead. */
  readonly deadOwners: (owners: readonly string[]) => readonly string[];
  readonly acquired: () => void;
  readonly lost: () => void;
};

const retryMilliseconds = 500;
/** A node that stands by looks this often whether the owner has died or has given up its shards. */
const standbyMilliseconds = 1_000;

export class Ownership {
  readonly members: Members;
  readonly #options: OwnershipOptions;
  #epochs = new Map<number, number>();
  #first = 0;
  #validUntil = Number.NEGATIVE_INFINITY;
  #owned = false;
  #stopped = false;
  #heldBy: string | undefined;
  #unreachable: StoreUnavailableError | undefined;
  #cancelTimer: (() => void) | undefined;
  #renewing: Promise<void> | undefined;

  constructor(options: OwnershipOptions) {
    this.#options = options;
    this.members = new Members(options.node);
  }

  async #beat(about: Pick<Beat, "dead" | "take" | "give">): Promise<{ owned: ShardEpoch[]; others: string[] }> {
    const { store, group, shards, node, url, release, workflows, lease } = this.#options;
    const heard = await store.beat({ group, shards, node, url: url(), release, workflows, draining: this.#stopped, lease, ...about });
    this.members.heard(heard);
    const owned = heard.shards.filter(({ owner }) => owner === node).map(({ shard, epoch }) => ({ shard, epoch }));
    return { owned, others: heard.nodes.map((each) => each.node).filter((name) => name !== node) };
  }

  /** Whether this node may act now. */
  get holds(): boolean {
    return this.#owned && this.#options.clock.now() < this.#validUntil;
  }

  /** Who owns the shards when this node does not. */
  get heldBy(): string | undefined {
    return this.#heldBy;
  }

  /** Why the last claim or renewal failed, when the store could not be reached for it. */
  get unreachable(): StoreUnavailableError | undefined {
    return this.#unreachable;
  }

  get shards(): readonly number[] {
    return [...this.#epochs.keys()];
  }

  /** The number of the group's first shard. */
  get firstShard(): number {
    return this.#first;
  }

  epochOf(shard: number): number | undefined {
    return this.#epochs.get(shard);
  }

  /** Claims until all shards are owned or `patience` milliseconds have passed; goes on trying after that. */
  async start(patience: number): Promise<void> {
    const deadline = this.#options.clock.now() + patience;
    for (;;) {
      const wait = await this.#claim();
      if (this.#owned || this.#stopped || this.#options.clock.now() >= deadline) {
        if (!this.#owned && !this.#stopped) this.#claimLater(wait);
        return;
      }
      await new Promise<void>((resolve) => {
        this.#options.clock.wakeAt(this.#options.clock.now() + wait, resolve);
      });
    }
  }

  async release(): Promise<void> {
    this.#stopped = true;
    this.#cancelTimer?.();
    if (!this.#owned) return;
    this.#owned = false;
    const { store, group, node } = this.#options;
    await store.leave(group, node).catch(() => {});
  }

  /** One try; returns how long to wait before the next. */
  async #claim(): Promise<number> {
    const { clock, log, group, shards, lease, deadOwners } = this.#options;
    const sent = clock.now();
    try {
      let { owned, others } = await this.#beat({ take: "free", give: [] });
      this.#unreachable = undefined;
      const dead = deadOwners(others);
      if (dead.length > 0) ({ owned, others } = await this.#beat({ take: "free", give: [], dead }));
      this.#epochs = new Map(owned.map(({ shard, epoch }) => [shard, epoch]));
      if (owned.length === shards) {
        this.#first = Math.min(...this.#epochs.keys());
        this.#validUntil = sent + lease;
        this.#owned = true;
        this.#heldBy = undefined;
        this.#renewLater();
        this.#options.acquired();
        return 0;
      }
      // Half an ownership is of no use to anyone: give back what was granted.
      await this.#beat({ take: [], give: owned });
      const holder = others[0] ?? "another node";
      if (this.#heldBy !== holder)
        log.warn(
          `${shards - owned.length} of ${shards} shards of group "${group}" belong to ${holder}; this node stands by until its lease ends`,
          { holder },
        );
      this.#heldBy = holder;
      return standbyMilliseconds;
    } catch (error) {
      if (error instanceof StoreUnavailableError) this.#unreachable = error;
      else {
        if (error instanceof WovyrError) throw error;
        log.error("claiming shards failed; it is tried again", { error });
      }
      return retryMilliseconds;
    }
  }

  #claimLater(wait: number): void {
    const { clock } = this.#options;
    this.#cancelTimer = clock.wakeAt(clock.now() + wait, () => {
      if (this.#stopped) return;
      this.#claim().then(
        (next) => {
          if (!this.#owned) this.#claimLater(next);
        },
        (error) => this.#options.log.error("claiming shards failed for good", { error }),
      );
    });
  }

  #renewLater(): void {
    const { clock, lease } = this.#options;
    this.#cancelTimer = clock.wakeAt(clock.now() + Math.floor(lease / 3), () => void this.#renew());
  }

  /** Asks the store now whether the shards are still owned: a refused turn hints at another owner long before the lease is to be renewed. */
  verify(): Promise<void> {
    if (!this.#owned) return Promise.resolve();
    this.#cancelTimer?.();
    return this.#renew();
  }

  /** One renewal at a time. */
  #renew(): Promise<void> {
    this.#renewing ??= this.#renewNow().finally(() => {
      this.#renewing = undefined;
    });
    return this.#renewing;
  }

  async #renewNow(): Promise<void> {
    if (this.#stopped) return;
    const { clock, log, lease } = this.#options;
    const sent = clock.now();
    try {
      const { owned } = await this.#beat({ take: [], give: [] });
      const renewed = owned.filter(({ shard, epoch }) => this.#epochs.get(shard) === epoch);
      this.#unreachable = undefined;
      if (this.#stopped) return;
      if (renewed.length === this.#epochs.size) {
        const lapsed = clock.now() >= this.#validUntil;
        this.#validUntil = sent + lease;
        this.#renewLater();
        if (lapsed) this.#options.acquired();
        return;
      }
      log.warn("another node took shards over; this one drops what it has of them and stands by");
      this.#lose();
    } catch (error) {
      if (this.#stopped) return;
      if (error instanceof StoreUnavailableError) this.#unreachable = error;
      else log.error("renewing the lease failed; it is tried again", { error });
      this.#cancelTimer = clock.wakeAt(clock.now() + Math.min(retryMilliseconds, lease / 6), () => void this.#renew());
    }
  }

  #lose(): void {
    this.#owned = false;
    this.#options.lost();
    this.#claimLater(retryMilliseconds);
  }
}
