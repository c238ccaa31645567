/** Replays a run's history into its execution and state. */
import type { Turn } from "@wovyr/sdk/internal";
import type { Instance } from "./instance.ts";
import { ReplayLoop } from "./replay-loop.ts";
import type { Job, Turns } from "./turns.ts";

/** Turns that are replayed before others get their chance. */
const sliceTurns = 500;

export class Replay implements Job {
  readonly instance: Instance;
  /** Events that history holds. */
  readonly tail: number;
  readonly #turns: readonly Turn[];
  readonly #loop: ReplayLoop | undefined;
  readonly #runner: Turns;
  readonly #ended: (failure: Error | undefined) => void;

  /** `ended` gets the divergence, or nothing when code and history agree. */
  constructor(instance: Instance, turns: readonly Turn[], tail: number, runner: Turns, ended: (failure: Error | undefined) => void) {
    this.instance = instance;
    this.tail = tail;
    this.#turns = turns;
    this.#runner = runner;
    this.#ended = ended;
    instance.forget();
    const execution = instance.newExecution();
    instance.execution = execution;
    if (execution === undefined) return;
    execution.onIdle = this.#onIdle;
    this.#loop = new ReplayLoop(execution, turns, sliceTurns, (turn) => instance.state.apply(turn));
  }

  run(): boolean {
    this.#loop?.beginSlice();
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
    if (this.#loop === undefined) for (const turn of this.#turns) this.instance.state.apply(turn);
    const progress = this.#loop?.advance() ?? "over";
    if (progress === "paused") this.#runner.add(this);
    else if (progress === "over") this.#ended(this.instance.execution?.broken);
    return progress !== "stepping";
  }
}
