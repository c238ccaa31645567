/**
 * Turns that never ended, as the watchdog noted them before it ended the process.
 *
 * 1. A run with `strikeLimit` strikes is not run again: it is parked. Another process may try it once more, later each time: what still blocks costs it one
 *    process and not three.
 * 2. A workflow whose very first turn was struck is suspect: its starts are made durable before their code is entered.
 * 3. A run that comes further clears what was noted against it, and against first turns of its workflow.
 */
import type { InstanceKey } from "./ports/store.ts";

export const strikeLimit = 3;

/** After the first parking another process may try at once, after the second in a minute, then in twice the time of the one before, in milliseconds. */
const [shortestWait, longestWait] = [60_000, 3_600_000];

/** How long a run that was parked for so many strikes waits at least until it is tried again, in milliseconds. */
export const waitAfter = (strikes: number): number =>
  strikes <= strikeLimit ? 0 : Math.min(shortestWait * 2 ** (strikes - strikeLimit - 1), longestWait);

type Strike = InstanceKey & { readonly tail: number; readonly workflow: string; readonly count: number };

export class Strikes {
  #strikes: readonly Strike[];

  constructor(strikes: readonly Strike[]) {
    this.#strikes = strikes;
  }

  get any(): boolean {
    return this.#strikes.length > 0;
  }

  suspects(workflow: string): boolean {
    return this.#strikes.some((strike) => strike.tail === 0 && strike.workflow === workflow);
  }

  /** How often the run was struck since it last came further. */
  against(run: InstanceKey): number {
    return this.#strikes.reduce((sum, strike) => (strike.run === run.run ? sum + strike.count : sum), 0);
  }

  /** Forgets what a run that came further makes void; returns whose strikes are to be cleared. */
  forgive(run: InstanceKey & { readonly workflow: string }): InstanceKey[] {
    const isVoid = (strike: Strike) => strike.run === run.run || (strike.tail === 0 && strike.workflow === run.workflow);
    const cleared = this.#strikes.filter(isVoid);
    if (cleared.length > 0) this.#strikes = this.#strikes.filter((strike) => !isVoid(strike));
    return cleared;
  }
}
