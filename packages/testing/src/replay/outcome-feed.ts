/**
 * The recorded outcomes of a run, for one whose code has changed.
 *
 * 1. An outcome goes to the open effect of the same kind and name, best of the same input, wherever it stands now; one that fits nothing waits.
 * 2. Events go to the run as they came. A request to cancel does not, once the run waits for what history does not know.
 * 3. Each is given once; a guess takes nothing away.
 */
import {
  digest,
  type EffectId,
  type Execution,
  encodePayload,
  type HistoryFact,
  type Incoming,
  isCommand,
  type Turn,
} from "@wovyr/sdk/internal";
import { EffectSequence, type Step } from "./effect-sequence.ts";

type Leaf = NonNullable<ReturnType<Execution["leaves"]["get"]>>;
type Outcome = Extract<Incoming, { readonly effect: EffectId }>;
export type Recorded<F> = { readonly fact: F; readonly at: number; readonly turn: number };
export type SideEffectFact = Extract<HistoryFact, { type: "SideEffectRecorded" }>;
type Scheduled = Extract<HistoryFact, { type: "ActivityScheduled" | "TimerStarted" | "ChildStarted" | "EventAwaited" }>;

/** The recorded facts that are still to be given. */
export class OutcomeFeed {
  readonly #execution: Execution;
  readonly #scheduled = new Map<EffectId, Scheduled>();
  readonly #incoming: Recorded<Incoming>[] = [];
  readonly #sideEffects: SideEffectFact[] = [];
  readonly #recorded = new Map<string, number>();
  readonly #outcomes = new Map<EffectId, Outcome>();
  readonly #digests = new WeakMap<Leaf, string>();
  readonly #deferred: Recorded<Outcome>[] = [];
  #next = 0;
  /** Steps that were made when no deferred outcome fitted. */
  #unfitting = -1;
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

  /** The next fact that can be given to a run that has made so many steps; undefined when none fits. */
  next(steps: number): Recorded<Incoming> | undefined {
    return this.#nextDeferred(steps) ?? this.#nextRecorded();
  }

  #nextDeferred(steps: number): Recorded<Incoming> | undefined {
    if (steps === this.#unfitting) return undefined;
    for (const [index, recorded] of this.#deferred.entries()) {
      const leaf = this.#leafFor(recorded.fact);
      if (leaf === undefined) continue;
      this.#deferred.splice(index, 1);
      return this.#given(recorded, { ...recorded.fact, effect: leaf.id });
    }
    this.#unfitting = steps;
    return undefined;
  }

  #nextRecorded(): Recorded<Incoming> | undefined {
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
    case "ActivityDecided":
      return fact.decision !== "retry";
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
      return recorded.type === "EventAwaited" && recorded.name === work.effect.event.name && recorded.key === work.effect.key;
    case "child":
      return recorded.type === "ChildStarted" && recorded.workflow === work.effect.workflow.name;
  }
}
