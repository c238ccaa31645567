/**
 * Whether new work is taken.
 *
 * 1. Starts are refused while what waits to be written has grown beyond a number, a size or an age, or too many activities wait for places. What belongs to
 *    runs that are there already is never refused for that.
 * 2. The age is what callers feel: it rises with every slow commit, however little waits.
 */
import { ApiError } from "@wovyr/sdk";
import type { Dispatch } from "./dispatch.ts";
import type { Journal } from "./journal.ts";
import type { Clock } from "./ports/clock.ts";

export type AdmissionLimits = {
  /** Attempts that wait for a place. */
  readonly waitingActivities: number;
  /** Turns that wait to be written. */
  readonly queueTurns: number;
  /** Characters of turns that wait to be written. */
  readonly queueBytes: number;
  /** How long a turn has waited until it is durable, in milliseconds. */
  readonly commitDelay: number;
};

export const defaultAdmissionLimits: AdmissionLimits = {
  waitingActivities: 100_000,
  queueTurns: 100_000,
  queueBytes: 256 * 1024 * 1024,
  commitDelay: 2_000,
};

const shortestPause = 1_000;
const longestPause = 30_000;

export class Admission {
  readonly #journal: Journal;
  readonly #dispatch: Dispatch;
  readonly #clock: Clock;
  readonly #limits: AdmissionLimits;

  constructor(options: {
    readonly journal: Journal;
    readonly dispatch: Dispatch;
    readonly clock: Clock;
    readonly limits: AdmissionLimits;
  }) {
    this.#journal = options.journal;
    this.#dispatch = options.dispatch;
    this.#clock = options.clock;
    this.#limits = options.limits;
  }

  /** Why new work is refused now, with the time after which to come again: as long as what waits now has waited. */
  get refusal(): ApiError | undefined {
    const reason = this.#reason();
    if (reason === undefined) return undefined;
    return new ApiError(`The orchestrator has more work waiting than it takes (${reason}); try again soon.`, {
      code: "OVERLOADED",
      retryAfter: Math.min(Math.max(this.#delay, shortestPause), longestPause),
    });
  }

  #reason(): string | undefined {
    const { queueTurns, queueBytes, waitingActivities, commitDelay } = this.#limits;
    const { turns, bytes } = this.#journal.waiting;
    if (turns > queueTurns) return `${turns} turns wait to be written`;
    if (bytes > queueBytes) return `${bytes} characters wait to be written`;
    if (this.#delay > commitDelay) return `a turn has waited for ${this.#delay} ms to be written`;
    const attempts = this.#dispatch.waiting + this.#dispatch.held;
    if (attempts > waitingActivities) return `${attempts} activities wait for a place`;
    return undefined;
  }

  /** Milliseconds that the oldest turn which is not durable yet has waited. */
  get #delay(): number {
    const since = this.#journal.waiting.since;
    return since === undefined ? 0 : this.#clock.now() - since;
  }
}
