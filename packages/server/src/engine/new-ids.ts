/** Names that this node gives: to runs, to what chance decides for them, and to its turns. */
import type { Engine } from "./engine.ts";
import { newSeed, runIdAfter } from "./run-id.ts";
import { keyPlace } from "./start.ts";

/** Of 256 shards one is found by then, for sure enough. */
const mostDraws = 10_000;

export class NewIds {
  readonly #engine: Engine;
  #nonce = 0;
  #lastRun = "";

  constructor(engine: Engine) {
    this.#engine = engine;
  }

  /** Marks a turn as this node's: unique while the node lives. */
  nonce(): string {
    this.#nonce += 1;
    return `${this.#engine.options.node}#${this.#nonce}`;
  }

  seed(): string {
    return newSeed(this.#engine.options.random);
  }

  /** One that sorts after every other that this engine has made, and after `after`. */
  run(after = ""): string {
    const { clock, random } = this.#engine.options;
    this.#lastRun = runIdAfter(this.#lastRun, clock.now(), random);
    // One that was made elsewhere, by a clock that was ahead, sets no pace for the others.
    return this.#lastRun > after ? this.#lastRun : runIdAfter(after, clock.now(), random);
  }

  /**
   * One that, as the id of an instance, belongs to a shard of this node, while it owns any; over several databases, one in the database in which the starts of
   * an idempotency key are.
   */
  ownRun(tenant: string, idempotencyKey?: string): string {
    const { ownership, options } = this.#engine;
    const { databases } = options.store;
    const isOwn = (shard: number) => this.#engine.mayBegin(shard);
    if (databases === undefined || idempotencyKey === undefined) return ownership.ownsNone ? this.run() : this.runOn(tenant, isOwn);
    const home = databases.placeOf(this.#engine.shardOf(tenant, keyPlace(idempotencyKey)));
    const isHome = (shard: number) => databases.placeOf(shard) === home;
    const owns = ownership.shards.some((shard) => isHome(shard) && isOwn(shard));
    return this.runOn(tenant, owns ? (shard) => isHome(shard) && isOwn(shard) : isHome);
  }

  /** One that, as the id of an instance, belongs to a shard that is wanted. */
  runOn(tenant: string, isWanted: (shard: number) => boolean): string {
    for (let tries = 1; ; tries += 1) {
      const run = this.run();
      if (isWanted(this.#engine.shardOf(tenant, run)) || tries === mostDraws) return run;
    }
  }
}
