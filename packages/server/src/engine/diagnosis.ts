/**
 * Runs a history once more, its effects remembering the lines that made them, to tell where a run waits or where its code went wrong.
 *
 * 1. Nothing comes of it: no fact is recorded, nothing is started, and the execution is dropped when it has answered.
 * 2. Lines are remembered only while it steps, so that everything else runs at full speed.
 */
import { type Execution, type Incoming, rememberSites, type Turn } from "@wovyr/sdk/internal";
import { ReplayLoop } from "./replay-loop.ts";
import type { Job, Turns } from "./turns.ts";

/** Turns that are replayed before others get their chance. */
const sliceTurns = 200;

/** The turn in which the code went wrong, which history does not hold. */
export type VoidTurn = { readonly at: number; readonly facts: readonly Incoming[] };

export class Diagnosis implements Job {
  readonly #execution: Execution;
  readonly #loop: ReplayLoop;
  readonly #next: VoidTurn | undefined;
  readonly #runner: Turns;
  readonly #ended: () => void;
  #delivered = 0;

  constructor(execution: Execution, turns: readonly Turn[], next: VoidTurn | undefined, runner: Turns, ended: () => void) {
    this.#execution = execution;
    this.#loop = new ReplayLoop(execution, turns, sliceTurns);
    this.#next = next;
    this.#runner = runner;
    this.#ended = ended;
    execution.onIdle = this.#onIdle;
  }

  run(): boolean {
    this.#loop.beginSlice();
    rememberSites(true);
    return this.#paused(this.#advance());
  }

  stuck(): void {
    this.#execution.stuck();
    this.#paused(this.#advance());
  }

  readonly #onIdle = (): void => {
    if (this.#paused(this.#advance())) this.#runner.done(this);
  };

  #paused(over: boolean): boolean {
    if (over) rememberSites(false);
    return over;
  }

  /** False while a fiber is stepping; true when the job is over or has queued itself again. */
  #advance(): boolean {
    const progress = this.#loop.advance();
    if (progress === "paused") this.#runner.add(this);
    if (progress !== "over") return progress === "paused";
    const execution = this.#execution;
    const facts = this.#next?.facts ?? [];
    while (execution.broken === undefined && execution.closed === undefined && this.#delivered < facts.length) {
      if (this.#delivered === 0) execution.beginTurn(this.#next?.at ?? 0);
      execution.deliver(facts[this.#delivered++] as Incoming);
      if (execution.busy) return false;
    }
    this.#ended();
    return true;
  }
}
