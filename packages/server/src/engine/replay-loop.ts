/**
 * Recorded turns into an execution, one after another: what every job that replays has in common.
 *
 * 1. It stops at the first turn that the code does not make again; the execution says why.
 * 2. A slice ends between two turns, never within one, so that other jobs find no execution half way.
 */
import type { Execution, Turn } from "@wovyr/sdk/internal";

/** `stepping`: a fiber ends its step first, then `onIdle` follows. `paused`: others get their chance. `over`: every turn is replayed, or the execution broke. */
export type Progress = "stepping" | "paused" | "over";

export class ReplayLoop {
  readonly #execution: Execution;
  readonly #turns: readonly Turn[];
  readonly #sliceTurns: number;
  readonly #replayed: ((turn: Turn) => void) | undefined;
  #index = 0;
  #inTurn = false;
  #sliceEnd: number;

  /** `replayed` hears of each turn that code and history agree on. */
  constructor(execution: Execution, turns: readonly Turn[], sliceTurns: number, replayed?: (turn: Turn) => void) {
    this.#execution = execution;
    this.#turns = turns;
    this.#sliceTurns = sliceTurns;
    this.#replayed = replayed;
    this.#sliceEnd = sliceTurns;
  }

  beginSlice(): void {
    this.#sliceEnd = this.#index + this.#sliceTurns;
  }

  advance(): Progress {
    const execution = this.#execution;
    while (execution.broken === undefined && this.#index < this.#turns.length) {
      const turn = this.#turns[this.#index] as Turn;
      if (!this.#inTurn) {
        if (this.#index >= this.#sliceEnd) return "paused";
        this.#inTurn = true;
        execution.beginReplay(turn);
      }
      while (execution.replayNext()) if (execution.busy) return "stepping";
      if (execution.broken !== undefined) break;
      execution.endReplay();
      this.#inTurn = false;
      this.#replayed?.(turn);
      this.#index += 1;
    }
    return "over";
  }
}
