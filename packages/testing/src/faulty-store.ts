/**
 * A store that fails, answers late, or does its work and then fails to say so.
 *
 * 1. `before`: the call never reaches the store. `after`: the store has done it, and the caller does not learn it (the outcome is unknown).
 * 2. Faults are used up in the order in which they were planned; a call meets at most one.
 */
import { type StoreProvider, StoreUnavailableError } from "@wovyr/server/internal";
import { providerAround, type StoreCall, type StoreMethod } from "./store-calls.ts";

export type FaultPlace = "before" | "after";

export type FaultOptions = {
  /** Default `before`. */
  readonly at?: FaultPlace;
  /** Default 1; Infinity: until `clear`. */
  readonly times?: number;
  /** Which calls of the method; default: every one. */
  readonly where?: (call: StoreCall) => boolean;
  /** Default: a `StoreUnavailableError`, which means an outage. */
  readonly error?: Error;
};

/** A call that was stopped on its way. */
export type HeldCall = {
  /** Resolves when a call has been stopped. */
  readonly reached: Promise<StoreCall>;
  /** Lets it go on. */
  release(): void;
};

type Fault = {
  readonly method: StoreMethod;
  readonly at: FaultPlace;
  readonly where: (call: StoreCall) => boolean;
  left: number;
  readonly meet: (call: StoreCall) => void | Promise<void>;
};

export class FaultPlan {
  readonly #faults: Fault[] = [];
  /** How many faults have been met. */
  met = 0;

  /** Lets calls of a method fail. */
  fail(method: StoreMethod, options: FaultOptions = {}): this {
    const at = options.at ?? "before";
    return this.#add(method, options, () => {
      throw options.error ?? new StoreUnavailableError(`planned fault ${at} ${method}`);
    });
  }

  /** Stops the next call of a method. */
  hold(method: StoreMethod, options: Pick<FaultOptions, "at" | "where"> = {}): HeldCall {
    let release = () => {};
    const released = new Promise<void>((resolve) => {
      release = resolve;
    });
    let reach: (call: StoreCall) => void = () => {};
    const reached = new Promise<StoreCall>((resolve) => {
      reach = resolve;
    });
    this.#add(method, options, (call) => {
      reach(call);
      return released;
    });
    return { reached, release: () => release() };
  }

  /** Calls `watch` with calls of a method, for as long as the store lives. */
  watch(method: StoreMethod, watch: (call: StoreCall) => void | Promise<void>, at: FaultPlace = "before"): this {
    return this.#add(method, { at, times: Number.POSITIVE_INFINITY }, watch);
  }

  /** Forgets what has not been met. */
  clear(): void {
    this.#faults.length = 0;
  }

  /** What a call meets at a place. */
  async meet(at: FaultPlace, call: StoreCall): Promise<void> {
    const index = this.#faults.findIndex((fault) => fault.method === call.method && fault.at === at && fault.where(call));
    const fault = this.#faults[index];
    if (fault === undefined) return;
    fault.left -= 1;
    if (fault.left <= 0) this.#faults.splice(index, 1);
    this.met += 1;
    await fault.meet(call);
  }

  #add(method: StoreMethod, options: Pick<FaultOptions, "at" | "times" | "where">, meet: Fault["meet"]): this {
    this.#faults.push({ method, at: options.at ?? "before", where: options.where ?? (() => true), left: options.times ?? 1, meet });
    return this;
  }
}

export function createFaultyStore(provider: StoreProvider, plan: FaultPlan): StoreProvider {
  return providerAround(provider, async (call, run) => {
    await plan.meet("before", call);
    const value = await run();
    await plan.meet("after", call);
    return value;
  });
}
