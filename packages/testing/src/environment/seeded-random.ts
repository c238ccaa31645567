/** Randomness that a seed repeats: mulberry32. */
import type { Random } from "@wovyr/server/internal";

export class SeededRandom implements Random {
  readonly seed: number;
  #state: number;

  constructor(seed: number) {
    this.seed = seed;
    this.#state = seed | 0;
  }

  /** Begins anew: what comes next is what came first. */
  restart(): void {
    this.#state = this.seed | 0;
  }

  fraction(): number {
    this.#state = (this.#state + 0x6d2b79f5) | 0;
    let mixed = Math.imul(this.#state ^ (this.#state >>> 15), 1 | this.#state);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 4294967296;
  }

  bytes(length: number): Uint8Array {
    return Uint8Array.from({ length }, () => Math.floor(this.fraction() * 256));
  }

  /** A whole number from 0 to `below` - 1. */
  below(below: number): number {
    return Math.floor(this.fraction() * below);
  }

  /** One of the given items. */
  pick<T>(items: readonly T[]): T {
    if (items.length === 0) throw new Error("there is nothing to pick from");
    return items[this.below(items.length)] as T;
  }
}
