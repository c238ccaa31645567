/**
 * The history of one run, given to a model turn by turn, and what the two say compared after each.
 *
 * 1. A model is given what came in, and nothing of what the engine made of it.
 * 2. Where a turn ends, what is open, kept and recorded is the same in both; a run that has ended has ended alike in both.
 * 3. Histories are contiguous. Timers fire at or after their time, and in the order of their times.
 */
import assert from "node:assert/strict";
import { decodePayload, type Failure, type HistoryFact, InstanceState, type Turn } from "@wovyr/sdk/internal";
import { Language } from "./language.ts";
import { type Fact, Model } from "./model.ts";
import { Fault, failed, ok } from "./outcome.ts";
import { type EventName, type Input, type Policy, shown } from "./program.ts";

/** Whose child a run is. */
export type Parent = { readonly run: ModelledRun; readonly effect: string; readonly policy: Policy };

export class ModelledRun {
  readonly run: string;
  readonly id: string;
  readonly parent: Parent | undefined;
  readonly model = new Model(Language.main);
  readonly turns: Turn[] = [];
  /** Payloads of the events that came. */
  readonly events: number[] = [];
  /** How many pauses and resumptions came. */
  readonly said = { pause: 0, resume: 0 };
  readonly #state = new InstanceState();
  /** What was open when nothing moved last. */
  #settled: ReadonlySet<object> = new Set();

  constructor(run: string, id: string, parent?: Parent) {
    this.run = run;
    this.id = id;
    this.parent = parent;
  }

  get closed(): boolean {
    return this.model.end !== undefined;
  }

  /** Whether it has begun and not ended. A child that its parent gave up in the turn that asked for it never begins. */
  get open(): boolean {
    return this.turns.length > 0 && !this.closed;
  }

  /** Attempts that crashes have taken, of the open activity that lost most. */
  get losses(): number {
    return Math.max(0, ...[...this.#state.activities.values()].map((activity) => activity.losses));
  }

  /** The number of the event that is the outcome of an attempt. */
  placeOf(effect: string, attempt: number): number | undefined {
    for (const { seq, events } of this.turns) {
      const index = events.findIndex(
        (fact) =>
          (fact.type === "ActivityCompleted" || fact.type === "ActivityFailed") && fact.effect === effect && fact.attempt === attempt,
      );
      if (index >= 0) return seq + index;
    }
    return undefined;
  }

  /** The number of the next event. */
  get next(): number {
    return this.#state.tail + 1;
  }

  /** Gives a turn to both; throws where they part. Returns the children that it asked for. */
  take(turn: Turn): ModelledRun[] {
    assert.equal(turn.seq, this.next, "history is not contiguous");
    this.turns.push(turn);
    this.model.now = turn.at;
    const children: ModelledRun[] = [];
    for (const fact of turn.events) {
      if (fact.type === "TimerFired") this.#checkTimer(fact.effect, fact.due, turn.at);
      if (fact.type === "EventReceived") this.events.push(decodePayload(fact.payload) as number);
      if (fact.type === "PauseRequested") this.said.pause += 1;
      if (fact.type === "ResumeRequested") this.said.resume += 1;
      const incoming = incomingFact(fact);
      if (incoming !== undefined) this.model.receive(incoming);
      if (fact.type === "ChildStarted")
        children.push(new ModelledRun(fact.run, fact.id, { run: this, effect: fact.effect, policy: fact.onParentClose }));
    }
    this.model.rest();
    this.#state.apply(turn);
    this.#compare();
    return children;
  }

  /** Nothing moves: timers that are open now fire in the order of their times. */
  settle(): void {
    this.#settled = new Set(this.model.open.values());
  }

  #checkTimer(effect: string, due: number, at: number): void {
    assert.ok(due <= at, `timer ${effect} fired ${due - at} ms before its time`);
    const { open } = this.model;
    if (!this.#settled.has(open.get(effect) ?? this)) return;
    for (const [other, entry] of open)
      if (entry.kind === "timer" && this.#settled.has(entry))
        assert.ok(entry.due >= due, `timer ${effect} fired before ${other}, which was due earlier`);
  }

  #compare(): void {
    assert.deepEqual(viewOfModel(this.model), viewOfEngine(this.#state), "the model (actual) and the engine (expected) part");
    const engine = this.#state.variables === undefined ? { log: [], count: 0 } : decodePayload(this.#state.variables);
    assert.deepEqual(this.model.variables, engine, "the variables of the model (actual) and the engine (expected) part");
  }
}

// ── what came in ─────────────────────────────────────────────────────────────────────────────────────────

function incomingFact(fact: HistoryFact): Fact | undefined {
  switch (fact.type) {
    case "InstanceStarted":
      return { type: "Started", ...(decodePayload(fact.input) as Input) };
    case "ActivityCompleted":
    case "ChildCompleted":
      return { type: "Settled", effect: fact.effect, outcome: ok(decodePayload(fact.output)) };
    case "ActivityFailed": {
      const { effect, attempt, failure, retryAt } = fact;
      const forGood = failure.name === "NonRetryableError" || failure.code === "ATTEMPTS_LOST";
      return { type: "AttemptFailed", effect, attempt, message: failure.message, retryAt, forGood };
    }
    case "AttemptStarted":
      return { type: "AttemptStarted", effect: fact.effect, attempt: fact.attempt };
    case "ChildFailed":
      return { type: "ChildFailed", effect: fact.effect, status: fact.status, message: fact.failure.message };
    case "ChildRejected":
      return { type: "Settled", effect: fact.effect, outcome: failed(faultOf(fact.failure)) };
    case "TimerFired":
      return { type: "TimerFired", effect: fact.effect };
    case "EventReceived":
      return { type: "Event", event: fact.name as EventName, n: decodePayload(fact.payload) as number };
    case "CancelRequested":
      return { type: "Cancel", mode: fact.mode, reason: fact.reason ?? "cancelled on request" };
    case "TerminateRequested":
      return { type: "Terminate", reason: fact.reason ?? "terminated on request" };
    case "PauseRequested":
      return { type: "Pause" };
    case "ResumeRequested":
      return { type: "Resume" };
    case "Parked":
      throw new Error(`the run was parked: ${fact.failure.message}`);
    default:
      return undefined;
  }
}

const faultOf = ({ name, message }: Failure): Fault => new Fault(name, message);

// ── what follows ─────────────────────────────────────────────────────────────────────────────────────────

type View = {
  /** By effect, what is waited for. */
  readonly open: Readonly<Record<string, string>>;
  /** Names of events that nothing has taken. */
  readonly kept: readonly string[];
  /** Compensations that are at work. */
  readonly undoing: readonly string[];
  readonly end: { readonly status: string; readonly value: unknown } | undefined;
};

const activityText = (name: string, attempt: number, retryAt: number | undefined) =>
  `activity ${name}, attempt ${attempt}${retryAt === undefined ? "" : `, again at ${retryAt}`}`;

export function viewOfModel(model: Model): View {
  const { open, kept, unheard, undoing, end } = model;
  const opened: Record<string, string> = {};
  for (const [effect, entry] of open) {
    if (model.isUnheard(effect)) continue;
    if (entry.kind === "activity") opened[effect] = activityText(entry.name, entry.attempt, entry.retryAt);
    else if (entry.kind === "timer") opened[effect] = `timer at ${entry.due}`;
    else if (entry.kind === "wait") opened[effect] = `event ${entry.event}`;
    else if (entry.kind === "condition") opened[effect] = "condition";
    else opened[effect] = `child ${entry.id}, ${entry.policy}`;
  }
  const running = end === undefined ? [...undoing.running].sort() : [];
  return {
    open: opened,
    kept: [...kept, ...unheard.filter((fact) => fact.type === "Event")].map(({ event }) => event),
    undoing: running,
    end: end && { status: end.status, value: shown(end.value) },
  };
}

export function viewOfEngine(state: InstanceState): View {
  const open: Record<string, string> = {};
  for (const [effect, { input, attempt, retryAt, state: phase }] of state.activities)
    open[effect] = activityText(decodePayload(input) as string, attempt, phase === "Retrying" ? retryAt : undefined);
  for (const [effect, { due }] of state.timers) open[effect] = `timer at ${due}`;
  for (const [effect, { name }] of state.waits) open[effect] = `event ${name}`;
  for (const [effect, { id, onParentClose }] of state.children) open[effect] = `child ${id}, ${onParentClose}`;
  for (const effect of state.conditions) open[effect] = "condition";
  const { outcome } = state;
  const value =
    outcome?.status === "Completed" ? decodePayload(outcome.output) : outcome && "failure" in outcome && shown(faultOf(outcome.failure));
  const undoing = [...state.compensations].flatMap(([effect, compensation]) => (compensation.state === "running" ? [effect] : []));
  const running = outcome === undefined ? undoing.sort() : [];
  return {
    open,
    kept: [...state.unread.values()].map(({ name }) => name),
    undoing: running,
    end: outcome && { status: outcome.status, value },
  };
}

/** Turn by turn, for messages. */
export function historyText({ id, run, turns }: ModelledRun): string {
  const lines = turns.map(({ seq, at, events }) => `  ${seq} at ${at}: ${events.map(factText).join("; ")}`);
  return [`${id} (${run})`, ...lines].join("\n");
}

const untold: ReadonlySet<string> = new Set(["stack", "fields", "digest", "seed", "correlationId", "workflow", "version"]);

function factText(fact: HistoryFact): string {
  const { type, ...rest } = fact;
  const isStart = type === "InstanceStarted" || type === "ChildStarted";
  const shortened = JSON.stringify(rest, (key, value) => (untold.has(key) || (isStart && key === "input") ? undefined : value));
  return `${type} ${shortened}`;
}
