/**
 * Shards come to this node and leave it: what lies in them is recovered, or dropped from memory.
 *
 * 1. One recovery at a time of each database. One that fails is tried again as long as the node owns any of its shards.
 * 2. What another node may have taken is void: nothing of it is acted on any more.
 * 3. A turn that comes when the lease has run out waits until it is renewed.
 */
import { ApiError, type WovyrError } from "@wovyr/sdk";
import type { Engine } from "./engine.ts";
import type { Instance } from "./instance.ts";
import { pause } from "./pause.ts";
import { placesOf, shardsAt } from "./places.ts";
import { StoreUnavailableError } from "./ports/store.ts";
import { recover } from "./recovery.ts";
import { Strikes } from "./strikes.ts";

/** After which a recovery that failed is tried again, in milliseconds. */
const recoveryPause = 500;

export const notOwned = (): ApiError => new ApiError("This node no longer owns the instance; try again.", { code: "NOT_OWNER" });

export class OwnedShards {
  readonly #engine: Engine;
  /** Instances whose turns wait until the lease is renewed. */
  readonly #deferred = new Set<Instance>();
  /** By database. */
  readonly #recovering = new Map<number, Promise<void>>();
  /** Recoveries that are under way or wait for one that is. */
  #recoveries = 0;
  #recovered = false;
  #strikesKnown: Promise<void> | undefined;

  constructor(engine: Engine) {
    this.#engine = engine;
  }

  /** Whether any have been recovered. */
  get recovered(): boolean {
    return this.#recovered;
  }

  get idle(): boolean {
    return this.#recoveries === 0;
  }

  /** While what was noted against runs of shards that were just taken is not known yet: no run is loaded before. */
  get strikesKnown(): Promise<void> | undefined {
    return this.#strikesKnown;
  }

  /** Resolves when those that are owned by now are recovered, or lost again. */
  async whenRecovered(): Promise<void> {
    await Promise.all(this.#recovering.values());
  }

  /** The lease has run out, and a turn of the instance is to be made. */
  defer(instance: Instance): void {
    this.#deferred.add(instance);
  }

  /** The lease had run out, and what is owned is owned still: turns that waited are made, and what was turned away meanwhile is looked for. */
  resumed(): void {
    const { ownership, dispatch, timers } = this.#engine;
    const deferred = [...this.#deferred];
    this.#deferred.clear();
    for (const instance of deferred) this.#engine.queue(instance);
    dispatch.leaseRenewed();
    timers.forget(new Set(ownership.shards));
    this.gained(ownership.shards);
  }

  gained(gained: readonly number[]): void {
    const { dispatch, options } = this.#engine;
    const strikesKnown = (this.#strikesKnown ?? Promise.resolve()).then(() => this.#learnStrikes());
    this.#strikesKnown = strikesKnown;
    void strikesKnown.then(() => {
      if (this.#strikesKnown === strikesKnown) this.#strikesKnown = undefined;
    });
    for (const place of placesOf(options.store)) {
      const shards = shardsAt(options.store, place, gained);
      if (shards.length === 0) continue;
      this.#recoveries += 1;
      dispatch.recovering();
      const before = this.#recovering.get(place) ?? Promise.resolve();
      const recovery = before
        .then(() => Promise.all([this.#recover(place, shards), strikesKnown]))
        .then(() => {
          this.#recoveries -= 1;
          if (this.#recoveries === 0 && !this.#engine.closing) dispatch.recovered();
        });
      this.#recovering.set(place, recovery);
    }
  }

  /** Another node has taken shards, or may. */
  lost(shards: ReadonlySet<number>): void {
    this.#engine.options.log.warn(`${shards.size} shards are not this node's any more; it drops what it has of them`);
    this.drop(shards, notOwned());
  }

  /** Everything in memory of some shards is void. */
  drop(shards: ReadonlySet<number>, reason: WovyrError): void {
    const { timers, dispatch, table, revival, hub, waiters, updates, requests, closing } = this.#engine;
    timers.forget(shards);
    dispatch.forgetShards(shards, reason);
    for (const instance of [...table.values()]) if (shards.has(instance.identity.shard)) this.#dropInstance(instance, reason);
    revival.shardsLost();
    hub.endShards(shards);
    for (const each of [waiters, updates]) each.giveUpShards(shards, reason);
    if (this.#recovered && !closing) requests.start();
  }

  /** Everything in memory is void: nobody acts on it any more. */
  dropAll(reason: WovyrError): void {
    const { housekeeping, timers, requests, taskSweep, unpolledQueues, admissions, heartbeats, table, revival } = this.#engine;
    this.#recovered = false;
    for (const each of [housekeeping, timers, requests, taskSweep, unpolledQueues, heartbeats]) each.stop();
    admissions.forget();
    for (const instance of [...table.values()]) this.#dropInstance(instance, reason);
    revival.clear(reason);
  }

  #dropInstance(instance: Instance, reason: WovyrError): void {
    this.#deferred.delete(instance);
    const { mailbox } = instance;
    instance.mailbox = [];
    this.#engine.table.remove(instance);
    for (const item of mailbox) item.receipt?.refused(reason);
  }

  /** Until it is done, or the shards are not this node's any more. */
  async #recover(place: number, shards: readonly number[]): Promise<void> {
    const engine = this.#engine;
    const { clock, log, localQueues } = engine.options;
    const isOwner = () => !engine.closing && shards.some((shard) => engine.ownership.owns(shard));
    while (isOwner()) {
      try {
        await recover(engine, place, shards);
        if (!isOwner()) return;
        await engine.timers.gained();
        engine.requests.start();
        if (localQueues !== "all") {
          engine.unpolledQueues.start();
          engine.taskSweep.start();
        }
        this.#recovered = true;
        engine.housekeeping.start();
        return;
      } catch (error) {
        if (!(error instanceof StoreUnavailableError)) log.error("recovery failed; it is tried again", { error });
        await pause(clock, recoveryPause);
      }
    }
  }

  async #learnStrikes(): Promise<void> {
    const engine = this.#engine;
    const { clock, log, store } = engine.options;
    while (!engine.closing) {
      try {
        engine.strikes = new Strikes(await store.listStrikes());
        return;
      } catch (error) {
        if (!(error instanceof StoreUnavailableError))
          log.error("turns that never ended could not be looked for; it is tried again", { error });
        await pause(clock, recoveryPause);
      }
    }
  }
}
