/**
 * When a run's function is entered: at once, at a time, or when its turn has come.
 *
 * 1. While the start is put off, another start may take its place: with all that it says, and a delay of its own. Each delay is a timer of its own.
 * 2. A run of a limited workflow waits for its turn when it is due. One that is not to wait is not entered.
 */
import { WovyrError } from "../model/errors.ts";
import { errorOf } from "../model/failure.ts";
import type { Incoming } from "../model/history.ts";
import { restated } from "../model/start-details.ts";
import type { Operation } from "./operation.ts";

type StartFact = Extract<Incoming, { type: "InstanceStarted" }>;

/** What the run does for it. */
export interface Door {
  /** Milliseconds since the epoch. */
  now(): number;
  startTimer(id: string, due: number, fired: () => void): Operation;
  /** `due`: when it was to be entered. */
  enter(start: StartFact, due: number): void;
  /** It fails without having been entered. */
  fail(error: unknown): void;
  /** It is cancelled without having been entered. */
  turnAway(reason: WovyrError): void;
}

export class Entrance {
  readonly #door: Door;
  /** When the run was started; milliseconds since the epoch. */
  readonly #begun: number;
  #start: StartFact;
  /** While the start is put off. */
  #delay: Operation | undefined;
  #delays = 0;
  /** When the function was to be entered; milliseconds since the epoch. */
  #due: number;

  constructor(door: Door, start: StartFact) {
    this.#door = door;
    this.#start = start;
    this.#begun = door.now();
    this.#due = Math.max(this.#begun, start.startAt ?? 0);
  }

  /** What the run was started with, the last input that took the place of another. */
  get start(): StartFact {
    return this.#start;
  }

  /** Milliseconds since the epoch. */
  get due(): number {
    return this.#due;
  }

  /** The start is heard. */
  open(): void {
    if (this.#due <= this.#begun) this.#arrive();
    else this.#putOff(this.#due);
  }

  /** Another start took the place of this one, unless it was entered before. */
  replace(later: Extract<Incoming, { type: "StartReplaced" }>): void {
    if (this.#delay === undefined) return;
    const { debounceUntil = Number.POSITIVE_INFINITY } = this.#start;
    this.#start = restated(this.#start, later);
    this.#due = Math.min(this.#door.now() + later.delay, debounceUntil);
    this.#putOff(this.#due);
  }

  /** Its turn has come, or is not to be waited for. */
  decide({ admitted }: Extract<Incoming, { type: "AdmissionDecided" }>): void {
    this.#due = this.#door.now();
    if (admitted) this.#door.enter(this.#start, this.#due);
    else this.#door.turnAway(notAdmitted(this.#start));
  }

  #putOff(until: number): void {
    this.#delay?.abandon();
    const id = this.#delays === 0 ? "start" : `start!${this.#delays}`;
    this.#delays += 1;
    this.#delay = this.#door.startTimer(id, until, () => {
      this.#delay = undefined;
      this.#arrive();
    });
  }

  #arrive(): void {
    const { admission } = this.#start;
    if (admission === undefined) this.#door.enter(this.#start, this.#due);
    else if ("failure" in admission) this.#door.fail(errorOf(admission.failure));
  }
}

/** Why a run is not entered that is not to wait for its turn. */
function notAdmitted({ workflow, admission }: StartFact): WovyrError {
  const { capacity, of, key } = admission as Extract<NonNullable<StartFact["admission"]>, { readonly name: string }>;
  const what = `${of === workflow ? "" : ` of "${of}"`}${key === undefined ? "" : ` with key ${JSON.stringify(key)}`}`;
  return new WovyrError(
    `the run of workflow "${workflow}" was cancelled by its concurrency limit: at most ${capacity} runs${what} are at work at once, and it is not to wait.`,
    { code: "CONCURRENCY_LIMIT" },
  );
}
