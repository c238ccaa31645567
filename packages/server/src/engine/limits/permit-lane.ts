/**
 * The attempts of this node that a limit on how much runs at once is about: those that hold its permits, and those that wait for one.
 *
 * 1. No more hold one than the store has granted, and none begins to after the lease of the grant has ended.
 * 2. While the store is asked nothing begins but in the place of what was told to be in use: what the store makes of the ask is not known until it answers.
 */
import type { PermitAsk, PermitGrant } from "../ports/limits.ts";
import type { WaitingAttempts } from "../scheduling/waiting.ts";
import type { PermitLimit } from "./limits-of.ts";
import type { Pass } from "./pass.ts";

/** Permits that are wanted at once at most. */
const mostWanted = 1_000;
/** Those that are kept in order though they wait no longer. */
const slack = 100;

export class PermitLane {
  readonly limit: PermitLimit;
  /** Since when each holds its permit, in milliseconds since the epoch; the longest first. */
  readonly inUse = new Map<Pass, number>();
  /** Those that wait, in the order in which they came. */
  readonly waiting = new Set<Pass>();
  askAt = Number.POSITIVE_INFINITY;
  validUntil = 0;
  /** Whether other nodes hold or want some. */
  shared = false;
  /** Whether those that wait are being let through. */
  isServing = false;
  #permits = 0;
  /** What the store was told last to be in use or wanted. */
  #told = 0;
  readonly #order: WaitingAttempts<Pass>;

  constructor(limit: PermitLimit, order: WaitingAttempts<Pass>) {
    this.limit = limit;
    this.#order = order;
  }

  /** Whether there is nothing left to know of it, for the store as well. */
  get isIdle(): boolean {
    return this.isEmpty && this.#permits === 0 && this.#told === 0;
  }

  /** Whether nothing uses or wants it. */
  get isEmpty(): boolean {
    return this.inUse.size === 0 && this.waiting.size === 0;
  }

  /** Whether it may use more than it does. */
  get hasSpare(): boolean {
    return this.#permits > this.inUse.size;
  }

  /** Whether all that there are may be used here. */
  get hasAll(): boolean {
    return !this.shared && this.#permits >= this.limit.capacity;
  }

  add(pass: Pass): void {
    pass.asked = false;
    this.waiting.add(pass);
    this.#order.add(pass);
  }

  remove(pass: Pass): void {
    this.waiting.delete(pass);
    this.inUse.delete(pass);
    this.#compact();
  }

  /** Those that wait no longer are let go of when they are the most. */
  #compact(): void {
    if (this.#order.size <= 2 * this.waiting.size + slack) return;
    this.#order.clear();
    for (const pass of this.waiting) this.#order.add(pass);
  }

  /** Gives the next one that waits a permit, when there is one for it. */
  next(now: number): Pass | undefined {
    while (this.waiting.size > 0 && this.hasSpare && now < this.validUntil) {
      const pass = this.#order.take();
      if (pass === undefined) return undefined;
      if (!this.waiting.delete(pass)) continue;
      this.inUse.set(pass, now);
      return pass;
    }
    return undefined;
  }

  ask(): PermitAsk {
    const { tenant, name, capacity, onLimit } = this.limit;
    const inUse = this.inUse.size;
    const wanted = Math.min(this.waiting.size, mostWanted);
    this.#permits = Math.min(this.#permits, inUse);
    this.#told = inUse + wanted;
    if (onLimit === "cancelNewest") for (const pass of this.waiting) pass.asked = true;
    const [oldest = 0] = this.inUse.values();
    return { tenant, name, capacity, inUse, wanted, oldest, evicts: onLimit === "cancelInProgress" };
  }

  granted({ permits, shared }: PermitGrant, validUntil: number): void {
    this.#permits = permits;
    this.shared = shared;
    this.validUntil = validUntil;
  }

  /** The lease of what was granted has ended: there are no permits, and those that held one hold none. */
  lapse(): readonly Pass[] {
    this.#permits = 0;
    return [...this.inUse.keys()];
  }
}
