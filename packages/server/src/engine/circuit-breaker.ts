/**
 * A circuit: closed while things work, open while they do not, half-open while a few attempts find out.
 *
 * 1. Pure: time is handed in. What an attempt came to counts only in the term in which it was let through; every change of state begins another.
 */
import type { ResolvedCircuitBreaker } from "@wovyr/sdk/internal";

export type CircuitState = "closed" | "open" | "halfOpen";

export class CircuitBreaker {
  readonly #options: ResolvedCircuitBreaker;
  #state: CircuitState = "closed";
  #term = 0;
  /** When an open circuit lets attempts through again; milliseconds since the epoch. */
  #until = 0;
  /** Times of the failures that count. */
  #failures: number[] = [];
  /** Attempts that were let through half-open and have not failed, and those of them that have ended. */
  #probes = 0;
  #passed = 0;

  constructor(options: ResolvedCircuitBreaker) {
    this.#options = options;
  }

  get term(): number {
    return this.#term;
  }

  get until(): number {
    return this.#until;
  }

  stateAt(now: number): CircuitState {
    return this.#state === "open" && now >= this.#until ? "halfOpen" : this.#state;
  }

  /** Whether an attempt may begin; one that may half-open counts as begun. */
  admits(now: number): boolean {
    if (this.#state === "closed") return true;
    if (this.#state === "open") {
      if (now < this.#until) return false;
      this.#enter("halfOpen");
    }
    if (this.#probes >= this.#options.halfOpenAttempts) return false;
    this.#probes += 1;
    return true;
  }

  /** How many more attempts it would let through now. */
  roomAt(now: number): number {
    const state = this.stateAt(now);
    if (state === "closed") return Number.POSITIVE_INFINITY;
    if (state === "open") return 0;
    return this.#options.halfOpenAttempts - (this.#state === "open" ? 0 : this.#probes);
  }

  succeeded(term: number): void {
    if (term !== this.#term) return;
    if (this.#state === "closed") {
      if (this.#options.window === undefined) this.#failures = [];
      return;
    }
    this.#passed += 1;
    if (this.#passed >= this.#options.halfOpenAttempts) this.#enter("closed");
  }

  failed(term: number, now: number): void {
    if (term !== this.#term) return;
    if (this.#state === "closed" && !this.#isTooMuch(now)) return;
    this.#enter("open");
    this.#until = now + this.#options.openFor;
  }

  /** An attempt that was let through ended without an outcome. */
  gaveUp(term: number): void {
    if (term === this.#term && this.#state === "halfOpen") this.#probes -= 1;
  }

  #isTooMuch(now: number): boolean {
    const { failureThreshold, window } = this.#options;
    if (window !== undefined) this.#failures = this.#failures.filter((at) => at > now - window);
    this.#failures.push(now);
    return this.#failures.length >= failureThreshold;
  }

  #enter(state: CircuitState): void {
    this.#state = state;
    this.#term += 1;
    this.#failures = [];
    this.#probes = 0;
    this.#passed = 0;
  }
}
