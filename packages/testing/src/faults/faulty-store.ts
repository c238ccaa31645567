/**
 * A store that fails, answers late, does its work and then fails to say so, refuses, or is away: any provider, and a plan of what goes wrong.
 *
 * 1. `before`: the call never reaches the store. `after`: the store has done it, and the caller does not learn it (the outcome is unknown).
 * 2. Faults are used up in the order in which they were planned; at either place a call meets at most one, and one by chance only when no planned one.
 * 3. What is cut by `disconnect` is answered at once and may still be done, however late: as with any connection that breaks.
 * 4. The log of what was met is bounded, and names the seed that repeats what came by chance.
 */
import { checkOptions } from "@wovyr/sdk/internal";
import { type Clock, nothingDone, type Store, type StoreProvider, StoreUnavailableError, systemClock } from "@wovyr/server/internal";
import { VirtualClock } from "../environment/virtual-clock.ts";
import { sleepingCall } from "./calls-under-way.ts";
import { Chance, type ChanceFault, checkDelay, checkMethod, type FaultRates, refuseOption } from "./faulty-store-rates.ts";
import { type StoreCall, type StoreMethod, storeAround } from "./store-calls.ts";

export type { FaultRates } from "./faulty-store-rates.ts";

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

export type FaultPlanOptions = {
  /** Whose time delays take; default: that of the machine. May be set later: `plan.clock = env.clock`. */
  readonly clock?: Clock;
};

/** A fault that a call met. */
export type MetFault = {
  readonly kind: "fail" | "hold" | "delay" | "refuse" | "disconnect";
  readonly method: StoreMethod | "open";
  readonly at: FaultPlace;
  /** Milliseconds, of a delay. */
  readonly delay?: number;
  /** Whether it came by the rates. */
  readonly chance: boolean;
};

type Fault = {
  readonly kind: MetFault["kind"];
  readonly method: StoreMethod;
  readonly at: FaultPlace;
  readonly where: (call: StoreCall) => boolean;
  left: number;
  readonly delay?: number;
  readonly meet: (call: StoreCall) => void | Promise<void>;
};

type Watcher = { readonly method: StoreMethod; readonly at: FaultPlace; readonly watch: (call: StoreCall) => void | Promise<void> };

const hearing = new WeakMap<FaultPlan, Set<() => void>>();

/** Calls `hear` whenever the store can be reached again. */
export function hearReconnection(plan: FaultPlan, hear: () => void): void {
  const all = hearing.get(plan) ?? new Set();
  hearing.set(plan, all.add(hear));
}

/** Entries of the log. */
const longestLog = 10_000;

export class FaultPlan {
  /** Whose time delays take. */
  clock: Clock;
  readonly #faults: Fault[] = [];
  readonly #watchers: Watcher[] = [];
  readonly #log: MetFault[] = [];
  readonly #underWay = new Set<(error: Error) => void>();
  #chance: Chance | undefined;
  #connected = true;
  /** How many faults have been met. */
  met = 0;

  constructor(options: FaultPlanOptions = {}) {
    checkOptions(options, ["clock"], "FaultPlan");
    const { clock = systemClock } = options;
    if (typeof clock?.now !== "function" || typeof clock.wakeAt !== "function")
      refuseOption("the clock of a FaultPlan must be one such as `env.clock`");
    this.clock = clock;
  }

  /** Lets calls of a method fail. */
  fail(method: StoreMethod, options: FaultOptions = {}): this {
    checkOptions(options, ["at", "times", "where", "error"], "fail()");
    const at = options.at ?? "before";
    if (options.error !== undefined && !(options.error instanceof Error)) refuseOption("the error of fail() must be an Error");
    return this.#add("fail", method, options, () => {
      throw options.error ?? new StoreUnavailableError(`planned fault ${at} ${method}`);
    });
  }

  /** Stops the next call of a method. */
  hold(method: StoreMethod, options: Pick<FaultOptions, "at" | "where"> = {}): HeldCall {
    checkOptions(options, ["at", "where"], "hold()");
    let release = () => {};
    const released = new Promise<void>((resolve) => {
      release = resolve;
    });
    let reach: (call: StoreCall) => void = () => {};
    const reached = new Promise<StoreCall>((resolve) => {
      reach = resolve;
    });
    this.#add("hold", method, options, (call) => {
      reach(call);
      return released;
    });
    return { reached, release: () => release() };
  }

  /**
   * Lets calls of a method reach the store (or, `after`, its answers reach the caller) so many milliseconds later. Under a test environment's clock
   * (`plan.clock = env.clock`) they are milliseconds of virtual time, and time jumps over them.
   */
  delay(method: StoreMethod, milliseconds: number, options: Pick<FaultOptions, "at" | "times" | "where"> = {}): this {
    checkOptions(options, ["at", "times", "where"], "delay()");
    checkDelay(milliseconds, "the length of delay()");
    return this.#add("delay", method, options, () => this.#wait(milliseconds), milliseconds);
  }

  /** Lets commits do nothing and say so, as when another owner has taken the shards: nothing is done, nothing failed. */
  refuse(method: "commit", options: Pick<FaultOptions, "times" | "where"> = {}): this {
    checkOptions(options, ["times", "where"], "refuse()");
    if (method !== "commit") refuseOption(`refuse() knows commits only: a store cannot refuse "${String(method)}"`);
    return this.#add("refuse", method, options, () => {});
  }

  /** Calls `watch` with every call of a method, before it meets a fault, until `clear`; the call waits for it. */
  watch(method: StoreMethod, watch: (call: StoreCall) => void | Promise<void>, at: FaultPlace = "before"): this {
    checkMethod(method);
    if (typeof watch !== "function") refuseOption("watch() takes a function that is given the call");
    checkPlace(at);
    this.#watchers.push({ method, at, watch });
    return this;
  }

  /** From now on calls meet faults by chance, by these rates in place of earlier ones. */
  random(rates: FaultRates): this {
    this.#chance = new Chance(rates);
    return this;
  }

  /** Lets every call fail until `reconnect`, opening the store included; calls under way fail at once, and their outcome is unknown. */
  disconnect(): void {
    if (!this.#connected) return;
    this.#connected = false;
    for (const cut of this.#underWay) cut(new StoreUnavailableError("planned fault: the connection is cut, the outcome is unknown"));
  }

  reconnect(): void {
    if (this.#connected) return;
    this.#connected = true;
    for (const hear of hearing.get(this) ?? []) hear();
  }

  /** Whether the store can be reached: false between `disconnect` and `reconnect`. */
  get connected(): boolean {
    return this.#connected;
  }

  /** Forgets what has not been met, rates and watchers included. */
  clear(): void {
    this.#faults.length = 0;
    this.#watchers.length = 0;
    this.#chance = undefined;
  }

  /** The faults that were met, in their order: the last 10,000. */
  get log(): readonly MetFault[] {
    return this.#log;
  }

  /** What repeats the faults that come by chance; undefined when none do. */
  get seed(): number | undefined {
    return this.#chance?.seed;
  }

  /** What was met, in a line: for the message of a test that failed. */
  describe(): string {
    const counts = new Map<string, number>();
    for (const { kind, method, at } of this.#log) {
      const key = kind === "fail" ? `${method} failed ${at}` : `${method} ${pastOf[kind]}`;
      counts.set(key, (counts.get(key) ?? 0) + 1);
    }
    const met = [...counts].map(([what, times]) => `${times} × ${what}`).join(", ") || "no fault was met";
    return this.seed === undefined ? met : `${met} (seed ${this.seed})`;
  }

  /** Puts the plan between a store and its callers. */
  async open(open: () => Promise<Store>): Promise<Store> {
    if (!this.#connected) throw this.#away("open");
    const store = await open();
    return storeAround(store, (call, run) => this.#around(call, run));
  }

  #around(call: StoreCall, run: () => Promise<unknown>): Promise<unknown> {
    // Closing is no call over the network.
    if (call.method === "close") return this.#through(call, run);
    if (!this.#connected) return Promise.reject(this.#away(call.method));
    return new Promise((resolve, reject) => {
      const cut = (error: Error) => {
        this.#underWay.delete(cut);
        this.#met({ kind: "disconnect", method: call.method, at: "after", chance: false });
        reject(error);
      };
      this.#underWay.add(cut);
      this.#through(call, run)
        .finally(() => this.#underWay.delete(cut))
        .then(resolve, reject);
    });
  }

  async #through(call: StoreCall, run: () => Promise<unknown>): Promise<unknown> {
    const chance = this.#chance?.draw(call.method);
    const planned = await this.#meet("before", call);
    const met = planned === undefined ? chance : undefined;
    if (met !== undefined && !(met.kind === "fail" && met.at === "after")) await this.#byChance(met, call);
    if (planned?.kind === "refuse" || met?.kind === "refuse") return nothingDone();
    const value = await run();
    if ((await this.#meet("after", call)) === undefined && met?.kind === "fail" && met.at === "after") await this.#byChance(met, call);
    return value;
  }

  /** What a planned fault does to a call at a place, if there is one. */
  async #meet(at: FaultPlace, call: StoreCall): Promise<Fault | undefined> {
    for (const watcher of [...this.#watchers]) if (watcher.method === call.method && watcher.at === at) await watcher.watch(call);
    const index = this.#faults.findIndex((fault) => fault.method === call.method && fault.at === at && fault.where(call));
    const fault = this.#faults[index];
    if (fault === undefined) return undefined;
    fault.left -= 1;
    if (fault.left <= 0) this.#faults.splice(index, 1);
    const { kind, method, delay } = fault;
    this.#met({ kind, method, at, ...(delay !== undefined && { delay }), chance: false });
    await fault.meet(call);
    return fault;
  }

  async #byChance(fault: ChanceFault, { method }: StoreCall): Promise<void> {
    const at = fault.kind === "fail" ? fault.at : "before";
    const delay = fault.kind === "delay" ? fault.milliseconds : undefined;
    this.#met({ kind: fault.kind, method, at, ...(delay !== undefined && { delay }), chance: true });
    if (fault.kind === "fail") throw new StoreUnavailableError(`fault by chance ${at} ${method} (seed ${this.seed})`);
    if (delay !== undefined) await this.#wait(delay);
  }

  #away(method: MetFault["method"]): Error {
    this.#met({ kind: "disconnect", method, at: "before", chance: false });
    return new StoreUnavailableError("planned fault: the store is disconnected");
  }

  #wait(milliseconds: number): Promise<void> {
    const { clock } = this;
    const passed = new Promise<void>((resolve) => void clock.wakeAt(clock.now() + milliseconds, resolve));
    return clock instanceof VirtualClock ? sleepingCall(passed) : passed;
  }

  #met(fault: MetFault): void {
    this.met += 1;
    if (this.#log.length === longestLog) this.#log.shift();
    this.#log.push(fault);
  }

  #add(
    kind: Fault["kind"],
    method: StoreMethod,
    options: Pick<FaultOptions, "at" | "times" | "where">,
    meet: Fault["meet"],
    delay?: number,
  ): this {
    const { at = "before", times = 1, where = () => true } = options;
    checkMethod(method);
    checkPlace(at);
    if (times !== Number.POSITIVE_INFINITY && !(Number.isSafeInteger(times) && times >= 1))
      refuseOption(`times must be a whole number of at least 1, or Infinity, not ${times}`);
    if (typeof where !== "function") refuseOption("where must be a function that is given the call");
    this.#faults.push({ kind, method, at, where, left: times, meet, ...(delay !== undefined && { delay }) });
    return this;
  }
}

function checkPlace(at: unknown): void {
  if (at !== "before" && at !== "after") refuseOption(`at must be "before" or "after", not ${JSON.stringify(at)}`);
}

const pastOf = { hold: "held", delay: "delayed", refuse: "refused", disconnect: "cut off" } as const;

/** A provider with a plan of what goes wrong. */
export type FaultyStore = StoreProvider & { readonly plan: FaultPlan };

/** Any provider, with planned faults or with faults by chance; the plan of the latter (its log, its seed) is the provider's `plan`. */
export function createFaultyStore(provider: StoreProvider, faults: FaultPlan | FaultRates): FaultyStore {
  if (typeof provider?.open !== "function")
    refuseOption("createFaultyStore() takes a store (memoryStore(), pgliteStore(…), postgresStore(…)) and a plan or rates");
  const plan = faults instanceof FaultPlan ? faults : new FaultPlan().random(faults);
  return {
    kind: provider.kind,
    shared: provider.shared,
    plan,
    open: (options) => plan.open(() => provider.open(options)),
  };
}
