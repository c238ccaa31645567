/**
 * One life of an engine: from opening its store until it is closed or crashes.
 *
 * 1. After a crash nothing of it acts any more: no turn, no wake-up, no answer of its store. What its store had done by then is done.
 * 2. It counts what is under way, so that one can tell that nothing moves without waiting for time to pass.
 */
import type { AnyWorkflow } from "@wovyr/sdk";
import type { PayloadCodec } from "@wovyr/sdk/internal";
import {
  type ActivityExecutor,
  type Engine,
  EngineHost,
  type EngineLimits,
  type EngineLog,
  inProcess,
  type Loop,
  type Random,
  Registry,
  type Store,
  type StoreProvider,
  systemLoop,
} from "@wovyr/server/internal";
import { providerAround } from "./store-calls.ts";
import type { VirtualClock } from "./virtual-clock.ts";

export type SessionOptions = {
  readonly workflows: readonly AnyWorkflow[];
  readonly provider: StoreProvider;
  readonly clock: VirtualClock;
  readonly random: Random;
  readonly log: EngineLog;
  readonly codec: PayloadCodec | undefined;
  readonly limits: EngineLimits;
  readonly node: string;
  /** Milliseconds. */
  readonly lease: number;
  /** Hears of every attempt that begins. */
  readonly executed: (idempotencyKey: string) => void;
  readonly deadOwners: (owners: readonly string[]) => readonly string[];
};

const shards = 256;
const never = new Promise<never>(() => {});

export class Session {
  readonly host: EngineHost;
  #dead = false;
  #moving = 0;
  #store: Store | undefined;
  readonly #clock: VirtualClock;
  readonly #wakeUps = new Set<() => void>();

  constructor(options: SessionOptions) {
    const { provider, workflows, clock, executed, codec, log, ...rest } = options;
    this.#clock = clock;
    this.host = new EngineHost({
      ...rest,
      provider: providerAround(provider, (_call, run) => this.#counted(run)),
      registry: new Registry(workflows.map((workflow) => workflow.definition)),
      clock: { now: () => clock.now(), wakeAt: (at, wake) => this.#wakeAt(at, wake) },
      loop: this.#loop(),
      log: this.#lively(log),
      executor: this.#executor(executed),
      codec: codec && this.#countedCodec(codec),
      group: "default",
      shards,
      opened: (store) => {
        this.#store = store;
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

  get alive(): boolean {
    return !this.#dead;
  }

  /** Whether a turn, a wake-up or an answer of the store is on its way. Attempts of activities do not count. */
  get moving(): boolean {
    return this.#moving > 0 || this.#clock.due;
  }

  /** Ends it as a kill does. */
  crash(): void {
    this.#dead = true;
    for (const cancel of this.#wakeUps) cancel();
    this.#wakeUps.clear();
  }

  async #counted<T>(run: () => Promise<T>): Promise<T> {
    if (this.#dead) return never;
    this.#moving += 1;
    try {
      const value = await run();
      return this.#dead ? never : value;
    } catch (error) {
      if (this.#dead) return never;
      throw error;
    } finally {
      this.#moving -= 1;
    }
  }

  #countedCodec(codec: PayloadCodec): PayloadCodec {
    return {
      name: codec.name,
      encode: (payload) => this.#counted(async () => codec.encode(payload)),
      decode: (payload) => this.#counted(async () => codec.decode(payload)),
    };
  }

  #wakeAt(at: number, wake: () => void): () => void {
    if (this.#dead) return () => {};
    const cancelWakeUp = this.#clock.wakeAt(at, () => {
      this.#wakeUps.delete(cancel);
      wake();
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
        this.#moving += 1;
        systemLoop.immediate(() => {
          this.#moving -= 1;
          if (!this.#dead) run();
        });
      },
      drained: (run) =>
        systemLoop.drained(() => {
          if (!this.#dead) run();
        }),
      elapsed: () => systemLoop.elapsed(),
    };
  }

  #executor(executed: (idempotencyKey: string) => void): ActivityExecutor {
    return {
      execute: (definition, input, ctx) => {
        executed(ctx.idempotencyKey);
        return inProcess.execute(definition, input, ctx);
      },
    };
  }

  #lively(log: EngineLog): EngineLog {
    const line = (level: keyof EngineLog) => (message: string, data?: object) => {
      if (!this.#dead) log[level](message, data);
    };
    return { debug: line("debug"), info: line("info"), warn: line("warn"), error: line("error") };
  }
}
