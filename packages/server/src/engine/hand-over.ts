/**
 * Giving up shards in good order, while the others work on.
 *
 * 1. No attempt of theirs begins any more; those that run may end. If they have not after `patience`, what is asked for is not done, unless it must be: then
 *    each is stopped, and recorded as lost to a shutdown, which counts as no loss and is made again by the next owner. One that may run once at most is never
 *    stopped so that shares are even.
 * 2. Nothing is said to their runs any more; what was said is made into turns, and these become durable.
 * 3. What is in memory of them is dropped, and only then may another node have them.
 * 4. What goes wrong on the way (the store does not answer) leaves the shards where they are.
 */
import { ApiError } from "@wovyr/sdk";
import { movedAway } from "./attempts.ts";
import type { Engine } from "./engine.ts";
import type { TooMany } from "./ownership.ts";
import { atMost, pause } from "./pause.ts";
import { workflowLabel } from "./registry.ts";

/** How long attempts may take to end before shards stay for now, in milliseconds. */
const attemptPatience = 1_000;
/** How long turns may take to become durable. */
const turnPatience = 2_000;
/** Between two looks whether they are, in milliseconds. */
const glance = 5;
/** Shards that are given up at once. */
const batch = 64;
/** A shard whose attempts did not end is left alone for so long, and so often. */
const retryPause = 10_000;
const tries = 3;
/** A shard is offered once in so many milliseconds for a workflow that is missing here. */
const offerPause = 60_000;

type Refusals = { count: number; until: number };

export class HandOver {
  readonly #engine: Engine;
  /** Shards to whose runs nothing is said any more. */
  readonly #closing = new Set<number>();
  readonly #refused = new Map<number, Refusals>();
  readonly #offered = new Map<number, number>();
  /** What other nodes had when runs without code were looked at. */
  #elsewhere = "";
  #underWay: Promise<void> | undefined;

  constructor(engine: Engine) {
    this.#engine = engine;
  }

  /** Whether nothing is to be said to runs of a shard, because it is about to be another node's. */
  isClosing(shard: number): boolean {
    return this.#closing.size > 0 && this.#closing.has(shard);
  }

  get idle(): boolean {
    return this.#underWay === undefined;
  }

  /** This node owns so many shards too many. One hand-over at a time. */
  shed(tooMany: readonly TooMany[]): void {
    if (this.#underWay !== undefined || this.#engine.closing) return;
    const all = tooMany.flatMap(({ of, excess, unfit }) => [...unfit, ...this.#choose(of, excess - unfit.length)]);
    const chosen = new Set(all.slice(0, batch));
    if (chosen.size > 0) this.#begin(() => this.#shed(chosen));
  }

  /** A run of the shard needs a workflow that another node has. True when the shard is given up for it. */
  offer(shard: number, needs: string): boolean {
    const now = this.#engine.now();
    if ((this.#offered.get(shard) ?? Number.NEGATIVE_INFINITY) > now - offerPause) return false;
    this.#offered.set(shard, now);
    const before = this.#underWay ?? Promise.resolve();
    this.#begin(async () => {
      await before;
      if (this.#engine.closing || !this.#engine.ownership.owns(shard)) return;
      this.#engine.options.log.info(`a shard is offered to a node that has workflow "${needs}"`, { shard });
      await this.#shed(new Set([shard]), needs);
      if (this.#engine.ownership.owns(shard)) this.#offerLater(shard, needs);
    });
    return true;
  }

  /** It could not go yet. If nobody has the workflow any more then, what was turned away for it comes again. */
  #offerLater(shard: number, needs: string): void {
    const { ownership, options } = this.#engine;
    options.clock.wakeAt(this.#engine.now() + retryPause, () => {
      if (this.#engine.closing || !ownership.owns(shard)) return;
      this.#offered.delete(shard);
      if (!ownership.members.othersHave(needs) || !this.offer(shard, needs)) this.#stay(new Set([shard]));
    });
  }

  /** Offers the shards of runs that are in memory without their code, when nodes have come that have it. */
  offerAll(): void {
    const { ownership, table } = this.#engine;
    const elsewhere = ownership.members.all
      .map(({ node, draining, workflows }) => (draining ? "" : `${node} ${workflows.join()}`))
      .join("\n");
    if (elsewhere === this.#elsewhere) return;
    this.#elsewhere = elsewhere;
    for (const { identity, definition, state } of [...table.values()]) {
      if (definition !== undefined || state.closed) continue;
      const label = workflowLabel(identity.workflow, identity.version);
      if (ownership.members.othersHave(label)) this.offer(identity.shard, label);
    }
  }

  /** The node is on its way out: gives up every shard, those of which nothing runs at once, and the others when that has ended or `over` has come. */
  async giveUpAll(over: Promise<void>): Promise<void> {
    await this.#underWay;
    const { ownership, dispatch } = this.#engine;
    const all = new Set(ownership.shards);
    const ended = dispatch.hold(all);
    await this.#close(this.#without(all, this.#atWork(all)), undefined);
    await Promise.race([ended, over]);
  }

  #begin(work: () => Promise<void>): void {
    const underWay = work()
      .catch((error) => this.#engine.options.log.warn("shards could not be handed over; it is tried again", { error }))
      .finally(() => {
        if (this.#underWay === underWay) this.#underWay = undefined;
      });
    this.#underWay = underWay;
  }

  /** Those of which nothing runs come first. */
  #choose(shards: readonly number[], count: number): number[] {
    if (count <= 0) return [];
    const now = this.#engine.now();
    const own = shards.filter((shard) => (this.#refused.get(shard)?.until ?? now) <= now);
    const busy = this.#atWork(new Set(own));
    return [...own.filter((shard) => !busy.has(shard)), ...own.filter((shard) => busy.has(shard))].slice(0, count);
  }

  #atWork(shards: ReadonlySet<number>): Set<number> {
    return new Set(this.#engine.dispatch.runningIn(shards).map(({ attempt }) => attempt.shard));
  }

  #without(shards: ReadonlySet<number>, others: ReadonlySet<number>): Set<number> {
    return new Set([...shards].filter((shard) => !others.has(shard)));
  }

  async #shed(shards: ReadonlySet<number>, needs?: string): Promise<void> {
    const { dispatch, options } = this.#engine;
    await atMost(options.clock, attemptPatience, dispatch.hold(shards));
    const staying = this.#staying(shards);
    dispatch.resume(staying);
    const going = this.#without(shards, staying);
    for (const shard of going) this.#refused.delete(shard);
    await this.#close(going, needs);
  }

  /** Those whose attempts are not stopped: because they may run once at most, or to give them another chance to end. */
  #staying(shards: ReadonlySet<number>): Set<number> {
    const staying = new Set<number>();
    const now = this.#engine.now();
    for (const shard of this.#atWork(shards)) {
      const count = (this.#refused.get(shard)?.count ?? 0) + 1;
      this.#refused.set(shard, { count, until: now + retryPause });
      const once = this.#engine.dispatch.runningIn(new Set([shard])).some(({ attempt }) => attempt.activity.semantics === "atMostOnce");
      if (once || count < tries) staying.add(shard);
    }
    return staying;
  }

  /** From here on the shards go, unless the store does not answer. */
  async #close(shards: ReadonlySet<number>, needs: string | undefined): Promise<void> {
    if (shards.size === 0) return;
    const { dispatch, ownership, revival, table } = this.#engine;
    // What is to be recorded of attempts is recorded of runs that are in memory.
    const absent = dispatch.knownIn(shards).filter(({ run }) => table.get(run) === undefined);
    await Promise.all(absent.map((attempt) => revival.load(attempt)));
    for (const shard of shards) this.#closing.add(shard);
    try {
      const settled = (await this.#quiet(shards)) && (await this.#recordLosses(shards));
      if (!settled) {
        this.#stay(shards);
        return;
      }
      const gone = new Set([...shards].filter((shard) => ownership.owns(shard)));
      const given = ownership.give([...gone].map((shard) => ({ shard, ...(needs !== undefined && { needs }) })));
      this.#engine.shards.drop(gone, handedOver());
      await given;
    } finally {
      for (const shard of shards) this.#closing.delete(shard);
    }
  }

  /** What was asked for and has not ended is made again elsewhere. */
  #recordLosses(shards: ReadonlySet<number>): Promise<boolean> {
    const { dispatch, attempts } = this.#engine;
    attempts.release(dispatch.stopIn(shards, movedAway()), shards);
    return this.#quiet(shards);
  }

  /** Whatever was refused meanwhile, and comes again, is looked for. */
  #stay(shards: ReadonlySet<number>): void {
    const { dispatch, timers, inbox, ownership, closing } = this.#engine;
    for (const shard of shards) this.#closing.delete(shard);
    if (closing) return;
    dispatch.resume(shards);
    const owned = new Set([...shards].filter((shard) => ownership.owns(shard)));
    timers.forget(owned);
    void timers.gained();
    inbox.sweep();
  }

  /** Waits until no turn of the shards is queued, made or saved; false when that takes too long. */
  async #quiet(shards: ReadonlySet<number>): Promise<boolean> {
    const { clock } = this.#engine.options;
    const { revival, stepOutcomes, journal } = this.#engine;
    const latest = clock.now() + turnPatience;
    // One that is loaded anew on the way is not in the table.
    const runs = new Set(revival.loading);
    for (const { identity } of this.#engine.table.values()) if (shards.has(identity.shard)) runs.add(identity.run);
    const isQuiet = () => !this.#anyActive(shards) && stepOutcomes.idle && revival.loading.every((run) => !runs.has(run));
    while (!isQuiet()) {
      if (clock.now() > latest || journal.down !== undefined) return false;
      await atMost(clock, turnPatience, journal.idle());
      await pause(clock, glance);
    }
    return true;
  }

  #anyActive(shards: ReadonlySet<number>): boolean {
    for (const { phase, mailbox, identity } of this.#engine.table.values())
      if (shards.has(identity.shard) && (phase !== "idle" || mailbox.length > 0)) return true;
    return false;
  }
}

/** What is said to a run whose shard is on its way to another node. */
export const handedOver = (): ApiError =>
  new ApiError("The instance is being handed over to another node; try again.", { code: "NOT_OWNER", retryAfter: 200 });
