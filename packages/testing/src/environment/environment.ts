/**
 * Runs workflows on the real engine over a virtual clock and, unless told otherwise, the memory store.
 *
 * 1. Nothing sleeps: time jumps to the next thing that is due, when nothing else moves and somebody waits for it (time-skip.ts), or when it is told to.
 * 2. The same seed, workflows and calls give the same run ids, seeds and jitter.
 * 3. A run that nothing can move any more rejects those who await its result, and says what it waits for.
 * 4. A rejection that an activity or a fake leaves unhandled rejects everybody who waits, or the disposal of the environment.
 */
import type { AnyWorkflow, EventDef, Workflow } from "@wovyr/sdk";
import { ApiError, type Duration } from "@wovyr/sdk";
import type { Client, Handle } from "@wovyr/sdk/client";
import {
  clientOver,
  decodePayload,
  defaultLimits,
  foldHistory,
  type HistoryEvent,
  type InstanceState,
  milliseconds,
  type PayloadCodec,
  type Turn,
  turnView,
} from "@wovyr/sdk/internal";
import {
  type DeterminismGuard,
  defaultJournalLimits,
  determinismGuard,
  type Engine,
  type EngineLimits,
  type Guard,
  isStatementAt,
  memoryStore,
  type Store,
  type StoreProvider,
} from "@wovyr/server/internal";
import { EventFakes } from "../fakes/event-fakes.ts";
import type { Fake } from "../fakes/fake.ts";
import { Fakes } from "../fakes/fakes.ts";
import { bareStore } from "../faults/store-calls.ts";
import { Attempts, callingAttempt } from "./attempts.ts";
import type { Conductor } from "./conductor.ts";
import { ExecutionRecord } from "./execution-record.ts";
import { type LogLine, LogLines } from "./log-lines.ts";
import { type Acknowledged, OperationsRelay } from "./operations-relay.ts";
import { patientClient } from "./patient-client.ts";
import { ProcessTrouble } from "./process-trouble.ts";
import { SeededRandom } from "./seeded-random.ts";
import { Session } from "./session.ts";
import { neverEnds, openWaits } from "./standstill.ts";
import { TimeSkip } from "./time-skip.ts";
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
  /** Stand-ins for activities, children and events. */
  readonly fakes?: readonly Fake[];
  /** What happens to activities without a fake: `run` (default) or `refuse`, which fails them. */
  readonly unfaked?: "run" | "refuse";
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
  /** Default true: time jumps by itself when nothing else can happen and somebody waits. */
  readonly autoSkip?: boolean;
  /**
   * What happens when workflow code asks for the time of day, chance, a timer or the network: `error` (default) throws at the call, `warn` leaves a line in
   * `logs`. With `error`, an effect whose call stands alone as a statement, its `yield*` forgotten, rejects everybody who waits, too.
   */
  readonly determinismGuard?: DeterminismGuard;
  /** Lease on the shards; default: for ever, so that its renewals need no time. */
  readonly lease?: Duration;
};

/** An engine that was stopped where it stood, while another took over. */
export type FrozenEngine = {
  /** Lets it go on; resolves when it has done what it still does. What it writes that it may not write is noted as trouble. */
  thaw(): Promise<void>;
};

type SendArgs<P> = undefined extends P
  ? [payload?: P, options?: { readonly idempotencyKey?: string }]
  : [payload: P, options?: { readonly idempotencyKey?: string }];

const tenant = "default";
const century = 100 * 365 * 86_400_000;
/** Timers that may be overdue in runs that cannot take them. */
const overdueRows = 1_000;
/** Runs that are named when nothing can happen any more. */
const explainedRuns = 10;

export class TestEnvironment implements AsyncDisposable {
  readonly clock: VirtualClock;
  readonly random: SeededRandom;
  /** Client of the current engine; it stays good over restarts. */
  readonly client: Client;
  readonly provider: StoreProvider;
  /** Executions of activities by idempotency key (`runId/effectId`). */
  readonly executions = new ExecutionRecord();
  readonly #options: TestEnvironmentOptions;
  readonly #conductor: Conductor | undefined;
  readonly #relay: OperationsRelay;
  readonly #lines = new LogLines();
  readonly #guard: Guard | undefined;
  readonly #attempts = new Attempts();
  readonly #trouble: ProcessTrouble;
  readonly #time: TimeSkip;
  readonly #eventFakes: EventFakes;
  readonly #dead = new Set<string>();
  /** Frozen engines, with the turns that each had written when another took over. */
  readonly #zombies = new Map<Session, number>();
  #fakes: Fakes;
  #session: Session | undefined;
  #lives = 0;
  #crashes = 0;
  #disconnected: Promise<void> = Promise.resolve();

  constructor(options: TestEnvironmentOptions, conductor?: Conductor) {
    this.#options = options;
    this.#conductor = conductor;
    this.#guard = determinismGuard(options.determinismGuard ?? "error", this.#lines);
    this.#fakes = new Fakes(options.fakes ?? [], options.workflows);
    this.clock = new VirtualClock((options.clock ?? new Date("2026-01-01T00:00:00Z")).getTime());
    this.random = new SeededRandom(options.seed ?? 1);
    this.provider = options.store ?? memoryStore();
    this.#time = new TimeSkip(
      {
        clock: this.clock,
        moving: () => this.#moving,
        attempts: () => this.#session?.holding ?? 0,
        due: () => this.#due(),
        running: () => this.#attempts.describe(),
      },
      options.autoSkip ?? true,
    );
    this.#relay = new OperationsRelay((call) =>
      this.#waitFor(call, "the answer to a call", () => this.#standstill("a call is not answered")),
    );
    this.#trouble = new ProcessTrouble(
      (attempt) => attempt.owner === this.#attempts,
      (text) => this.#time.fail(new Error(text)),
    );
    this.#eventFakes = new EventFakes(this.#fakes.events, {
      idOf: async (run) => (await this.bareStore.getInstance({ tenant, run }))?.id,
      sleep: (delay) => this.#time.alarm(this.clock.now() + delay),
      send: (id, event, payload, key) => this.#sendFaked(id, event, payload, key),
      fail: (error) => {
        if (!this.#time.fail(error)) this.#trouble.note(String(error.stack));
      },
    });
    this.client = patientClient(clientOver(this.#relay.operations), (handle, result) => this.#patiently(handle, result));
  }

  // ── runs ───────────────────────────────────────────────────────────────────────────────────────────────

  readonly start: Client["start"] = (workflow, ...args) => this.client.start(workflow, ...args);
  readonly execute: Client["execute"] = (workflow, ...args) => this.client.execute(workflow, ...args);

  handle<O>(workflow: Workflow<never, O>, id: string): Handle<O> {
    return this.client.handle(workflow, id);
  }

  /** Sends an event to an instance. */
  send<P>(id: string, event: EventDef<unknown, P>, ...args: SendArgs<P>): Promise<void> {
    return this.client.handle(id).send(event, ...(args as never));
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

  /** The workflow's `ctx.variables` as they are stored; undefined where it never changed them. */
  async variables(id: string, runId?: string): Promise<unknown> {
    const { variables } = await this.state(id, runId);
    return variables === undefined ? undefined : decodePayload(variables);
  }

  /** Makes a call until it is answered: again with the next engine after a crash, again after a while when it is told to come again. */
  async insist<T>(call: () => Promise<T>): Promise<T> {
    for (;;) {
      try {
        return await call();
      } catch (error) {
        if (!(error instanceof ApiError)) throw error;
        if (error.code === "UNREACHABLE") await this.#relay.connected();
        else if (error.retryAfter !== undefined) await this.#time.alarm(this.clock.now() + error.retryAfter);
        else throw error;
      }
    }
  }

  get logs(): readonly LogLine[] {
    return this.#lines.lines;
  }

  // ── time ───────────────────────────────────────────────────────────────────────────────────────────────

  now(): Date {
    return new Date(this.clock.now());
  }

  /** Whether time jumps by itself. */
  get autoSkip(): boolean {
    return this.#time.automatic;
  }

  set autoSkip(automatic: boolean) {
    this.#time.automatic = automatic;
  }

  advance(by: Duration): Promise<void> {
    return this.#time.advanceTo(this.clock.now() + milliseconds(by, "advance"));
  }

  /** Moves time on and lets everything that falls due on the way happen at its time. */
  advanceTo(at: Date | string): Promise<void> {
    const target = new Date(at).getTime();
    if (Number.isNaN(target)) throw new TypeError(`advanceTo takes a Date or its text, not ${String(at)}`);
    return this.#time.advanceTo(target);
  }

  /** Resolves when so much virtual time has passed; an activity that awaits it does not hold time up. */
  async sleep(by: Duration): Promise<void> {
    const passed = this.#time.alarm(this.clock.now() + milliseconds(by, "sleep"));
    const attempt = callingAttempt();
    if (attempt?.owner === this.#attempts) {
      attempt.sleeping += 1;
      this.#time.changes.tell();
      await passed;
      attempt.sleeping -= 1;
      return;
    }
    await this.#waitFor(passed, `${String(by)} to pass`, async () => new Error("time does not move any more"));
  }

  /** Lets time jump until the condition holds; it is asked whenever something has moved. Rejects when it does not hold and nothing can move any more. */
  until(condition: () => boolean): Promise<void> {
    return new Promise((resolve, reject) => {
      this.#time.wait({
        met: condition,
        resolve,
        reject,
        explain: () => this.#standstill("the condition does not hold"),
        what: "a condition",
      });
    });
  }

  /** When the next thing falls due; undefined when nothing ever will. */
  nextDue(): Promise<number | undefined> {
    return this.#time.next();
  }

  /** Resolves when nothing moves: everything waits for time, for a message from outside, or for an attempt that is running. */
  settle(): Promise<void> {
    return this.#time.settle();
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

  /** What is registered: stand-ins take the place of workflows that are faked. */
  get workflows(): readonly AnyWorkflow[] {
    return this.#fakes.workflows;
  }

  get limits(): EngineLimits {
    return limitsOf(this.#options);
  }

  /** How often the engine was dropped without a graceful end. */
  get crashes(): number {
    return this.#crashes;
  }

  /** What callers were told is done. */
  get acknowledged(): readonly Acknowledged[] {
    return this.#relay.acknowledged;
  }

  /** Rejections that nobody handled and warnings of the process, since the environment was made. Who reads it has been told: disposal is silent then. */
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
    await this.#countZombieTurns();
    if (options.workflows !== undefined) this.#fakes = new Fakes(this.#options.fakes ?? [], options.workflows);
    this.#lives += 1;
    const session = new Session({
      fakes: this.#fakes,
      unfaked: this.#options.unfaked ?? "run",
      conductor: this.#conductor,
      attempts: this.#attempts,
      provider: this.provider,
      clock: this.clock,
      random: this.random,
      log: this.#lines,
      codec: this.#options.codec,
      limits: this.limits,
      guard: this.#guard,
      node: `test-${this.#lives}`,
      lease: this.#options.lease === undefined ? century : milliseconds(this.#options.lease, "lease"),
      executed: (key) => this.executions.note(key),
      committed: (flush, outcome) => this.#eventFakes.committed(flush, outcome),
      unrun: (message, at) => this.#unrun(message, at),
      moved: () => this.#time.changes.tell(),
      deadOwners: (owners) => owners.filter((owner) => this.#dead.has(owner)),
    });
    this.#session = session;
    await this.#time.through(session.host.start());
    if (this.#session === session) this.#relay.connect(session.host.operations(tenant));
  }

  /** A call that stands alone was meant to be yielded; any other may be kept for a path that was not taken. */
  #unrun(message: string, at: string | undefined): void {
    const strict = (this.#options.determinismGuard ?? "error") === "error";
    if (strict && at !== undefined && isStatementAt(at)) this.#trouble.note(message);
  }

  /** Drops the engine without any graceful step. */
  crash(): void {
    const session = this.#session;
    if (session === undefined) return;
    this.#retire(session);
    session.crash();
    this.#crashes += 1;
    // Its connections end with it; below planned faults, which might hold the call up.
    if (session.store !== undefined) this.#disconnected = bareStore(session.store).close();
  }

  /** Stops the engine where it stands, as SIGSTOP does; `restart` lets another take its shards. For stores that two engines can open. */
  freeze(): FrozenEngine {
    const session = this.#session;
    if (session === undefined) throw new Error("the engine is down");
    session.freeze();
    this.#retire(session);
    this.#zombies.set(session, Number.POSITIVE_INFINITY);
    return {
      thaw: async () => {
        session.thaw();
        await this.settle();
        const written = (await turnsOf(this.bareStore, session.node)) - (this.#zombies.get(session) ?? 0);
        if (written > 0) this.#trouble.note(`node ${session.node} wrote ${written} turns after its shards had been taken`);
      },
    };
  }

  /** Closes the engine gracefully; `restart` opens another. */
  async stop(): Promise<void> {
    const session = this.#session;
    if (session === undefined) return;
    await this.#time.through(session.host.close(10_000));
    this.#retire(session);
    session.crash();
  }

  /** Ends it as a crash does, so that what is blocked or held up holds nobody up. Rejects with trouble that nobody was told of. */
  async [Symbol.asyncDispose](): Promise<void> {
    // Rejections are noticed when the microtasks have drained.
    await new Promise<void>((resolve) => setImmediate(resolve));
    this.#time.stop();
    this.#guard?.dispose();
    for (const zombie of this.#zombies.keys()) zombie.crash();
    this.crash();
    await this.#disconnected;
    this.#trouble.stop();
    const { untold } = this.#trouble;
    if (untold.length > 0) throw new Error(untold.join("\n"));
  }

  #retire(session: Session): void {
    this.#dead.add(session.node);
    this.#session = undefined;
    this.#relay.disconnect();
  }

  async #countZombieTurns(): Promise<void> {
    for (const [zombie, turns] of this.#zombies)
      if (turns === Number.POSITIVE_INFINITY && zombie.store !== undefined)
        this.#zombies.set(zombie, await turnsOf(bareStore(zombie.store), zombie.node));
  }

  // ── waiting ────────────────────────────────────────────────────────────────────────────────────────────

  get #moving(): boolean {
    if (this.#session?.moving === true || this.#eventFakes.moving > 0) return true;
    for (const zombie of this.#zombies.keys()) if (zombie.moving) return true;
    return false;
  }

  #patiently<O>(handle: Handle<O>, result: Promise<O>): Promise<O> {
    return this.#waitFor(result, `the result of ${handle.id}`, () => this.#neverEnds(handle));
  }

  #waitFor<T>(promise: Promise<T>, what: string, explain: () => Promise<Error>): Promise<T> {
    return new Promise((resolve, reject) => {
      const over = this.#time.wait({ reject, explain, what });
      promise.then(
        (value) => {
          over();
          resolve(value);
        },
        (error) => {
          over();
          reject(error);
        },
      );
    });
  }

  /** When the next thing falls due in the engine; undefined when nothing ever will. */
  async #due(): Promise<number | undefined> {
    const session = this.#session;
    if (session === undefined) return undefined;
    const { engine, store } = session;
    if (engine === undefined || store === undefined || !engine.resting || !engine.ready || this.#options.lease !== undefined)
      return this.clock.next;
    const timer = await this.#nextTimer(engine, bareStore(store));
    const timeout = engine.dispatch.nextTimeout;
    return timer === undefined || (timeout !== undefined && timeout < timer) ? timeout : timer;
  }

  async #nextTimer({ ownership, timers }: Engine, store: Store): Promise<number | undefined> {
    const now = this.clock.now();
    const rows = (limit: number) => store.listTimers(ownership.shards, Number.MAX_SAFE_INTEGER, limit);
    const [first] = await rows(1);
    if (first === undefined || first.due > now) return first?.due;
    // What is overdue is still to be read by the engine, or has fired into a run that cannot take it: that one is passed over.
    const page = await rows(overdueRows);
    if (page.some(({ run, effect, due }) => due <= now && !timers.hasFired(run, effect))) return this.clock.next;
    return page.find((row) => row.due > now)?.due;
  }

  /** Sends a faked event until an engine has taken it. */
  async #sendFaked(id: string, event: string, payload: unknown, idempotencyKey: string): Promise<void> {
    const send = async () => {
      await this.insist(() => this.#relay.operations.sendEvent(id, event, payload, { idempotencyKey }));
    };
    await (this.#conductor === undefined ? send() : this.#conductor.event(event, send));
  }

  async #neverEnds({ id, runId }: Pick<Handle<unknown>, "id" | "runId">): Promise<Error> {
    const run = runId === "" ? undefined : runId;
    const state = await this.state(id, run);
    const about = await this.client.handle(id).describe();
    return neverEnds(id, state, about.runId === runId || run === undefined ? about.waitingAt : []);
  }

  async #standstill(what: string): Promise<Error> {
    const rows = await this.bareStore.listInstances(tenant, { statuses: ["open", "parked"] }, { limit: explainedRuns });
    const lines = await Promise.all(rows.map(async ({ id, run }) => `${id} waits for ${openWaits(await this.state(id, run)).join(", ")}`));
    return new Error(
      `${what}, and nothing can happen any more: ${lines.join("; ") || "no run is open"}${rows.length === explainedRuns ? "; …" : ""}`,
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

/** Turns that a node has written. */
async function turnsOf(store: Store, node: string): Promise<number> {
  let count = 0;
  for (const row of await store.listInstances(tenant, {}, { limit: Number.MAX_SAFE_INTEGER }))
    for (const turn of await store.readHistory(row, 1, Number.MAX_SAFE_INTEGER)) if (turn.node === node) count += 1;
  return count;
}
