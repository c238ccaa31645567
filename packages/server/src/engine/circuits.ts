/**
 * The circuits of this process, one per tenant and activity, and the attempts that they hold back.
 *
 * 1. An attempt that is held back takes no place. Its limits go on; when its circuit lets it through, it queues like any other.
 * 2. Failures count that may be gone another time: transient ones, timeouts, infrastructure. Any other outcome shows that the other side answers.
 * 3. Circuits are bounded in number: beyond it, the one that was told of longest ago and holds nothing back is forgotten.
 */
import { resolveCircuitBreaker } from "@wovyr/sdk/internal";
import type { Attempt, AttemptEnd } from "./attempt.ts";
import { CircuitBreaker, type CircuitState } from "./circuit-breaker.ts";
import type { Clock } from "./ports/clock.ts";
import type { EngineLog } from "./ports/log.ts";

const maxCircuits = 10_000;

/** What an attempt was let through with. */
export type CircuitTicket = { readonly key: string; readonly term: number };

type Circuit = {
  readonly breaker: CircuitBreaker;
  readonly activity: string;
  readonly tenant: string;
  /** In the order in which they came. */
  readonly held: Set<Attempt>;
  cancelTimer: (() => void) | undefined;
};

export class Circuits {
  readonly #clock: Clock;
  readonly #log: EngineLog;
  readonly #release: (attempts: readonly Attempt[]) => void;
  readonly #circuits = new Map<string, Circuit>();

  /** `release` gets attempts that may queue again. */
  constructor(options: { clock: Clock; log: EngineLog; release: (attempts: readonly Attempt[]) => void }) {
    this.#clock = options.clock;
    this.#log = options.log;
    this.#release = options.release;
  }

  /** Attempts that are held back. */
  get held(): number {
    let count = 0;
    for (const { held } of this.#circuits.values()) count += held.size;
    return count;
  }

  /** When the next circuit that holds attempts back lets some through; milliseconds since the epoch. */
  get nextDue(): number | undefined {
    let next: number | undefined;
    for (const { held, breaker, cancelTimer } of this.#circuits.values())
      if (held.size > 0 && cancelTimer !== undefined && (next === undefined || breaker.until < next)) next = breaker.until;
    return next;
  }

  /** How the circuit of an activity stands, when it is not closed. */
  stateOf(tenant: string, activity: string): { readonly state: Exclude<CircuitState, "closed">; readonly until: number } | undefined {
    const breaker = this.#circuits.get(keyOf(tenant, activity))?.breaker;
    const state = breaker?.stateAt(this.#clock.now());
    return breaker === undefined || state === undefined || state === "closed" ? undefined : { state, until: breaker.until };
  }

  /** Whether an attempt is held back. */
  holds(attempt: Attempt): boolean {
    return this.#circuits.get(keyOf(attempt.tenant, attempt.activity.name))?.held.has(attempt) ?? false;
  }

  /** Lets an attempt through, or (undefined) keeps it until it may go on. */
  admit(attempt: Attempt): CircuitTicket | undefined {
    const key = keyOf(attempt.tenant, attempt.activity.name);
    const circuit = this.#circuits.get(key);
    if (circuit === undefined) return { key, term: 0 };
    if (circuit.breaker.admits(this.#clock.now())) return { key, term: circuit.breaker.term };
    circuit.held.add(attempt);
    return undefined;
  }

  /** What became of an attempt that was let through. */
  ended({ key, term }: CircuitTicket, attempt: Attempt, end: AttemptEnd): void {
    const isFailure = end === "transient" || end === "timeout" || end === "infrastructure";
    const circuit = this.#circuits.get(key) ?? (isFailure ? this.#add(key, attempt) : undefined);
    if (circuit === undefined) return;
    const { breaker } = circuit;
    const now = this.#clock.now();
    const before = breaker.term;
    if (isFailure) breaker.failed(term, now);
    else if (end === undefined) breaker.gaveUp(term);
    else breaker.succeeded(term);
    if (breaker.term !== before) this.#changed(circuit, now);
    else this.#letThrough(circuit, now);
  }

  /** An attempt that is held back, or that was to go on, is not to begin any more: the next one may. */
  gone(attempt: Attempt): void {
    const circuit = this.#circuits.get(keyOf(attempt.tenant, attempt.activity.name));
    if (circuit !== undefined && !circuit.held.delete(attempt)) this.#letThrough(circuit, this.#clock.now());
  }

  /** Forgets every circuit, with the attempts that it holds back: no timer of theirs keeps the process. */
  forget(): void {
    for (const { cancelTimer } of this.#circuits.values()) cancelTimer?.();
    this.#circuits.clear();
  }

  #add(key: string, { tenant, call, activity }: Attempt): Circuit | undefined {
    const options = call.definition.circuitBreaker;
    if (options === undefined) return undefined;
    if (this.#circuits.size >= maxCircuits) this.#forgetOne();
    const circuit: Circuit = {
      breaker: new CircuitBreaker(resolveCircuitBreaker(options)),
      activity: activity.name,
      tenant,
      held: new Set(),
      cancelTimer: undefined,
    };
    this.#circuits.set(key, circuit);
    return circuit;
  }

  #forgetOne(): void {
    for (const [key, { held, cancelTimer }] of this.#circuits) {
      if (held.size > 0) continue;
      cancelTimer?.();
      this.#circuits.delete(key);
      return;
    }
  }

  #changed(circuit: Circuit, now: number): void {
    const { breaker, activity, tenant } = circuit;
    circuit.cancelTimer?.();
    circuit.cancelTimer = undefined;
    if (breaker.stateAt(now) === "closed") {
      this.#log.info("the circuit of an activity is closed again", { activity, tenant });
      this.#letThrough(circuit, now);
      return;
    }
    const until = new Date(breaker.until).toISOString();
    this.#log.warn("the circuit of an activity is open: its attempts are held back", { activity, tenant, until, held: circuit.held.size });
    circuit.cancelTimer = this.#clock.wakeAt(breaker.until, () => {
      circuit.cancelTimer = undefined;
      this.#letThrough(circuit, this.#clock.now());
    });
  }

  #letThrough(circuit: Circuit, now: number): void {
    const room = circuit.breaker.roomAt(now);
    const released: Attempt[] = [];
    for (const attempt of circuit.held) {
      if (released.length >= room) break;
      circuit.held.delete(attempt);
      released.push(attempt);
    }
    if (released.length > 0) this.#release(released);
  }
}

const keyOf = (tenant: string, activity: string) => `${tenant}\u0000${activity}`;
