/**
 * Runs workflows on the real engine over a virtual clock and, unless told otherwise, the memory store.
 *
 * 1. Nothing sleeps: time jumps to the next thing that is due, when nothing else moves and somebody awaits a result (or when it is told to).
 * 2. The same seed, workflows and calls give the same run ids, seeds and jitter.
 * 3. A run that nothing can move any more rejects those who await its result, and says what it waits for.
 */
import type { AnyWorkflow, Workflow } from "@wovyr/sdk";
import { type Duration, WovyrError } from "@wovyr/sdk";
import type { Client, Handle } from "@wovyr/sdk/client";
import {
  clientOver,
  defaultLimits,
  foldHistory,
  type HistoryEvent,
  type InstanceState,
  milliseconds,
  type PayloadCodec,
  type Turn,
  turnView,
} from "@wovyr/sdk/internal";
import { defaultJournalLimits, type Engine, type EngineLimits, memoryStore, type Store, type StoreProvider } from "@wovyr/server/internal";
import { ExecutionRecord } from "./execution-record.ts";
import { type LogLine, LogLines } from "./log-lines.ts";
import { OperationsRelay } from "./operations-relay.ts";
import { ProcessTrouble } from "./process-trouble.ts";
import { SeededRandom } from "./seeded-random.ts";
import { Session } from "./session.ts";
import { bareStore } from "./store-calls.ts";
import { VirtualClock } from "./virtual-clock.ts";

export type TestLimits = Partial<EngineLimits["execution"]> & {
  /** Activities that run at once. */
  readonly activities?: number;
  /** Idle instances that are kept in memory; 0 evicts after every turn. */
  readonly cachedInstances?: number;
  readonly cachedBytes?: number;
};

export type TestEnvironmentOptions = {
  readonly workflows: readonly AnyWorkflow[];
  /** Where the clock begins; default 2026-01-01T00:00:00Z. */
  readonly clock?: Date;
  /** Default 1. */
  readonly seed?: number;
  /** Default: a memory store of its own. */
  readonly store?: StoreProvider;
  readonly codec?: PayloadCodec;
  readonly limits?: TestLimits;
  /** Every turn replays the run from its history. */
  readonly evictAlways?: boolean;
  /** Default true: time jumps by itself when nothing else can happen and somebody awaits a result. */
  readonly autoSkip?: boolean;
  /** Lease on the shards; default: for ever, so that its renewals need no time. */
  readonly lease?: Duration;
};

type Waiter = { readonly id: string; readonly runId: string; readonly reject: (error: Error) => void };

const tenant = "default";
const century = 100 * 365 * 86_400_000;
/** Macrotasks without any movement, after which nothing will move by itself. */
const stillness = 3;
/** Tries at a timer that is due and does not fire. */
const overdueTries = 10;

export class TestEnvironment implements AsyncDisposable {
  readonly clock: VirtualClock;
  readonly random: SeededRandom;
  /** Client of the current engine; it stays good over restarts. */
  readonly client: Client;
  readonly provider: StoreProvider;
  /** Executions of activities by idempotency key (`runId/effectId`). */
  readonly executions = new ExecutionRecord();
  readonly #options: TestEnvironmentOptions;
  readonly #relay = new OperationsRelay();
  readonly #lines = new LogLines();
  readonly #trouble = new ProcessTrouble();
  readonly #waiters = new Set<Waiter>();
  readonly #dead = new Set<string>();
  #workflows: readonly AnyWorkflow[];
  #session: Session | undefined;
  #lives = 0;
  #crashes = 0;
  #disconnected: Promise<void> = Promise.resolve();
  #driving = false;
  #steering = 0;
  #overdue = 0;
  /** Whether time jumps by itself. */
  autoSkip: boolean;

  constructor(options: TestEnvironmentOptions) {
    this.#options = options;
    this.#workflows = options.workflows;
    this.clock = new VirtualClock((options.clock ?? new Date("2026-01-01T00:00:00Z")).getTime());
    this.random = new SeededRandom(options.seed ?? 1);
    this.provider = options.store ?? memoryStore();
    this.autoSkip = options.autoSkip ?? true;
    this.client = this.#patientClient(clientOver(this.#relay.operations));
  }

  // ── runs ───────────────────────────────────────────────────────────────────────────────────────────────

  readonly start: Client["start"] = (workflow, ...args) => this.client.start(workflow, ...args);
  readonly execute: Client["execute"] = (workflow, ...args) => this.client.execute(workflow, ...args);

  handle<O>(workflow: Workflow<never, O>, id: string): Handle<O> {
    return this.client.handle(workflow, id);
  }

  /** The events of an instance's newest run, or of the given one, as a client's handle gives them. */
  async history(id: string, runId?: string): Promise<HistoryEvent[]> {
    return (await this.turns(id, runId)).flatMap((turn) => turnView(turn, 1));
  }

  /** The same as the engine stores it: turn by turn, payloads encoded. */
  async turns(id: string, runId?: string): Promise<Turn[]> {
    const run = runId ?? (await this.bareStore.findInstance(tenant, id))?.run;
    if (run === undefined) throw new Error(`there is no instance "${id}"`);
    const rows = await this.bareStore.readHistory({ tenant, run }, 1, Number.MAX_SAFE_INTEGER);
    return this.engine.rows.decodeAll(rows);
  }

  /** What the history of an instance says about it. */
  async state(id: string, runId?: string): Promise<InstanceState> {
    return foldHistory(await this.turns(id, runId));
  }

  get logs(): readonly LogLine[] {
    return this.#lines.lines;
  }

  // ── time ───────────────────────────────────────────────────────────────────────────────────────────────

  now(): Date {
    return new Date(this.clock.now());
  }

  advance(by: Duration): Promise<void> {
    return this.advanceTo(new Date(this.clock.now() + milliseconds(by, "advance")));
  }

  /** Moves time on and lets everything that falls due on the way happen at its time. */
  async advanceTo(at: Date): Promise<void> {
    const target = at.getTime();
    await this.#steer(async () => {
      for (;;) {
        await this.settle();
        const next = await this.#nextInstant();
        if (next === undefined || next > target) break;
        this.clock.advanceTo(next);
      }
      this.clock.advanceTo(target);
      await this.settle();
    });
  }

  /** Resolves when nothing moves: everything waits for time, for a message from outside, or for an attempt that is running. */
  async settle(): Promise<void> {
    for (let still = 0; still < stillness; ) {
      await macrotask();
      still = this.#session?.alive === true && this.#session.moving ? 0 : still + 1;
    }
  }

  // ── the engine ─────────────────────────────────────────────────────────────────────────────────────────

  get running(): boolean {
    return this.#session !== undefined;
  }

  get engine(): Engine {
    const engine = this.#session?.engine;
    if (engine === undefined) throw new Error("the engine is down");
    return engine;
  }

  /** The store itself, below planned faults. */
  get bareStore(): Store {
    const store = this.#session?.store;
    if (store === undefined) throw new Error("the store is not open");
    return bareStore(store);
  }

  get workflows(): readonly AnyWorkflow[] {
    return this.#workflows;
  }

  get limits(): EngineLimits {
    return limitsOf(this.#options);
  }

  /** How often the engine was dropped without a graceful end. */
  get crashes(): number {
    return this.#crashes;
  }

  /** Rejections that nobody handled and warnings of the process, since the environment was made. */
  get trouble(): readonly string[] {
    return this.#trouble.seen;
  }

  /** Drops what is cached of a run, or of all idle ones, so that its next turn replays it. */
  async evict(run?: Pick<Handle<unknown>, "runId">): Promise<void> {
    await this.settle();
    const { table } = this.engine;
    if (run === undefined) {
      table.evictIdle();
      return;
    }
    const instance = table.get(run.runId);
    if (instance?.phase === "idle") table.remove(instance);
  }

  /** Opens an engine on the store, with other workflows when they are given. An engine that runs is dropped first, as a kill does. */
  async restart(options: { readonly workflows?: readonly AnyWorkflow[] } = {}): Promise<void> {
    this.crash();
    await this.#disconnected;
    this.#workflows = options.workflows ?? this.#workflows;
    this.#lives += 1;
    const session = new Session({
      workflows: this.#workflows,
      provider: this.provider,
      clock: this.clock,
      random: this.random,
      log: this.#lines,
      codec: this.#options.codec,
      limits: this.limits,
      node: this.#node,
      lease: this.#options.lease === undefined ? century : milliseconds(this.#options.lease, "lease"),
      executed: (key) => this.executions.note(key),
      deadOwners: (owners) => owners.filter((owner) => this.#dead.has(owner)),
    });
    this.#session = session;
    await this.#until(session.host.start());
    if (this.#session === session) this.#relay.connect(session.host.operations(tenant));
    this.#drive();
  }

  /** Drops the engine without any graceful step. */
  crash(): void {
    const session = this.#session;
    if (session === undefined) return;
    session.crash();
    this.#dead.add(this.#node);
    this.#session = undefined;
    this.#crashes += 1;
    this.#relay.disconnect();
    // Its connections end with it; below planned faults, which might hold the call up.
    if (session.store !== undefined) this.#disconnected = bareStore(session.store).close();
  }

  /** Closes the engine gracefully; `restart` opens another. */
  async stop(): Promise<void> {
    const session = this.#session;
    if (session === undefined) return;
    await this.#until(session.host.close(10_000));
    this.#session = undefined;
    this.#dead.add(this.#node);
    this.#relay.disconnect();
    session.crash();
  }

  /** Ends it as a crash does, so that what is blocked or held up holds nobody up. */
  async [Symbol.asyncDispose](): Promise<void> {
    this.#waiters.clear();
    this.crash();
    await this.#disconnected;
    this.#trouble.stop();
  }

  // ── waiting ────────────────────────────────────────────────────────────────────────────────────────────

  get #node(): string {
    return `test-${this.#lives}`;
  }

  /** A client whose results let time jump. */
  #patientClient(client: Client): Client {
    const patient = <O>(handle: Handle<O>): Handle<O> => Object.freeze({ ...handle, result: this.#patientResult(handle) });
    return {
      start: async (...args) => patient(await client.start(...args)),
      execute: async (...args) => patient(await client.start(...args)).result(),
      startBatch: async (...args) => {
        const outcomes = await client.startBatch(...args);
        return outcomes.map((outcome) => (outcome.ok ? { ok: true, handle: patient(outcome.handle) } : outcome));
      },
      handle: ((...args: [never, string]) => patient(client.handle(...args))) as Client["handle"],
      list: (filter) => client.list(filter),
    };
  }

  #patientResult<O>(handle: Handle<O>): Handle<O>["result"] {
    return (options) =>
      new Promise((resolve, reject) => {
        const waiter = { id: handle.id, runId: handle.runId, reject };
        this.#waiters.add(waiter);
        const over = () => this.#waiters.delete(waiter);
        handle.result(options).then(
          (output) => {
            over();
            resolve(output);
          },
          (error) => {
            over();
            reject(error);
          },
        );
        this.#drive();
      });
  }

  /** Lets time jump for as long as somebody awaits a result. */
  #drive(): void {
    if (this.#driving || this.#waiters.size === 0) return;
    this.#driving = true;
    const work = async () => {
      while (this.#waiters.size > 0) {
        await this.settle();
        if (!this.autoSkip || this.#steering > 0 || this.#waiters.size === 0 || this.#occupied) continue;
        const next = await this.#nextInstant();
        if (this.#waiters.size === 0 || this.#occupied) continue;
        if (next === undefined) await this.#giveUp();
        else this.clock.advanceTo(next);
      }
    };
    void work().finally(() => {
      this.#driving = false;
    });
  }

  /** Whether something other than time can be expected to happen. */
  get #occupied(): boolean {
    const session = this.#session;
    if (session === undefined || session.moving || this.#relay.underWay > 0) return true;
    const dispatch = session.engine?.dispatch;
    return dispatch !== undefined && dispatch.running + dispatch.waiting > 0;
  }

  /** When the next thing falls due; undefined when nothing ever will. */
  async #nextInstant(): Promise<number | undefined> {
    const session = this.#session;
    if (session === undefined) return undefined;
    const { engine, store } = session;
    if (engine === undefined || store === undefined || !engine.quiet || !engine.ready || this.#options.lease !== undefined)
      return this.clock.next;
    const now = this.clock.now();
    // Overdue rows belong to timers that fired into a run that cannot take them; a few tries, and they are passed over.
    const rows = await bareStore(store).listTimers(engine.ownership.shards, Number.MAX_SAFE_INTEGER, 1_000);
    const overdue = rows[0] !== undefined && rows[0].due <= now;
    this.#overdue = overdue ? this.#overdue + 1 : 0;
    if (overdue && this.#overdue <= overdueTries) return this.clock.next;
    return rows.find((row) => row.due > now)?.due;
  }

  /** Runs `work` while time does not jump by itself. */
  async #steer<T>(work: () => Promise<T>): Promise<T> {
    this.#steering += 1;
    try {
      return await work();
    } finally {
      this.#steering -= 1;
      this.#drive();
    }
  }

  /** Awaits a step of the engine's own life, moving time where it waits for it. */
  async #until<T>(step: Promise<T>): Promise<T> {
    let over = false;
    const end = () => {
      over = true;
    };
    step.then(end, end);
    await this.#steer(async () => {
      while (!over) {
        await this.settle();
        const { next } = this.clock;
        if (!over && next !== undefined) this.clock.advanceTo(next);
      }
    });
    return step;
  }

  /** Nothing can happen any more: those who wait are told why. */
  async #giveUp(): Promise<void> {
    for (const waiter of [...this.#waiters]) {
      this.#waiters.delete(waiter);
      waiter.reject(await this.#standstill(waiter));
    }
  }

  async #standstill({ id, runId }: Waiter): Promise<Error> {
    const run = runId === "" ? undefined : runId;
    const state = await this.state(id, run);
    const about = await this.client.handle(id).describe();
    const waits = [
      ...(state.parked === undefined ? [] : [`it is parked (${state.parked.message})`]),
      ...[...state.waits.values()].map((wait) => `event "${wait.name}"`),
      ...[...state.children.values()].map((child) => `child "${child.id}"`),
      ...[...state.activities.values()].map((activity) => `activity "${activity.name}"`),
      ...(state.tail === 0 ? ["its start has not been applied"] : []),
    ];
    const lines = about.runId === runId || run === undefined ? about.waitingAt : [];
    return new WovyrError(
      `${id} will never end: no timer is open, nothing is running, and it waits for ${waits.join(", ") || "nothing that is recorded"}${lines.length === 0 ? "" : ` at ${lines.join(", ")}`}.`,
      { code: "TIMED_OUT" },
    );
  }
}

export async function createTestEnvironment(options: TestEnvironmentOptions): Promise<TestEnvironment> {
  const environment = new TestEnvironment(options);
  await environment.restart();
  return environment;
}

function limitsOf({ limits = {}, evictAlways = false }: TestEnvironmentOptions): EngineLimits {
  const { activities = 1_000, cachedInstances = 50_000, cachedBytes = 256 * 1024 * 1024, ...execution } = limits;
  return {
    execution: { ...defaultLimits, ...execution },
    cache: { instances: evictAlways ? 0 : cachedInstances, bytes: cachedBytes },
    journal: defaultJournalLimits,
    activities,
    waitingActivities: 100_000,
    waiters: 100_000,
  };
}

const macrotask = () => new Promise<void>((resolve) => setImmediate(resolve));
