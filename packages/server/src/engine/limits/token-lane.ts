/**
 * The attempts of this node that wait for the tokens of a rate limit.
 *
 * 1. No more tokens are asked for than there are places for: a token that is kept is one that begins at another time than it was granted for.
 */
import type { TokenAsk } from "../ports/limits.ts";
import type { WaitingAttempts } from "../scheduling/waiting.ts";
import type { TokenLimit } from "./limits-of.ts";
import type { Pass } from "./pass.ts";

/** Those that are kept in order though they wait no longer. */
const slack = 100;

export class TokenLane {
  readonly limit: TokenLimit;
  readonly waiting = new Set<Pass>();
  askAt = Number.POSITIVE_INFINITY;
  readonly #order: WaitingAttempts<Pass>;

  constructor(limit: TokenLimit, order: WaitingAttempts<Pass>) {
    this.limit = limit;
    this.#order = order;
  }

  get isIdle(): boolean {
    return this.waiting.size === 0;
  }

  add(pass: Pass): void {
    this.waiting.add(pass);
    this.#order.add(pass);
  }

  remove(pass: Pass): void {
    this.waiting.delete(pass);
    this.#compact();
  }

  /** Those that wait no longer are let go of when they are the most. */
  #compact(): void {
    if (this.#order.size <= 2 * this.waiting.size + slack) return;
    this.#order.clear();
    for (const pass of this.waiting) this.#order.add(pass);
  }

  /** The next one that waits: a token is there for it. */
  next(): Pass | undefined {
    while (this.waiting.size > 0) {
      const pass = this.#order.take();
      if (pass === undefined || this.waiting.delete(pass)) return pass;
    }
    return undefined;
  }

  ask(room: number): TokenAsk {
    const { tenant, name, limit, per } = this.limit;
    return { tenant, name, limit, per, wanted: Math.min(this.waiting.size, room) };
  }
}
