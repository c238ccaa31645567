/**
 * Runs workflows on the real engine over a virtual clock and, unless told otherwise, the memory store.
 *
 * 1. Nothing sleeps: time jumps to the next thing that is due, when nothing else moves and somebody waits for it (time-skip.ts), or when it is told to.
 * 2. The same seed, workflows and calls give the same run ids, seeds and jitter.
 * 3. A run that nothing can move any more rejects those who await its result, and says what it waits for.
 * 4. A rejection that an activity or a fake leaves unhandled rejects everybody who waits, or the disposal of the environment.
 * 5. Nobody waits for ever: what hangs is told when patience is over, and disposal rejects whoever still waits.
 */

import type { AnyWorkflow, EventDef, Workflow } from "@wovyr/sdk";
import { type Duration, WovyrError } from "@wovyr/sdk";
import type { Client, DeadLetters, Handle } from "@wovyr/sdk/client";
import {
  checkOptions,
  clientOver,
  decodePayload,
  foldHistory,
  type HistoryEvent,
  type InstanceState,
  milliseconds,
  type TaskOperations,
  type Turn,
  turnView,
} from "@wovyr/sdk/internal";
import {
  checkStrategy,
  defaultPublicationRetention,
  determinismGuard,
  type Engine,
  type EngineLimits,
  type Guard,
  isStatementAt,
  memoryStore,
  openStatuses,
  resolveTenantLimits,
  retentionTimes,
  type Store,
  type StoreProvider,
} from "@wovyr/server/internal";
import { checkFunction, checkWorkflows, refuse } from "../checks.ts";
import { EventFakes } from "../fakes/event-fakes.ts";
import type { Fake } from "../fakes/fake.ts";
import { Fakes } from "../fakes/fakes.ts";
import { FaultPlan, hearReconnection } from "../faults/faulty-store.ts";
import { bareStore, hearCommits } from "../faults/store-calls.ts";
import { allRows } from "./all-rows.ts";
import { Attempts, callingAttempt } from "./attempts.ts";
import type { Conductor } from "./conductor.ts";
import { disposed } from "./disposal.ts";
import { checkEnvironmentOptions, limitsOf, type TestEnvironmentOptions } from "./environment-options.ts";
import { ExecutionRecord } from "./execution-record.ts";
import { type LogLine, LogLines } from "./log-lines.ts";
import { farthest, momentIn } from "./moment.ts";
import { nextDue } from "./next-due.ts";
import { type Acknowledged, OperationsRelay, pauseAfter } from "./operations-relay.ts";
import { patientClient } from "./patient-client.ts";
import { ProcessTrouble } from "./process-trouble.ts";
import { SeededRandom } from "./seeded-random.ts";
import { Session } from "./session.ts";
import { neverEnds, openWaits } from "./standstill.ts";
import { TimeSkip } from "./time-skip.ts";
import { VirtualClock } from "./virtual-clock.ts";
import { type FrozenEngine, Zombies } from "./zombies.ts";

type SendArgs<P> = undefined extends P
  ? [payload?: P, options?: { readonly idempotencyKey?: string }]
  : [payload: P, options?: { readonly idempotencyKey?: string }];

const tenant = "default";
const nodePrefix = "test-";
/** How many engines have worked on a store: no two of them have one name. */
const lives = new WeakMap<StoreProvider, number>();

function lifeIn(provider: StoreProvider): number {
  const life = (lives.get(provider) ?? 0) + 1;
  lives.set(provider, life);
  return life;
}

const dead = new WeakMap<StoreProvider, Set<string>>();

function deadIn(provider: StoreProvider): Set<string> {
  const names = dead.get(provider) ?? new Set();
  dead.set(provider, names);
  return names;
}

const lifeOf = (node: string): number => Number(node.slice(nodePrefix.length));

const century = 100 * 365 * 86_400_000;
const usualPatience = 60_000;
/** A store that has failed so often in a row, and for so long, is taken as gone. */
const manyFailures = 1_000;
const longFailing = 3_600_000;
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
  /** Names of engines that are no more, or were stopped where they stood: of all environments that share the store. */
  readonly #dead: Set<string>;
  readonly #removed = new Map<string, string>();
  readonly #zombies = new Zombies();
  #fakes: Fakes;
  #session: Session | undefined;
  #crashes = 0;
  #disconnected: Promise<void> = Promise.resolve();
  /** Restarts that are under way. */
  #restarting = 0;
  #disposal: Promise<void> | undefined;
  readonly #plan: FaultPlan | undefined;
  /** What ends the hearing of each store's commits. */
  readonly #hearing = new Map<Store, () => void>();

  constructor(options: TestEnvironmentOptions, conductor?: Conductor) {
    this.#options = options;
    this.#conductor = conductor;
    this.#guard = determinismGuard(options.determinismGuard ?? "error", this.#lines);
    this.#fakes = new Fakes(options.fakes ?? [], options.workflows);
    this.clock = new VirtualClock((options.clock ?? new Date("2026-01-01T00:00:00Z")).getTime());
    this.random = new SeededRandom(options.seed ?? 1);
    this.provider = options.store ?? memoryStore();
    this.#dead = deadIn(this.provider);
    this.#plan = planOf(this.provider);
    this.#time = new TimeSkip(
      {
        clock: this.clock,
        moving: () => this.#moving,
        attempts: () => this.#session?.holding ?? 0,
        stands: () => this.#stands,
        down: () => this.#session === undefined && this.#restarting === 0,
        due: async () => (this.#session === undefined ? undefined : nextDue(this.#session, this.clock, this.#options.lease !== undefined)),
        inVain: () => this.#inVain,
        hanging: (moment) => [...this.#attempts.since(moment), ...(this.#session?.hanging(moment) ?? [])],
        claim: (error) => this.#trouble.claim(error),
      },
      options.autoSkip ?? true,
      options.patience === undefined ? usualPatience : milliseconds(options.patience, "`patience`"),
    );
    if (this.#plan !== undefined) hearReconnection(this.#plan, () => this.#time.changes.tell());
    this.#relay = new OperationsRelay({
      patiently: (call, what) => this.#waitFor(call, what, () => this.#standstill("a call is not answered")),
      pause: (length) => this.#time.alarm(this.clock.now() + length),
      over: () => (this.#time.ended ? this.#trouble.claim(disposed()) : undefined),
    });
    this.#trouble = new ProcessTrouble(this.#attempts, (text) => this.#time.fail(new Error(text)));
    this.#eventFakes = new EventFakes(this.#fakes.events, {
      connected: () => this.#relay.connected(),
      idOf: async (run) => (this.#session === undefined ? undefined : (await this.bareStore.getInstance({ tenant, run }))?.id),
      moved: () => this.#time.changes.tell(),
      sleep: (delay) => this.#time.alarm(this.clock.now() + delay),
      send: (id, event, payload, key) => this.#sayFaked(event, () => this.#relay.operations.sendEvent(id, event, payload, key)),
      publish: (event, payload, key) => this.#sayFaked(event, () => this.#relay.operations.publish(event, payload, key)),
      fail: (error) => {
        if (!this.#time.ended && !this.#time.fail(error)) this.#trouble.note(String(error.stack));
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

  /** Publishes an event: to every run that waits for it, and to the workflows that it triggers. */
  readonly publish: Client["publish"] = (event, ...args) => this.client.publish(event, ...args);

  /** The events of an instance's newest run, or of the given one, as a client's handle gives them. */
  async history(id: string, runId?: string): Promise<HistoryEvent[]> {
    return (await this.turns(id, runId)).flatMap((turn) => turnView(turn, 1));
  }

  /** The same as the engine stores it: turn by turn, payloads encoded. */
  async turns(id: string, runId?: string): Promise<Turn[]> {
    const run = runId ?? (await this.bareStore.findInstance(tenant, id))?.run;
    if (run === undefined) throw new Error(`there is no instance "${id}"`);
    const rows = await this.bareStore.readHistory({ tenant, run }, 1, allRows);
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

  /**
   * Makes a call until it is answered: again with the next engine after a crash, again after a while (of virtual time) when store or engine say to come
   * again. Whether the call was done is unknown then: give it an `idempotencyKey`.
   */
  async insist<T>(call: () => Promise<T>): Promise<T> {
    checkFunction(call ?? null, "what `insist` is given");
    for (;;) {
      this.#mustBeAlive();
      const asked = this.#relay.current;
      try {
        return await call();
      } catch (error) {
        const pause = pauseAfter(error);
        if (pause === undefined || this.#time.ended) throw error;
        if (asked !== undefined && this.#relay.current === asked) await this.#pause(pause);
        else await this.#attended("an engine that answers", () => this.#relay.connected());
      }
    }
  }

  /** Waits until a call may be made again. */
  #pause(length: number): Promise<void> {
    return this.#waitFor(this.#time.alarm(this.clock.now() + length), "a call to be made again (env.insist)", () =>
      this.#standstill("a call is not answered"),
    );
  }

  /** Fakes that nobody has called: what they stand for may be misspelt. */
  get unusedFakes(): readonly Fake[] {
    return (this.#options.fakes ?? []).filter(({ calls }) => calls.length === 0);
  }

  /** Work that was given up and waits for a person. */
  get deadLetters(): DeadLetters {
    return this.client.deadLetters;
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

  async advance(by: Duration): Promise<void> {
    const target = this.clock.now() + milliseconds(by, "the length of advance()");
    if (target > farthest) refuse(`advance() would move time beyond what a Date can hold (${new Date(farthest).toISOString()})`);
    await this.#attended("env.advance()", () => this.#time.advanceTo(target));
  }

  /** Moves time on and lets everything that falls due on the way happen at its time. */
  async advanceTo(at: Date | string): Promise<void> {
    const target = momentIn(at);
    if (target < this.clock.now())
      refuse(`advanceTo() cannot go back to ${new Date(target).toISOString()}: it is ${this.now().toISOString()} already`);
    await this.#attended("env.advanceTo()", () => this.#time.advanceTo(target));
  }

  /** Resolves when so much virtual time has passed; an activity that awaits it does not hold time up. */
  async sleep(by: Duration): Promise<void> {
    const length = milliseconds(by, "the length of sleep()");
    this.#mustBeAlive();
    const passed = this.#time.alarm(this.clock.now() + length);
    if (callingAttempt()?.owner === this.#attempts) await this.#asleep(passed);
    else await this.#waitFor(passed, `env.sleep(${JSON.stringify(by)})`, async () => new Error("time does not move any more"));
  }

  /**
   * Lets time jump until the condition holds; it is asked whenever something has moved. One that answers with a promise is asked again when it has been
   * kept. Rejects when it does not hold and nothing can move any more.
   */
  async until(condition: () => boolean | Promise<boolean>): Promise<void> {
    checkFunction(condition ?? null, "the condition of `until`");
    const held = new Promise<void>((resolve, reject) => {
      this.#time.until({
        met: condition,
        resolve,
        reject,
        explain: () => this.#standstill("the condition does not hold"),
        what: "a condition (env.until)",
      });
    });
    await this.#asleep(held);
  }

  /** Awaits what may need virtual time: an attempt whose body does so does not hold time up. */
  async #asleep<T>(wait: Promise<T>): Promise<T> {
    const attempt = callingAttempt();
    if (attempt?.owner !== this.#attempts) return wait;
    attempt.sleeping += 1;
    this.#time.changes.tell();
    try {
      return await wait;
    } finally {
      attempt.sleeping -= 1;
      this.#time.changes.tell();
    }
  }

  /** When the next thing falls due; undefined when nothing ever will. */
  nextDue(): Promise<number | undefined> {
    return this.#time.next();
  }

  /** Resolves when nothing moves: everything waits for time, for a message from outside, or for an attempt that is running. */
  settle(): Promise<void> {
    return this.#attended("env.settle()", () => this.#time.settle());
  }

  // ── the engine ─────────────────────────────────────────────────────────────────────────────────────────

  get running(): boolean {
    return this.#session !== undefined;
  }

  get engine(): Engine {
    const engine = this.#session?.engine;
    if (engine === undefined) throw this.#time.ended ? disposed() : new Error("the engine is down: env.restart() starts another");
    return engine;
  }

  /** What workers of task queues ask, for tests that are the worker: `queues: "workers"`. */
  get tasks(): TaskOperations {
    return this.#relay.operations;
  }

  /** The store itself, below planned faults. */
  get bareStore(): Store {
    const store = this.#session?.store;
    if (store === undefined) throw this.#time.ended ? disposed() : new Error("the store is not open: env.restart() opens it");
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

  /** Ids of the runs that were removed, by run: because somebody asked for it, or their time was over. */
  get removed(): ReadonlyMap<string, string> {
    return this.#removed;
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
    checkOptions(options, ["workflows"], "restart");
    if (options.workflows !== undefined) checkWorkflows(options.workflows, "`workflows` of restart");
    this.#restarting += 1;
    try {
      await this.#attended("env.restart()", () => this.#restart(options.workflows));
    } finally {
      this.#restarting -= 1;
      this.#time.changes.tell();
    }
  }

  async #restart(workflows: readonly AnyWorkflow[] | undefined): Promise<void> {
    this.crash();
    await this.#disconnected;
    await this.#zombies.takenOver();
    this.#mustBeAlive();
    if (workflows !== undefined) this.#fakes = new Fakes(this.#options.fakes ?? [], workflows);
    const session = this.#newSession();
    this.#session = session;
    await this.#time.through(session.host.start(), this.#longestStep, () => `the engine has not come up: ${this.#why(session)}`);
    if (this.#session === session) this.#relay.connect(session.host.operations(tenant));
  }

  #newSession(): Session {
    const node = `${nodePrefix}${lifeIn(this.provider)}`;
    return new Session({
      fakes: this.#fakes,
      unfaked: this.#options.unfaked ?? "run",
      conductor: this.#conductor,
      attempts: this.#attempts,
      provider: this.provider,
      clock: this.clock,
      random: this.random,
      log: this.#lines,
      codec: this.#options.codec,
      retry: this.#options.retry,
      classify: this.#options.classify,
      scheduling: this.#options.scheduling && checkStrategy(this.#options.scheduling),
      tenantLimits: this.#options.tenantLimits && resolveTenantLimits(this.#options.tenantLimits),
      limits: this.limits,
      retention: this.#options.retention === undefined ? undefined : retentionTimes(this.#options.retention),
      guard: this.#guard,
      node,
      lease: this.#options.lease === undefined ? century : milliseconds(this.#options.lease, "`lease`"),
      queues: this.#options.queues ?? "run",
      publicationRetention: milliseconds(this.#options.publicationRetention ?? defaultPublicationRetention, "`publicationRetention`"),
      executed: (key) => this.executions.note(key),
      opened: (store) => this.#hear(bareStore(store)),
      wrong: (message) => this.#trouble.note(message),
      removing: (run, id) => this.#removed.set(run, id),
      unrun: (message, at) => this.#unrun(message, at),
      moved: () => this.#time.changes.tell(),
      deadOwners: (owners) => owners.filter((owner) => this.#isDead(owner, node)),
    });
  }

  /** Whoever was in a store that only one engine can open before a node is dead for that one, too. */
  #isDead(owner: string, node: string): boolean {
    return this.#dead.has(owner) || (!this.provider.shared && lifeOf(owner) < lifeOf(node));
  }

  /** Virtual milliseconds that a start or a stop of the engine may take. */
  get #longestStep(): number {
    return this.#options.lease === undefined ? 0 : 2 * milliseconds(this.#options.lease, "`lease`");
  }

  #why(session: Session): string {
    const { failing, unready } = session;
    return failing === undefined ? (unready ?? "nothing is known against it") : `${failing.method} fails: ${failing.error.message}`;
  }

  #hear(store: Store): void {
    if (!this.#hearing.has(store))
      this.#hearing.set(
        store,
        hearCommits(store, (flush, outcome) => this.#eventFakes.committed(flush, outcome)),
      );
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
    this.#mustBeAlive();
    if (session === undefined) throw new Error("the engine is down: there is nothing to freeze");
    session.freeze();
    this.#retire(session);
    this.#zombies.add(session);
    return {
      thaw: async () => {
        session.thaw();
        this.#time.changes.tell();
        await this.settle();
        const problem = await this.#zombies.trespass(session, this.bareStore);
        if (problem !== undefined) this.#trouble.note(problem);
      },
    };
  }

  /** Closes the engine gracefully; `restart` opens another. */
  async stop(): Promise<void> {
    const session = this.#session;
    this.#mustBeAlive();
    if (session === undefined) return;
    await this.#attended("env.stop()", () =>
      this.#time.through(session.host.close(10_000), this.#longestStep, () => `the engine does not stop: ${this.#why(session)}`),
    );
    if (this.#session === session) this.#retire(session);
    session.crash();
  }

  /** Ends it as a crash does, so that what is blocked or held up holds nobody up: who still waits is rejected. Rejects with trouble that nobody was told of. */
  [Symbol.asyncDispose](): Promise<void> {
    this.#disposal ??= this.#dispose();
    return this.#disposal;
  }

  async #dispose(): Promise<void> {
    this.#time.end();
    // Rejections are noticed when the microtasks have drained.
    for (let turns = 0; turns < 2; turns++) await new Promise<void>((resolve) => setImmediate(resolve));
    this.#guard?.dispose();
    this.#zombies.crash();
    this.crash();
    for (const endHearing of this.#hearing.values()) endHearing();
    await this.#disconnected;
    this.#trouble.stop();
    const unused = this.#options.strictFakes === true ? this.unusedFakes.map(neverCalled) : [];
    const problems = [...this.#trouble.untold, ...unused];
    if (problems.length > 0) throw new Error(problems.join("\n"));
  }

  #retire(session: Session): void {
    this.#dead.add(session.node);
    this.#session = undefined;
    this.#relay.disconnect();
    this.#time.changes.tell();
  }

  // ── waiting ────────────────────────────────────────────────────────────────────────────────────────────

  #mustBeAlive(): void {
    if (this.#time.ended) throw this.#trouble.claim(disposed());
  }

  /** Awaits what the test asked for: disposal and impatience reject it. */
  #attended<T>(what: string, work: () => Promise<T>): Promise<T> {
    return new Promise((resolve, reject) => {
      const over = this.#time.attend({ what, reject });
      if (this.#time.ended) return;
      settleWith(work(), over, resolve, reject);
    });
  }

  /** Why time stands although nothing runs. */
  get #stands(): string | undefined {
    if (this.#plan?.connected === false) return "the store is disconnected, and time stands until plan.reconnect()";
    if (this.#restarting > 0) return "the engine is starting";
    if (this.#session === undefined) return "the engine is down, and env.restart() starts another";
    return undefined;
  }

  /** Why it is in vain to wait: a store that only fails. */
  get #inVain(): string | undefined {
    const failing = this.#session?.failing;
    if (failing === undefined || failing.times < manyFailures || this.clock.now() - failing.since < longFailing) return undefined;
    // Whoever waits from now on waits as long again.
    this.#session?.forgive();
    const { method, times, since, error } = failing;
    return `the store is away since ${new Date(since).toISOString()}: its "${method}" has failed ${times.toLocaleString("en")} times in a row (${error.message})`;
  }

  get #moving(): boolean {
    return this.#session?.moving === true || this.#eventFakes.moving > 0 || this.#zombies.moving;
  }

  #patiently<O>(handle: Handle<O>, result: Promise<O>): Promise<O> {
    return this.#asleep(this.#waitFor(result, `the result of ${handle.id}`, () => this.#neverEnds(handle)));
  }

  #waitFor<T>(promise: Promise<T>, what: string, explain: () => Promise<Error>): Promise<T> {
    return new Promise((resolve, reject) => {
      const over = this.#time.wait({ reject, explain, what });
      settleWith(promise, over, resolve, (error) => reject(this.#trouble.claim(error)));
    });
  }

  /** Says a faked event until an engine has taken it. */
  async #sayFaked(event: string, say: () => Promise<unknown>): Promise<void> {
    const send = async () => {
      await this.insist(say);
    };
    await (this.#conductor === undefined ? send() : this.#conductor.event(event, send));
  }

  async #neverEnds({ id, runId }: Pick<Handle<unknown>, "id" | "runId">): Promise<Error> {
    const unready = this.#session?.unready;
    if (unready !== undefined) return new WovyrError(`the result of ${id} cannot come: ${unready}`, { code: "STORE_UNAVAILABLE" });
    const run = runId === "" ? undefined : runId;
    const state = await this.state(id, run);
    const about = await this.client.handle(id).describe();
    return neverEnds(id, state, about.runId === runId || run === undefined ? about.waitingAt : [], this.workflows);
  }

  async #standstill(what: string): Promise<Error> {
    const unready = this.#session?.unready;
    if (unready !== undefined) return new WovyrError(`${what}: ${unready}`, { code: "STORE_UNAVAILABLE" });
    const rows = await this.bareStore.listInstances(tenant, { statuses: openStatuses }, { limit: explainedRuns });
    const lines = await Promise.all(
      rows.map(async ({ id, run }) => `${id} waits for ${openWaits(await this.state(id, run), this.workflows).join(", ")}`),
    );
    return new Error(
      `${what}, and nothing can happen any more: ${lines.join("; ") || "no run is open"}${rows.length === explainedRuns ? "; …" : ""}`,
    );
  }
}

const neverCalled = ({ kind, target }: Fake) => `the fake of ${kind} "${target}" was never called: is its name right?`;

function settleWith<T>(promise: Promise<T>, over: () => void, resolve: (value: T) => void, reject: (error: unknown) => void): void {
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
}

/** The plan of a faulty store, which knows whether it is disconnected. */
const planOf = (provider: StoreProvider): FaultPlan | undefined =>
  "plan" in provider && provider.plan instanceof FaultPlan ? provider.plan : undefined;

export async function createTestEnvironment(options: TestEnvironmentOptions): Promise<TestEnvironment> {
  checkEnvironmentOptions(options);
  const environment = new TestEnvironment(options);
  try {
    await environment.restart();
  } catch (error) {
    await environment[Symbol.asyncDispose]().catch(() => {});
    throw error;
  }
  return environment;
}
