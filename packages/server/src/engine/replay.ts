/** Replays a run's history into its execution and state, a slice at a time. */
import type { Turn } from "@wovyr/sdk/internal";
import type { Instance } from "./instance.ts";
import type { Job, Turns } from "./turns.ts";

/** Turns that are replayed before others get their chance. */
const sliceTurns = 500;

export class Replay implements Job {
  readonly instance: Instance;
  /** Events that history holds. */
  readonly tail: number;
  readonly #turns: readonly Turn[];
  readonly #runner: Turns;
  readonly #ended: (failure: Error | undefined) => void;
  #index = 0;
  #inTurn = false;
  #sliceEnd = sliceTurns;

  /** `ended` gets the divergence, or nothing when code and history agree. */
  constructor(instance: Instance, turns: readonly Turn[], tail: number, runner: Turns, ended: (failure: Error | undefined) => void) {
    this.instance = instance;
    this.tail = tail;
    this.#turns = turns;
    this.#runner = runner;
    this.#ended = ended;
    instance.forget();
    instance.execution = instance.newExecution();
    if (instance.execution !== undefined) instance.execution.onIdle = this.#onIdle;
  }

  run(): boolean {
    this.#sliceEnd = this.#index + sliceTurns;
    return this.#advance();
  }

  stuck(): void {
    this.instance.execution?.stuck();
    this.#advance();
  }

  readonly #onIdle = (): void => {
    if (this.#advance()) this.#runner.done(this);
  };

  /** False while a fiber is stepping; true when the job is over or has queued itself again. */
  #advance(): boolean {
    const { execution } = this.instance;
    while (this.#index < this.#turns.length) {
      const turn = this.#turns[this.#index] as Turn;
      if (execution !== undefined) {
        if (!this.#inTurn) {
          if (this.#index >= this.#sliceEnd) {
            this.#runner.add(this);
            return true;
          }
          this.#inTurn = true;
          execution.beginReplay(turn);
        }
        while (execution.replayNext()) if (execution.busy) return false;
        if (execution.broken !== undefined) {
          this.#ended(execution.broken);
          return true;
        }
        execution.endReplay();
        this.#inTurn = false;
      }
      this.instance.state.apply(turn);
      this.#index += 1;
    }
    this.#ended(undefined);
    return true;
  }
}
