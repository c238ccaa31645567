/**
 * The attempts that run alone, because their activities were lost with their process after their begin had been recorded, and may be what ends it.
 *
 * 1. One has its turn at a time, and those that wait are not recorded as begun: they are not lost with the one that ends the process.
 * 2. None has its turn before a recovery has found all of them: those that were lost least come first, so that a process that dies again and again does not
 *    take the same one with it.
 * 3. One waits before its turn, and much longer before its last, as what crashes in a loop is started again: a process that is killed from outside gets on
 *    with all else first, and blames nobody who is innocent as long as it lives for less than that.
 */
import { suspectLosses } from "@wovyr/sdk/internal";
import { type Attempt, attemptKey } from "./attempt.ts";
import type { Clock } from "./ports/clock.ts";

/** Milliseconds that an activity waits that has become suspect; ten times as long after every further loss. */
const firstDelay = 1_000;

type Suspect = { readonly attempt: Attempt; readonly from: number };

export class Suspects {
  readonly #clock: Clock;
  /** A turn may be due that was not before. */
  readonly #due: () => void;
  readonly #waiting: Suspect[] = [];
  /** Whether a recovery has found all of them. */
  #areKnown = false;
  /** The one whose turn it is, by key: until its attempt has ended. */
  #alone: string | undefined;
  #wake: { readonly at: number; readonly cancel: () => void } | undefined;

  constructor(clock: Clock, due: () => void) {
    this.#clock = clock;
    this.#due = due;
  }

  get size(): number {
    return this.#waiting.length;
  }

  /** When time alone gives one its turn; milliseconds since the epoch. */
  get nextDue(): number | undefined {
    return this.#wake?.at;
  }

  add(attempt: Attempt): void {
    const { losses } = attempt.activity;
    const before = this.#waiting.findLastIndex((other) => other.attempt.activity.losses <= losses);
    this.#waiting.splice(before + 1, 0, { attempt, from: this.#clock.now() + firstDelay * 10 ** (losses - suspectLosses) });
    this.#due();
  }

  /** Whether it is the turn of the attempt with this key. */
  isAlone(key: string): boolean {
    return this.#alone === key;
  }

  /** Gives the next one its turn that may begin; those before it that may not are dropped. */
  take(mayBegin: (attempt: Attempt) => boolean): Attempt | undefined {
    this.#endWake();
    while (this.#alone === undefined && this.#areKnown && this.#waiting.length > 0) {
      const now = this.#clock.now();
      const index = this.#waiting.findIndex(({ from }) => from <= now);
      if (index < 0) {
        this.#awaitDue();
        return undefined;
      }
      const [{ attempt }] = this.#waiting.splice(index, 1) as [Suspect];
      if (!mayBegin(attempt)) continue;
      this.#alone = attemptKey(attempt.run, attempt.effect);
      return attempt;
    }
    return undefined;
  }

  /** The turn of the attempt with this key is over, if it had it. */
  ended(key: string): void {
    if (this.#alone !== key) return;
    this.#alone = undefined;
    this.#due();
  }

  /** More runs that were at work are about to be looked at. */
  recovering(): void {
    this.#areKnown = false;
  }

  /** All runs that were at work have been looked at. */
  recovered(): void {
    this.#areKnown = true;
    this.#due();
  }

  forget(): void {
    this.#endWake();
    this.#waiting.length = 0;
    this.#areKnown = false;
    this.#alone = undefined;
  }

  #awaitDue(): void {
    const at = Math.min(...this.#waiting.map(({ from }) => from));
    const cancel = this.#clock.wakeAt(at, () => {
      this.#wake = undefined;
      this.#due();
    });
    this.#wake = { at, cancel };
  }

  #endWake(): void {
    this.#wake?.cancel();
    this.#wake = undefined;
  }
}
