/**
 * When the store is asked about limits.
 *
 * 1. One round is under way at a time; what comes up meanwhile goes with the next. A round is for all lanes that are due, up to `mostLanes`.
 * 2. A round that failed is made again later. What the store made of it is not known, and nothing is concluded from it.
 */
import type { Clock } from "../ports/clock.ts";
import type { EngineLog } from "../ports/log.ts";
import { StoreUnavailableError } from "../ports/store.ts";

type Lane = { askAt: number; readonly isIdle: boolean };

export type RoundsOptions<L> = {
  readonly clock: Clock;
  readonly log: EngineLog;
  /** Asks about lanes and sees to what is answered; sets when each is asked about again. Void when `isVoid` says so after the store has answered. */
  readonly ask: (lanes: readonly L[], isVoid: () => boolean) => Promise<void>;
};

const mostLanes = 500;
const retryPause = 500;
const never = Number.POSITIVE_INFINITY;

export class Rounds<L extends Lane> {
  readonly #options: RoundsOptions<L>;
  readonly #lanes = new Map<string, L>();
  #wakeAt = never;
  #cancelWake = () => {};
  #busy = false;
  #failing = false;
  /** What was begun before `clear` is void. */
  #term = 0;

  constructor(options: RoundsOptions<L>) {
    this.#options = options;
  }

  /** When the next round is due. */
  get nextDue(): number | undefined {
    return this.#wakeAt === never ? undefined : this.#wakeAt;
  }

  lanes(): Iterable<L> {
    return this.#lanes.values();
  }

  find(name: string): L | undefined {
    return this.#lanes.get(name);
  }

  lane(name: string, make: () => L): L {
    const known = this.#lanes.get(name);
    if (known !== undefined) return known;
    const made = make();
    this.#lanes.set(name, made);
    return made;
  }

  /** A lane is to be asked about at a time, or before. */
  due(lane: L, at: number): void {
    lane.askAt = Math.min(lane.askAt, at);
    if (lane.askAt < this.#wakeAt) this.#wake(lane.askAt);
  }

  clear(): void {
    this.#term += 1;
    this.#busy = false;
    this.#lanes.clear();
    this.#cancelWake();
    this.#wakeAt = never;
  }

  #wake(at: number): void {
    this.#cancelWake();
    this.#wakeAt = at;
    if (at === never) return;
    const { clock } = this.#options;
    const term = this.#term;
    const begin = () => {
      if (term === this.#term && this.#wakeAt === at) void this.#round(term);
    };
    if (at > clock.now()) this.#cancelWake = clock.wakeAt(at, begin);
    // All that begins in the same moment goes with one round.
    else void Promise.resolve().then(begin);
  }

  async #round(term: number): Promise<void> {
    if (this.#busy) return;
    const { clock, log, ask } = this.#options;
    const now = clock.now();
    const due: L[] = [];
    for (const lane of this.#lanes.values()) {
      if (lane.askAt > now) continue;
      due.push(lane);
      lane.askAt = never;
      if (due.length >= mostLanes) break;
    }
    this.#busy = true;
    try {
      if (due.length > 0) await ask(due, () => term !== this.#term);
      if (term === this.#term) this.#failing = false;
    } catch (error) {
      if (term !== this.#term) return;
      if (!this.#failing || !(error instanceof StoreUnavailableError))
        log.warn("limits could not be asked for; what waits for them waits until they can", { error });
      this.#failing = true;
      for (const lane of due) lane.askAt = Math.min(lane.askAt, clock.now() + retryPause);
    }
    if (term !== this.#term) return;
    this.#busy = false;
    let next = never;
    for (const [name, lane] of this.#lanes) {
      if (lane.isIdle) this.#lanes.delete(name);
      else if (lane.askAt < next) next = lane.askAt;
    }
    this.#wake(next);
  }
}
