/**
 * What a run asked for, one after another: its effects and its end, as a person names them.
 *
 * 1. A sequence is made of commands alone; what came in is not part of it.
 * 2. Two steps are the same when their kind, name and input are; their places in the code do not count.
 */
import { decodePayload, type EffectId, encodePayload, type HistoryFact, isCommand, type Payload } from "@wovyr/sdk/internal";

export type Step = {
  /** `activity reserve`, `sleep`, `event approval`, `end (completed)`. */
  readonly label: string;
  /** Equal for steps that are the same. */
  readonly key: string;
  readonly effect: EffectId | undefined;
  /** Of effects that have one. */
  readonly input: Payload | undefined;
  /** Number of the turn that asked for it. */
  readonly turn: number;
  /** Follows from another effect's end: a cancellation, an event that is taken. */
  readonly derived: boolean;
  /** What the code threw, of an end that failed. */
  readonly failure?: string;
};

const timerNames = {
  sleep: "sleep",
  timeout: "timeout",
  cleanup: "clean-up timeout",
  start: "delayed start",
  retry: "retry",
  run: "run timeout",
  execution: "execution timeout",
} as const;

/** Gathers the steps of one run. */
export class EffectSequence {
  readonly steps: Step[] = [];
  readonly #labels = new Map<EffectId, string>();

  add(fact: HistoryFact, turn: number): void {
    if (!isCommand(fact)) return;
    const named = this.#named(fact);
    if (named === undefined) return;
    const { label, derived = false, key: awaitedKey } = named;
    const effect = "effect" in fact ? fact.effect : undefined;
    if (effect !== undefined && !derived) this.#labels.set(effect, label);
    const key = "digest" in fact ? `${label} ${fact.digest}` : awaitedKey === undefined ? label : `${label} ${awaitedKey}`;
    const failure =
      fact.type === "InstanceFailed" || fact.type === "InstanceTimedOut"
        ? { failure: `${fact.failure.name}: ${fact.failure.message}` }
        : {};
    this.steps.push({ label, key, effect, input: "input" in fact ? fact.input : undefined, turn, derived, ...failure });
  }

  /** A side effect whose value nobody knows, so that the runtime could not record it. */
  addSideEffect(effect: EffectId, turn: number): void {
    this.add({ type: "SideEffectRecorded", effect }, turn);
  }

  #named(fact: HistoryFact): { readonly label: string; readonly derived?: boolean; readonly key?: string } | undefined {
    switch (fact.type) {
      case "ActivityScheduled":
        return { label: `activity ${fact.name}` };
      case "TimerStarted":
        return { label: timerNames[fact.purpose] ?? `timer ${fact.purpose}` };
      case "EventAwaited":
        return { label: `event ${fact.name}`, ...(fact.key !== undefined && { key: fact.key }) };
      case "ChildStarted":
        return { label: `child ${fact.workflow}` };
      case "SideEffectRecorded":
        return { label: "side effect" };
      case "EventConsumed":
        return { label: `${this.#labels.get(fact.effect) ?? "event"} taken`, derived: true };
      case "EffectCancelled":
        return { label: `${this.#labels.get(fact.effect) ?? `effect ${fact.effect}`} cancelled`, derived: true };
      case "CompensationStarted":
        return { label: `compensation of ${fact.compensations.map(({ name }) => name).join(", ")}` };
      case "CompensationCompleted":
        return { label: `compensation ${fact.effect} done`, derived: true };
      case "CompensationFailed":
      case "CompensationStuck":
        return { label: `compensation ${fact.effect} failed`, derived: true };
      case "InstanceCompensated":
        return { label: "end (compensated)" };
      case "InstanceCompensationFailed":
        return { label: "end (not all of it compensated)" };
      case "InstanceCompleted":
        return { label: "end (completed)" };
      case "InstanceFailed":
        return { label: "end (failed)" };
      case "InstanceTimedOut":
        return { label: "end (timed out)" };
      case "InstanceCancelled":
        return { label: "end (cancelled)" };
      default:
        return undefined;
    }
  }
}

/** Where two inputs differ first, as a path without values: `.items[2].price`; undefined when the difference does not show. */
export function differingPath(recorded: Payload, made: Payload): string | undefined {
  return pathOf(decodePayload(recorded), decodePayload(made), 0);
}

const deepest = 20;

function pathOf(a: unknown, b: unknown, depth: number): string | undefined {
  if (Object.is(a, b)) return undefined;
  if (!isRecord(a) || !isRecord(b) || depth > deepest) return encodePayload(a) === encodePayload(b) ? undefined : "";
  for (const key of new Set([...Object.keys(a), ...Object.keys(b)])) {
    const path = pathOf(a[key], b[key], depth + 1);
    if (path !== undefined) return `${Array.isArray(a) ? `[${key}]` : `.${key}`}${path}`;
  }
  return undefined;
}

const isRecord = (value: unknown): value is Record<string, unknown> =>
  typeof value === "object" && value !== null && (Array.isArray(value) || Object.getPrototypeOf(value) === Object.prototype);
