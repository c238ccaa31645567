/**
 * An engine and the store it stands on, from the first try to open it to the end.
 *
 * 1. A store that cannot be reached at the start is tried again until it can; meanwhile calls are refused with STORE_UNAVAILABLE.
 * 2. A store that refuses for good (locked by another process, of another release) fails the start.
 */
import { ApiError, WovyrError } from "@wovyr/sdk";
import type { Operations, StartResponse } from "@wovyr/sdk/internal";
import { answering } from "./answering.ts";
import { Engine, type EngineOptions } from "./engine.ts";
import { type Store, type StoreProvider, StoreUnavailableError } from "./ports/store.ts";
import { delegatedOperations, forwardedOperations, routedOperations } from "./routed-operations.ts";

export type EngineHostOptions = Omit<EngineOptions, "store"> & {
  readonly provider: StoreProvider;
  /** Hears of the open store before the engine works on it. */
  readonly opened?: (store: Store) => void;
  /** Whether calls are answered in bounded time: not where time jumps while a store is at work. Default true. */
  readonly boundsAnswers?: boolean;
};

const firstRetry = 200;
const longestRetry = 5_000;

export class EngineHost {
  readonly #options: EngineHostOptions;
  readonly #startsInFlight = new Map<string, Promise<StartResponse>>();
  readonly #operations = new Map<string, Operations>();
  readonly #forwarded = new Map<string, Operations>();
  readonly #delegated = new Map<string, Operations>();
  #store: Store | undefined;
  #engine: Engine | undefined;
  #failure: Error | undefined;
  #closed = false;
  #cancelRetry = () => {};

  constructor(options: EngineHostOptions) {
    this.#options = options;
  }

  /** Resolves when the engine works, or when it is known that it has to wait for its store or its shards. */
  async start(): Promise<void> {
    try {
      await this.#open();
    } catch (error) {
      if (!(error instanceof StoreUnavailableError)) throw error;
      this.#waitForStore(error, firstRetry);
    }
  }

  /** Throws when there is none yet. */
  get engine(): Engine {
    if (this.#closed && this.#engine?.closed !== false)
      throw new ApiError("The orchestrator is closed.", { code: "SHUTTING_DOWN", retryAfter: 1_000 });
    if (this.#engine !== undefined) return this.#engine;
    throw new ApiError(
      this.#failure === undefined ? "The orchestrator is starting; try again." : `The store cannot be reached: ${this.#failure.message}`,
      {
        code: "STORE_UNAVAILABLE",
        retryAfter: 1_000,
      },
    );
  }

  get ready(): boolean {
    return this.#engine?.ready ?? false;
  }

  operations(tenant: string): Operations {
    const known = this.#operations.get(tenant);
    if (known !== undefined) return known;
    const made = this.#bounded(routedOperations(tenant, () => this.engine, this.#startsInFlight));
    this.#operations.set(tenant, made);
    return made;
  }

  /** What other nodes may ask of this one. */
  forwarded(tenant: string): Operations {
    const known = this.#forwarded.get(tenant);
    if (known !== undefined) return known;
    const made = this.#bounded(forwardedOperations(tenant, () => this.engine, this.#startsInFlight));
    this.#forwarded.set(tenant, made);
    return made;
  }

  /** What other nodes may ask of this one in their place. */
  delegated(tenant: string): Operations {
    const known = this.#delegated.get(tenant);
    if (known !== undefined) return known;
    const made = this.#bounded(delegatedOperations(tenant, () => this.engine, this.#startsInFlight));
    this.#delegated.set(tenant, made);
    return made;
  }

  #bounded(operations: Operations): Operations {
    const { clock, boundsAnswers = true } = this.#options;
    return boundsAnswers ? answering(operations, clock) : operations;
  }

  /** The address of this node has become known: the others are told. */
  async announce(): Promise<void> {
    await this.#engine?.placement.refresh();
  }

  async close(grace: number): Promise<void> {
    if (this.#closed) return;
    this.#closed = true;
    this.#cancelRetry();
    await this.#engine?.close(grace);
    await this.#store?.close();
  }

  async #open(): Promise<void> {
    const { provider, opened, boundsAnswers: _, ...options } = this.#options;
    const store = await provider.open({
      now: () => options.clock.now(),
      log: options.log,
    });
    if (this.#closed) {
      await store.close();
      return;
    }
    const { limited } = options.registry;
    if (store.databases !== undefined && limited !== undefined) {
      await store.close();
      throw new WovyrError(
        `workflow "${limited.name}" limits its concurrent runs, which are counted where they lie, and the store has ${store.databases.count} databases: use one, or limit activities instead`,
        { code: "INVALID_OPTION" },
      );
    }
    this.#store = store;
    this.#failure = undefined;
    opened?.(store);
    // Nobody else can reach an exclusive store: opening it has removed whoever was in it before.
    const deadOwners = provider.shared ? options.deadOwners : () => [];
    const engine = new Engine({ looksForTasks: provider.shared, ...options, store, deadOwners, shared: provider.shared });
    this.#engine = engine;
    try {
      await engine.start(options.lease * 1.5);
    } catch (error) {
      await store.close();
      throw error;
    }
  }

  #waitForStore(error: StoreUnavailableError, delay: number): void {
    const { clock, log } = this.#options;
    if (this.#failure === undefined) log.error(`the store cannot be reached; the orchestrator waits for it: ${error.message}`);
    this.#failure = error;
    this.#cancelRetry = clock.wakeAt(clock.now() + delay, () => {
      if (this.#closed) return;
      this.#open().then(
        () => log.info("the store is there; the orchestrator works"),
        (next: unknown) => {
          if (next instanceof StoreUnavailableError) this.#waitForStore(next, Math.min(delay * 2, longestRetry));
          else {
            this.#failure =
              next instanceof WovyrError
                ? next
                : new WovyrError("the store could not be opened", {
                    cause: next,
                  });
            log.error(`the store cannot be used: ${this.#failure.message}`);
          }
        },
      );
    });
  }
}
