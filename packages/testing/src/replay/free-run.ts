/**
 * What the code asks for when nobody compares it with history: a run that is fed the recorded outcomes, wherever they fit.
 *
 * 1. Outcomes are given in recorded order, to the effects that they fit (outcome-feed.ts).
 * 2. When none fits, an effect that history does not know is taken as done. That counts only when what follows is in history again; else the run ends
 *    before it.
 * 3. No function of a side effect is called: its recorded value is given, or the run stops there.
 * 4. Bounded: in outcomes by history, in guesses and steps by the limits below.
 */
import { sideEffect } from "@wovyr/sdk";
import { decodePayload, type Execution, errorOf, type Incoming, type Turn } from "@wovyr/sdk/internal";
import type { Turns } from "@wovyr/server/internal";
import { EffectSequence, type Step } from "./effect-sequence.ts";
import { OutcomeFeed, type Recorded, type SideEffectFact } from "./outcome-feed.ts";

const maxGuesses = 8;
/** Steps beyond the point where the code left history. */
const maxSteps = 200;

type Interpreter = Execution["interpreter"];

export type FreeSteps = {
  readonly steps: readonly Step[];
  /** Whether the steps are all that the code asks for up to its end. */
  readonly closed: boolean;
  /** The last recorded turn that led to a step. */
  readonly lastTurn: number;
  /** Effects that were taken as done although history holds no outcome of theirs. */
  readonly guessed: readonly string[];
};

/** A place to come back to when a guess proves wrong. */
type Mark = { readonly steps: number; readonly lastTurn: number; readonly guesses: number };

/** Makes an execution, which has replayed all before these turns, go on by itself. */
export function freeRun(execution: Execution, turns: readonly Turn[], past: readonly Turn[], runner: Turns): Promise<FreeSteps> {
  return new Promise((resolve) => runner.add(new FreeRun(execution, turns, past, runner, resolve)));
}

class FreeRun {
  readonly #execution: Execution;
  readonly #runner: Turns;
  readonly #ended: (steps: FreeSteps) => void;
  readonly #feed: OutcomeFeed;
  readonly #sequence = new EffectSequence();
  readonly #guessed: string[] = [];
  #turn = 0;
  #lastTurn = 0;
  #unproven: Mark | undefined;
  #halted = false;

  constructor(execution: Execution, turns: readonly Turn[], past: readonly Turn[], runner: Turns, ended: (steps: FreeSteps) => void) {
    this.#execution = execution;
    this.#runner = runner;
    this.#ended = ended;
    this.#feed = new OutcomeFeed(execution, turns, past);
    execution.onIdle = () => {
      if (this.#advance()) this.#runner.done(this);
    };
    this.#answerSideEffects(execution.interpreter);
  }

  run(): boolean {
    return this.#advance();
  }

  stuck(): void {
    this.#execution.stuck();
    this.#advance();
  }

  #advance(): boolean {
    for (;;) {
      this.#collect();
      const execution = this.#execution;
      const over = this.#halted || execution.broken !== undefined || execution.closed !== undefined;
      const next =
        over || this.#sequence.steps.length > maxSteps ? undefined : (this.#feed.next(this.#sequence.steps.length) ?? this.#guess());
      if (next === undefined) {
        this.#end();
        return true;
      }
      this.#turn = next.turn;
      execution.beginTurn(next.at);
      execution.deliver(next.fact);
      if (execution.busy) return false;
    }
  }

  #guess(): Recorded<Incoming> | undefined {
    if (this.#guessed.length >= maxGuesses) return undefined;
    const guess = this.#feed.guess();
    if (guess === undefined) return undefined;
    this.#unproven ??= { steps: this.#sequence.steps.length, lastTurn: this.#lastTurn, guesses: this.#guessed.length };
    this.#guessed.push(guess.label);
    return guess;
  }

  /** Takes over what the code asked for since; a guess stands or falls with the first of it. */
  #collect(): void {
    const { steps } = this.#sequence;
    const before = steps.length;
    for (const fact of this.#execution.takeFacts()) this.#sequence.add(fact, this.#turn);
    const first = steps.slice(before).find((step) => !step.derived);
    if (first === undefined) return;
    this.#lastTurn = Math.max(this.#lastTurn, this.#turn);
    if (this.#unproven === undefined) return;
    if (this.#feed.knows(first, steps.slice(0, before))) this.#unproven = undefined;
    else this.#halted = true;
  }

  #end(): void {
    const mark = this.#unproven;
    const { steps } = this.#sequence;
    this.#ended(
      mark === undefined
        ? { steps, closed: this.#execution.closed !== undefined, lastTurn: this.#lastTurn, guessed: this.#guessed }
        : { steps: steps.slice(0, mark.steps), closed: false, lastTurn: mark.lastTurn, guessed: this.#guessed.slice(0, mark.guesses) },
    );
  }

  /** From now on side effects are answered with what is recorded, and the run stops at one that is not. */
  #answerSideEffects(interpreter: Interpreter): void {
    const begin: Interpreter["begin"] = interpreter.begin.bind(interpreter);
    interpreter.begin = (effect, given, fiber, done) => {
      if (effect.kind !== "sideEffect") return begin(effect, given, fiber, done);
      const id = given ?? fiber.nextId();
      const recorded = this.#feed.sideEffect(id);
      if (recorded !== undefined)
        return begin(
          sideEffect(() => recordedValue(recorded)),
          id,
          fiber,
          done,
        );
      this.#collect();
      this.#sequence.addSideEffect(id, this.#turn);
      return { cancel: () => {}, abandon: () => {} };
    };
  }
}

function recordedValue({ value, failure }: SideEffectFact): unknown {
  if (value !== undefined) return decodePayload(value);
  throw failure === undefined ? new Error("a side effect failed") : errorOf(failure);
}
