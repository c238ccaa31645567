/**
 * What the code asks for when nobody compares it with history: a run that is fed the recorded outcomes, wherever they fit.
 *
 * 1. Outcomes are given in recorded order to the open effect of the same kind and name, wherever it stands now; one that fits nothing waits for its time.
 * 2. When nothing fits, an effect that history does not know is taken as done. That counts only when what follows is in history again; else the run ends
 *    before it.
 * 3. No function of a side effect is called: its recorded value is given, or the run stops there.
 * 4. Bounded: in outcomes by history, in guesses and steps by the limits below.
 */
import { sideEffect } from "@wovyr/sdk";
import {
  decodePayload,
  digest,
  type EffectId,
  type Execution,
  encodePayload,
  errorOf,
  type HistoryFact,
  type Incoming,
  isCommand,
  type Turn,
} from "@wovyr/sdk/internal";
import type { Turns } from "@wovyr/server/internal";
import { EffectSequence, type Step } from "./effect-sequence.ts";

const maxGuesses = 8;
/** Steps beyond the point where the code left history. */
const maxSteps = 200;

type Interpreter = Execution["interpreter"];
type Leaf = NonNullable<ReturnType<Execution["leaves"]["get"]>>;
type Outcome = Extract<Incoming, { readonly effect: EffectId }>;
type Recorded<F> = { readonly fact: F; readonly at: number; readonly turn: number };
type SideEffectFact = Extract<HistoryFact, { type: "SideEffectRecorded" }>;
type Scheduled = Extract<HistoryFact, { type: "ActivityScheduled" | "TimerStarted" | "ChildStarted" | "EventAwaited" }>;

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
type Mark = { readonly steps: number; readonly lastTurn: number };

/** Makes an execution, which has replayed all before these turns, go on by itself. */
export function freeRun(execution: Execution, turns: readonly Turn[], past: readonly Turn[], runner: Turns): Promise<FreeSteps> {
  return new Promise((resolve) => runner.add(new FreeRun(execution, turns, past, runner, resolve)));
}

class FreeRun {
  readonly #execution: Execution;
  readonly #runner: Turns;
  readonly #ended: (steps: FreeSteps) => void;
  readonly #feed: Feed;
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
    this.#feed = new Feed(execution, turns, past);
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
      const next = over || this.#sequence.steps.length > maxSteps ? undefined : (this.#feed.next() ?? this.#guess());
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
    this.#unproven ??= { steps: this.#sequence.steps.length, lastTurn: this.#lastTurn };
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
        : { steps: steps.slice(0, mark.steps), closed: false, lastTurn: mark.lastTurn, guessed: [] },
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

/** The recorded facts that are still to be given. */
class Feed {
  readonly #execution: Execution;
  readonly #scheduled = new Map<EffectId, Scheduled>();
  readonly #incoming: Recorded<Incoming>[] = [];
  readonly #sideEffects: SideEffectFact[] = [];
  readonly #recorded = new Map<string, number>();
  readonly #outcomes = new Map<EffectId, Outcome>();
  readonly #digests = new WeakMap<Leaf, string>();
  readonly #deferred: Recorded<Outcome>[] = [];
  #next = 0;
  #at = 0;
  #turn = 0;
  #guesses = 0;

  constructor(execution: Execution, turns: readonly Turn[], past: readonly Turn[]) {
    this.#execution = execution;
    for (const turn of past) for (const fact of turn.events) this.#note(fact);
    const sequence = new EffectSequence();
    for (const turn of turns)
      for (const fact of turn.events) {
        this.#note(fact);
        sequence.add(fact, turn.seq);
        if (fact.type === "SideEffectRecorded") this.#sideEffects.push(fact);
        if (!isCommand(fact)) this.#incoming.push({ fact, at: turn.at, turn: turn.seq });
        if (isOutcome(fact)) this.#outcomes.set(fact.effect, fact);
      }
    for (const { label } of sequence.steps) this.#recorded.set(label, (this.#recorded.get(label) ?? 0) + 1);
  }

  #note(fact: HistoryFact): void {
    if (fact.type === "ActivityScheduled" || fact.type === "TimerStarted" || fact.type === "ChildStarted" || fact.type === "EventAwaited")
      this.#scheduled.set(fact.effect, fact);
  }

  /** Whether history holds such a step beyond those that were made. */
  knows(step: Step, made: readonly Step[]): boolean {
    return (this.#recorded.get(step.label) ?? 0) > made.filter(({ label }) => label === step.label).length;
  }

  /** The next fact that can be given; undefined when none fits. */
  next(): Recorded<Incoming> | undefined {
    for (const [index, recorded] of this.#deferred.entries()) {
      const leaf = this.#leafFor(recorded.fact);
      if (leaf === undefined) continue;
      this.#deferred.splice(index, 1);
      return this.#given(recorded, { ...recorded.fact, effect: leaf.id });
    }
    for (;;) {
      const recorded = this.#incoming[this.#next];
      if (recorded === undefined) return undefined;
      const { fact, at, turn } = recorded;
      if (isOutcome(fact)) {
        this.#next += 1;
        const leaf = this.#leafFor(fact);
        if (leaf !== undefined) return this.#given(recorded, { ...fact, effect: leaf.id });
        this.#deferred.push({ fact, at, turn });
      } else if (isRequest(fact) && this.#deferred.length > 0 && this.#unanswered() !== undefined) {
        return undefined; // it was made to a run that stood elsewhere
      } else {
        this.#next += 1;
        if (fact.type === "InstanceStarted" || fact.type === "EventReceived" || isRequest(fact)) return this.#given(recorded, fact);
      }
    }
  }

  #given({ at, turn }: Recorded<Incoming>, fact: Incoming): Recorded<Incoming> {
    this.#at = Math.max(this.#at, at);
    this.#turn = Math.max(this.#turn, turn);
    return { fact, at: this.#at, turn };
  }

  /** An outcome for the first open effect that history does not know: what history has in its place, if it is of the same kind, else nothing. */
  guess(): (Recorded<Incoming> & { readonly label: string }) | undefined {
    const leaf = this.#unanswered();
    if (leaf === undefined) return undefined;
    const instead = this.#outcomes.get(leaf.id);
    const given = { at: this.#at, turn: this.#turn };
    const effect = leaf.id;
    const nothing = encodePayload(undefined);
    switch (leaf.work.kind) {
      case "activity": {
        const label = `activity ${leaf.work.effect.definition.name}`;
        if (instead?.type === "ActivityCompleted" || instead?.type === "ActivityFailed") return { ...given, fact: instead, label };
        return { ...given, fact: { type: "ActivityCompleted", effect, attempt: 1, output: nothing }, label };
      }
      case "child": {
        const label = `child ${leaf.work.effect.workflow.name}`;
        if (instead?.type === "ChildCompleted" || instead?.type === "ChildFailed") return { ...given, fact: instead, label };
        return { ...given, fact: { type: "ChildCompleted", effect, output: nothing }, label };
      }
      case "timer":
        return { ...given, fact: { type: "TimerFired", effect, due: this.#at }, label: leaf.work.purpose };
      case "event": {
        const { name } = leaf.work.effect.event;
        this.#guesses += 1;
        const message = `guess:${this.#guesses}`;
        return {
          ...given,
          fact: { type: "EventReceived", message, name, payload: this.#payloadAt(effect) ?? nothing },
          label: `event ${name}`,
        };
      }
    }
  }

  /** What the event said that history has at this place. */
  #payloadAt(effect: EffectId): string | undefined {
    const awaited = this.#scheduled.get(effect);
    if (awaited?.type !== "EventAwaited") return undefined;
    for (const { fact } of this.#incoming) if (fact.type === "EventReceived" && fact.name === awaited.name) return fact.payload;
    return undefined;
  }

  /** The first open effect that no recorded one is like; limits of time are left alone. */
  #unanswered(): Leaf | undefined {
    for (const leaf of this.#execution.leaves.values()) {
      if (leaf.work.kind === "timer" && leaf.work.purpose !== "sleep") continue;
      const recorded = this.#scheduled.get(leaf.id);
      if (recorded === undefined || !isLike(leaf, recorded)) return leaf;
    }
    return undefined;
  }

  /** The open effect that an outcome is meant for: of its kind and name, best with its input, else at its place, else the first. */
  #leafFor(outcome: Outcome): Leaf | undefined {
    const scheduled = this.#scheduled.get(outcome.effect);
    if (scheduled === undefined) return undefined;
    const { leaves } = this.#execution;
    const same = leaves.get(outcome.effect);
    const inPlace = same !== undefined && isLike(same, scheduled) ? same : undefined;
    const wanted = "digest" in scheduled ? scheduled.digest : undefined;
    if (inPlace !== undefined && (wanted === undefined || this.#digestOf(inPlace) === wanted)) return inPlace;
    let first: Leaf | undefined;
    for (const leaf of leaves.values()) {
      if (!isLike(leaf, scheduled)) continue;
      if (wanted !== undefined && this.#digestOf(leaf) === wanted) return leaf;
      first ??= leaf;
    }
    return inPlace ?? first;
  }

  #digestOf(leaf: Leaf): string {
    let known = this.#digests.get(leaf);
    if (known === undefined) {
      known = leaf.work.kind === "activity" || leaf.work.kind === "child" ? digest(leaf.work.effect.input) : "";
      this.#digests.set(leaf, known);
    }
    return known;
  }

  sideEffect(id: EffectId): SideEffectFact | undefined {
    const inPlace = this.#sideEffects.findIndex((fact) => fact.effect === id);
    const [fact] = this.#sideEffects.splice(Math.max(inPlace, 0), 1);
    return fact;
  }
}

function isOutcome(fact: HistoryFact): fact is Outcome {
  switch (fact.type) {
    case "ActivityCompleted":
    case "ChildCompleted":
    case "ChildFailed":
    case "ChildRejected":
    case "TimerFired":
      return true;
    case "ActivityFailed":
      return fact.retryAt === undefined;
    default:
      return false;
  }
}

const isRequest = (fact: HistoryFact) => fact.type === "CancelRequested" || fact.type === "TerminateRequested";

/** Whether an open effect is of the same kind and name as a recorded one. */
function isLike({ work }: Leaf, recorded: Scheduled): boolean {
  switch (work.kind) {
    case "activity":
      return recorded.type === "ActivityScheduled" && recorded.name === work.effect.definition.name;
    case "timer":
      return recorded.type === "TimerStarted" && recorded.purpose === work.purpose;
    case "event":
      return recorded.type === "EventAwaited" && recorded.name === work.effect.event.name;
    case "child":
      return recorded.type === "ChildStarted" && recorded.workflow === work.effect.workflow.name;
  }
}
