/**
 * One life of an engine: from opening its store until it is closed or crashes.
 *
 * 1. After a crash nothing of it acts any more: no turn, no wake-up, no answer of its store. What its store had done by then is done.
 * 2. While it is frozen the same holds, but nothing is lost: all of it happens when it is thawed.
 * 3. It counts what is under way, so that one can tell that nothing moves without waiting for time to pass.
 */
import type { ActivityContext, ActivityDefinition, Classifier, PayloadCodec, RetryPolicy, WorkflowGuard } from "@wovyr/sdk/internal";
import {
  type ActivityExecutor,
  type Engine,
  EngineHost,
  type EngineLimits,
  type EngineLog,
  type InstanceKey,
  inProcess,
  type Loop,
  type Random,
  Registry,
  type RetentionTimes,
  type SchedulingStrategy,
  type Store,
  type StoreProvider,
  systemLoop,
  type TenantLimits,
} from "@wovyr/server/internal";
import { callOf, type Fakes } from "../fakes/fakes.ts";
import { WrongTestError } from "../fakes/wrong-test.ts";
import { CallsUnderWay } from "../faults/calls-under-way.ts";
import { bareStore, providerAround, type StoreCall, type StoreMethod } from "../faults/store-calls.ts";
import type { Attempts } from "./attempts.ts";
import type { Conductor } from "./conductor.ts";
import type { VirtualClock } from "./virtual-clock.ts";

export type SessionOptions = {
  readonly fakes: Fakes;
  /** What happens to activities without a fake. */
  readonly unfaked: "run" | "refuse";
  /** What happens to activities of task queues. */
  readonly queues: "run" | "workers";
  readonly conductor: Conductor | undefined;
  readonly attempts: Attempts;
  readonly provider: StoreProvider;
  readonly clock: VirtualClock;
  readonly random: Random;
  readonly log: EngineLog;
  readonly codec: PayloadCodec | undefined;
  readonly retry: RetryPolicy | undefined;
  readonly classify: Classifier | undefined;
  readonly scheduling: SchedulingStrategy | undefined;
  readonly tenantLimits: TenantLimits | undefined;
  readonly limits: EngineLimits;
  readonly retention: RetentionTimes | undefined;
  readonly guard: WorkflowGuard | undefined;
  readonly node: string;
  /** Milliseconds. */
  readonly lease: number;
  /** Milliseconds. */
  readonly publicationRetention: number;
  /** Hears of every attempt that begins. */
  readonly executed: (idempotencyKey: string) => void;
  /** Hears of the store as soon as it is open. */
  readonly opened: (store: Store) => void;
  /** Hears what is wrong with the test itself, whatever the workflow makes of it. */
  readonly wrong: (message: string) => void;
  /** Hears of every run that is about to be removed. */
  readonly removing: (run: string, id: string) => void;
  /** Hears of every effect that a workflow made and never yielded, with its line, where that is known. */
  readonly unrun: (message: string, at: string | undefined) => void;
  /** Hears when something begins to move or has moved. */
  readonly moved: () => void;
  readonly deadOwners: (owners: readonly string[]) => readonly string[];
};

/** A method of the store that has done nothing but fail since a moment of virtual time. */
export type FailingCalls = { readonly method: StoreMethod; readonly times: number; readonly since: number; readonly error: Error };

const shards = 256;
const never = new Promise<never>(() => {});

export class Session {
  readonly host: EngineHost;
  readonly node: string;
  readonly #options: SessionOptions;
  #dead = false;
  #moving = 0;
  readonly #calls: CallsUnderWay;
  readonly #failing = new Map<StoreMethod, FailingCalls>();
  #store: Store | undefined;
  readonly #wakeUps = new Set<() => void>();
  #frozen: Promise<void> | undefined;
  #thaw = () => {};

  constructor(options: SessionOptions) {
    this.#options = options;
    this.node = options.node;
    this.#calls = new CallsUnderWay(options.moved);
    const {
      provider,
      fakes,
      clock,
      codec,
      log,
      random,
      limits,
      retention,
      guard,
      node,
      lease,
      publicationRetention,
      deadOwners,
      retry,
      classify,
      queues,
      scheduling,
      tenantLimits,
    } = options;
    this.host = new EngineHost({
      boundsAnswers: false,
      random,
      retry,
      classify,
      scheduling,
      tenantLimits,
      limits,
      retention,
      guard,
      node,
      lease,
      publicationRetention,
      deadOwners,
      // Who is dead is known here, also of a store that only one engine can open.
      provider: {
        ...providerAround(provider, (call, run) => this.#counted(`the store's "${call.method}"`, () => this.#called(call, run))),
        shared: true,
      },
      registry: new Registry(fakes.workflows.map((workflow) => workflow.definition)),
      clock: { now: () => clock.now(), wakeAt: (at, wake) => this.#wakeAt(at, wake) },
      loop: this.#loop(),
      log: this.#lively(log),
      executor: this.#executor(),
      localQueues: queues === "run" ? "all" : undefined,
      // Whatever writes a task is this engine, so that it need not look for tasks again and again.
      looksForTasks: false,
      codec: codec && this.#countedCodec(codec),
      group: "default",
      shards,
      opened: (store) => {
        this.#store = store;
        options.opened(store);
      },
    });
  }

  /** Undefined as long as there is none. */
  get engine(): Engine | undefined {
    try {
      return this.host.engine;
    } catch {
      return undefined;
    }
  }

  get store(): Store | undefined {
    return this.#store;
  }

  /** Whether a turn, a wake-up or an answer of the store is on its way. Attempts of activities do not count. */
  get moving(): boolean {
    return this.#moving + this.#calls.moving > 0 && !this.#dead && this.#frozen === undefined;
  }

  /** Whether a call of its store waits for virtual time. */
  get sleeping(): boolean {
    return this.#calls.sleeping && !this.#dead && this.#frozen === undefined;
  }

  /** Calls of store and codec that have been under way since before a moment of real time. */
  hanging(moment: number): string[] {
    return this.#dead || this.#frozen !== undefined ? [] : this.#calls.since(moment);
  }

  /** Calls of the store that do nothing but fail, the longest first. */
  get failing(): FailingCalls | undefined {
    return [...this.#failing.values()].sort((a, b) => a.since - b.since)[0];
  }

  /** Counts what fails from now on. */
  forgive(): void {
    this.#failing.clear();
  }

  /** Why it cannot say what becomes of a run: its store is away, or it has not recovered. */
  get unready(): string | undefined {
    const { engine } = this;
    if (engine === undefined) return "its store is not open yet";
    return engine.unavailable?.message ?? (engine.ready ? undefined : "it has not recovered yet");
  }

  /** Attempts that run or are to run, and do not sleep in virtual time. */
  get holding(): number {
    const dispatch = this.engine?.dispatch;
    if (dispatch === undefined) return 0;
    const awaited = (key: string) => dispatch.has(key.slice(0, key.indexOf("/")), key.slice(key.indexOf("/") + 1));
    return dispatch.running + dispatch.waiting - this.#options.attempts.sleeping(awaited);
  }

  /** Ends it as a kill does. */
  crash(): void {
    this.#dead = true;
    for (const cancel of this.#wakeUps) cancel();
    this.#wakeUps.clear();
    this.#options.attempts.forget();
  }

  /** Stops it where it stands, as SIGSTOP does; until `thaw`. */
  freeze(): void {
    this.#frozen ??= new Promise<void>((resolve) => {
      this.#thaw = resolve;
    });
  }

  thaw(): void {
    this.#frozen = undefined;
    this.#thaw();
  }

  /** Calls `run` unless it is dead; later when it is frozen. */
  #act(run: () => void): void {
    if (this.#dead) return;
    if (this.#frozen === undefined) run();
    else void this.#frozen.then(() => this.#act(run));
  }

  async #counted<T>(what: string, run: () => Promise<T>): Promise<T> {
    await this.#frozen;
    if (this.#dead) return never;
    return this.#calls.run(what, async () => {
      try {
        const value = await run();
        await this.#frozen;
        return this.#dead ? never : value;
      } catch (error) {
        await this.#frozen;
        if (this.#dead) return never;
        throw error;
      }
    });
  }

  #began(): void {
    this.#moving += 1;
    this.#options.moved();
  }

  async #called({ method, args }: StoreCall, run: () => Promise<unknown>): Promise<unknown> {
    try {
      if (method === "deleteRuns") await this.#removing(args[0] as readonly InstanceKey[]);
      const value = await run();
      this.#failing.delete(method);
      return value;
    } catch (error) {
      const { times, since } = this.#failing.get(method) ?? { times: 0, since: this.#options.clock.now() };
      this.#failing.set(method, { method, times: times + 1, since, error: error as Error });
      throw error;
    }
  }

  async #removing(keys: readonly InstanceKey[]): Promise<void> {
    const store = this.#store && bareStore(this.#store);
    const rows = await Promise.all(keys.map((key) => store?.getInstance(key)));
    for (const row of rows) if (row !== undefined) this.#options.removing(row.run, row.id);
  }

  #countedCodec(codec: PayloadCodec): PayloadCodec {
    return {
      name: codec.name,
      encode: (payload) => this.#counted(`encode() of codec "${codec.name}"`, async () => codec.encode(payload)),
      decode: (payload) => this.#counted(`decode() of codec "${codec.name}"`, async () => codec.decode(payload)),
    };
  }

  #wakeAt(at: number, wake: () => void): () => void {
    if (this.#dead) return () => {};
    const cancelWakeUp = this.#options.clock.wakeAt(at, () => {
      this.#wakeUps.delete(cancel);
      this.#act(wake);
    });
    const cancel = () => {
      this.#wakeUps.delete(cancel);
      cancelWakeUp();
    };
    this.#wakeUps.add(cancel);
    return cancel;
  }

  #loop(): Loop {
    return {
      immediate: (run) => {
        this.#began();
        systemLoop.immediate(() => {
          this.#moving -= 1;
          this.#act(run);
          this.#options.moved();
        });
      },
      drained: (run) => systemLoop.drained(() => this.#act(run)),
      elapsed: () => systemLoop.elapsed(),
    };
  }

  #executor(): ActivityExecutor {
    const { attempts, executed, fakes, conductor, moved } = this.#options;
    return {
      execute: async (definition, input, ctx) => {
        const { idempotencyKey: key, attempt, instanceId } = ctx;
        const name = definition.name;
        executed(key);
        const fake = fakes.answering(definition);
        const body = fake === undefined ? () => this.#real(definition, input, ctx) : () => fake.answer(callOf(input, ctx), ctx);
        // What the engine does itself waits for nothing but the engine.
        const own = definition.builtIn !== undefined && fake === undefined;
        const run = () =>
          attempts.run({ activity: name, key, attempt, instanceId, sleeping: own ? 1 : 0 }, body).catch((error) => this.#failed(error));
        moved();
        try {
          return await (conductor === undefined ? run() : conductor.attempt({ name, key, attempt, own, input }, run));
        } finally {
          await this.#frozen;
          moved();
        }
      },
    };
  }

  #real(definition: ActivityDefinition, input: unknown, ctx: ActivityContext): unknown {
    if (this.#options.unfaked === "refuse" && !this.#options.fakes.isAnswer(definition))
      throw new WrongTestError(
        `activity "${definition.name}" has no fake, and this environment runs no activity for real (unfaked: "refuse"): add fake(${definition.name}, …)`,
      );
    return inProcess.execute(definition, input, ctx);
  }

  /** What is wrong with the test is told to it, too: the workflow may catch the error. */
  #failed(error: unknown): never {
    if (error instanceof WrongTestError && !this.#dead) this.#options.wrong(error.message);
    throw error;
  }

  #lively(log: EngineLog): EngineLog {
    const line = (level: keyof EngineLog) => (message: string, data?: object) => {
      if (this.#dead) return;
      log[level](message, data);
      const { code, at } = (data ?? {}) as { readonly code?: unknown; readonly at?: string };
      if (code === "EFFECT_NOT_YIELDED") this.#options.unrun(message, at);
    };
    return { debug: line("debug"), info: line("info"), warn: line("warn"), error: line("error") };
  }
}
