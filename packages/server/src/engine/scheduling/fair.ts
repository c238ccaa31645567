/**
 * Weighted fair shares: those who have something waiting are served in turn, by their weights, however much of it each has.
 *
 * 1. Each share has a pass, which rises by 1 / weight with each of its attempts that is taken; the lowest is next. One that comes new begins where the
 *    others are: what it did not use before is not made up for.
 * 2. A share that has nothing waiting keeps its pass until the others have come as far, so that coming one by one is no way to be first again and again.
 *    It is forgotten then, and at most `mostIdle` are kept.
 */
import { WovyrError } from "@wovyr/sdk";
import { checkOptions } from "@wovyr/sdk/internal";
import { fifo } from "./fifo.ts";
import { RankedQueue } from "./ranked-queue.ts";
import type { SchedulingQueue, SchedulingStrategy, WaitingAttempt } from "./strategy.ts";
import { checkStrategy } from "./strategy.ts";

export type FairOptions = {
  /** Whose share an attempt counts against; default: that of its tenant. */
  readonly by?: ((waiting: WaitingAttempt) => string) | undefined;
  /** From 0.001 to 1,000; who is not named has 1. */
  readonly weights?: Readonly<Record<string, number>> | undefined;
  /** The order within a share; default first in, first out. */
  readonly within?: SchedulingStrategy | undefined;
};

type Share = { readonly weight: number; readonly queue: SchedulingQueue; pass: number };

const leastWeight = 0.001;
const greatestWeight = 1_000;
const mostIdle = 10_000;
/** Shares that are looked through for idle ones at the earliest. */
const fewShares = 64;

class FairQueue implements SchedulingQueue {
  readonly #by: (waiting: WaitingAttempt) => string;
  readonly #weights: ReadonlyMap<string, number>;
  readonly #within: SchedulingStrategy;
  readonly #shares = new Map<string, Share>();
  /** Those that have something waiting. */
  readonly #active = new RankedQueue<Share>();
  /** How far the one that was served last had come. */
  #pass = 0;
  #size = 0;

  constructor(by: (waiting: WaitingAttempt) => string, weights: ReadonlyMap<string, number>, within: SchedulingStrategy) {
    this.#by = by;
    this.#weights = weights;
    this.#within = within;
  }

  get size(): number {
    return this.#size;
  }

  add(waiting: WaitingAttempt, now: number): void {
    const share = this.#shareOf(this.#by(waiting));
    if (share.queue.size === 0) {
      share.pass = Math.max(share.pass, this.#pass);
      this.#active.add(share, share.pass);
    }
    share.queue.add(waiting, now);
    this.#size += 1;
  }

  take(now: number): WaitingAttempt | undefined {
    const share = this.#active.take();
    if (share === undefined) return undefined;
    const next = share.queue.take(now);
    this.#size -= 1;
    this.#pass = share.pass;
    share.pass += 1 / share.weight;
    if (share.queue.size > 0) this.#active.add(share, share.pass);
    else this.#forgetIdle();
    return next;
  }

  #shareOf(key: string): Share {
    const known = this.#shares.get(key);
    if (known !== undefined) return known;
    const share: Share = { weight: this.#weights.get(key) ?? 1, queue: this.#within.createQueue(), pass: this.#pass };
    this.#shares.set(key, share);
    return share;
  }

  #forgetIdle(): void {
    if (this.#size === 0) {
      this.#shares.clear();
      this.#pass = 0;
      return;
    }
    const active = this.#active.size;
    if (this.#shares.size < fewShares || this.#shares.size < 2 * active) return;
    let kept = 0;
    for (const [key, { queue, pass }] of this.#shares) {
      if (queue.size > 0) continue;
      if (pass <= this.#pass || kept >= mostIdle) this.#shares.delete(key);
      else kept += 1;
    }
  }
}

export function fair(options: FairOptions = {}): SchedulingStrategy {
  checkOptions(options, ["by", "weights", "within"], "fair()");
  const { by = ({ tenant }) => tenant, weights = {}, within = fifo() } = options;
  if (typeof by !== "function")
    throw new WovyrError("by of fair() must be a function of an attempt that waits, such as ({ tenant }) => tenant", {
      code: "INVALID_OPTION",
    });
  checkStrategy(within);
  for (const [key, weight] of Object.entries(weights))
    if (typeof weight !== "number" || !(weight >= leastWeight && weight <= greatestWeight))
      throw new WovyrError(`the weight of ${JSON.stringify(key)} must be a number from ${leastWeight} to ${greatestWeight}`, {
        code: "INVALID_OPTION",
      });
  const known = new Map(Object.entries(weights));
  return Object.freeze({ name: "fair", createQueue: () => new FairQueue(by, known, within) });
}
