/**
 * Faults by chance.
 *
 * 1. The same seed and the same calls in the same order meet the same faults: two numbers are drawn when a call of a method of
 *    theirs arrives, whatever it meets.
 * 2. The rates are shares of the calls, and a call meets at most one fault.
 */
import { WovyrError } from "@wovyr/sdk";
import { checkOptions } from "@wovyr/sdk/internal";
import { SeededRandom } from "../environment/seeded-random.ts";
import { type StoreMethod, storeMethods } from "./store-calls.ts";

export type FaultRates = {
  /** Share of the calls (0 to 1) that fail before they reach the store. */
  readonly failBefore?: number;
  /** Share of the calls whose work is done and whose answer is lost. */
  readonly failAfter?: number;
  /** Share of the commits that are refused. */
  readonly refuse?: number;
  /** Share of the calls that reach the store later, by up to so many milliseconds. */
  readonly delay?: { readonly rate: number; readonly upTo: number };
  /** Default: every method but `close`. */
  readonly methods?: readonly StoreMethod[];
  /** Default: one by chance, which the plan tells (`plan.seed`). */
  readonly seed?: number;
};

export type ChanceFault =
  | { readonly kind: "fail"; readonly at: "before" | "after" }
  | { readonly kind: "refuse" }
  | { readonly kind: "delay"; readonly milliseconds: number };

/** Milliseconds. */
export const longestDelay = 3_600_000;

export class Chance {
  readonly seed: number;
  readonly methods: readonly StoreMethod[] | undefined;
  readonly #random: SeededRandom;
  readonly #rates: FaultRates;

  /** Throws INVALID_OPTION for rates that are none. */
  constructor(rates: FaultRates) {
    checkRates(rates);
    this.seed = rates.seed ?? Math.floor(Math.random() * 0x7fff_ffff);
    this.methods = rates.methods;
    this.#random = new SeededRandom(this.seed);
    this.#rates = rates;
  }

  /** What the next call meets. */
  draw(method: StoreMethod): ChanceFault | undefined {
    if (this.methods === undefined ? method === "close" : !this.methods.includes(method)) return undefined;
    const { failBefore = 0, failAfter = 0, refuse = 0, delay } = this.#rates;
    const length = this.#random.fraction();
    let left = this.#random.fraction();
    const falls = (rate: number): boolean => {
      left -= rate;
      return left < 0;
    };
    if (falls(failBefore)) return { kind: "fail", at: "before" };
    if (falls(failAfter)) return { kind: "fail", at: "after" };
    if (delay !== undefined && falls(delay.rate)) return { kind: "delay", milliseconds: Math.round(length * delay.upTo) };
    return falls(refuse) && method === "commit" ? { kind: "refuse" } : undefined;
  }
}

function checkRates(rates: FaultRates): void {
  if (rates === undefined) refuseOption("createFaultyStore() takes a plan, or the rates of faults: { failBefore: 0.05 }");
  checkOptions(rates, ["failBefore", "failAfter", "refuse", "delay", "methods", "seed"], "the rates of faults");
  const { delay, methods, seed } = rates;
  checkOptions(delay, ["rate", "upTo"], "the delay of faults");
  const shares = { failBefore: rates.failBefore, failAfter: rates.failAfter, refuse: rates.refuse, "delay.rate": delay?.rate };
  let sum = 0;
  for (const [name, share] of Object.entries(shares)) {
    if (share === undefined && !(name === "delay.rate" && delay !== undefined)) continue;
    if (typeof share !== "number" || !(share >= 0 && share <= 1))
      refuseOption(`the rate ${name} must be a number from 0 to 1, not ${share}`);
    sum += share;
  }
  // What floating point makes of 0.1 + 0.2 + 0.7 is no mistake of the test.
  if (sum > 1 + 1e-9) refuseOption(`the rates add up to ${sum}: a call meets at most one fault, so they must not be more than 1 together`);
  if (delay !== undefined) checkDelay(delay.upTo, "delay.upTo");
  if (methods !== undefined && (!Array.isArray(methods) || methods.length === 0))
    refuseOption("methods must be a list of at least one method of a store");
  for (const method of methods ?? []) checkMethod(method);
  if (seed !== undefined && !Number.isSafeInteger(seed)) refuseOption(`the seed of faults must be a whole number, not ${seed}`);
}

/** Milliseconds that a call may be late; throws INVALID_OPTION. */
export function checkDelay(milliseconds: number, what: string): void {
  if (typeof milliseconds === "number" && milliseconds >= 0 && milliseconds <= longestDelay) return;
  refuseOption(`${what} must be milliseconds from 0 to ${longestDelay}, not ${milliseconds}`);
}

export function checkMethod(method: unknown): void {
  if (storeMethods.includes(method as string)) return;
  refuseOption(`a store has no method ${JSON.stringify(method) ?? String(method)}; it has ${storeMethods.join(", ")}`);
}

export function refuseOption(message: string): never {
  throw new WovyrError(message, { code: "INVALID_OPTION" });
}
