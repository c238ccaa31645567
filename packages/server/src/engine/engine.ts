/**
 * The engine: instances, their turns, and the work that their turns start.
 *
 *     deliver ─▶ mailbox ─▶ turn ─▶ journal ─▶ store
 *        ▲                                       │ durable
 *        └── attempts · timers · children ◀── started; callers answered
 *
 * 1. Write before act: whatever a turn starts, answers or shows happens in `#committed`, after the commit that records it.
 * 2. An attempt that history shows as running and that this process does not run was lost with another process: found when the run is loaded.
 * 3. What is refused or of unknown outcome is loaded again and its items are delivered again; judging them against history makes that harmless.
 */
import { ApiError, WovyrError } from "@wovyr/sdk";
import {
  type ActivityEffect,
  CancelledError,
  type Closing,
  type ExecutionLimits,
  failureOf,
  type HistoryFact,
  type Incoming,
  type OpenActivity,
  type PayloadCodec,
  sitesAreRemembered,
  suspectLosses,
} from "@wovyr/sdk/internal";
import { Diagnosis, type VoidTurn } from "./diagnosis.ts";
import { Dispatch } from "./dispatch.ts";
import { EventHub } from "./event-hub.ts";
import { HistoryRows } from "./history-row.ts";
import { Instance, type InstanceHost, type InstanceIdentity, type OpenTurn, turnMail } from "./instance.ts";
import { type CacheLimits, InstanceTable } from "./instance-table.ts";
import { Journal, type JournalLimits, type TurnOutcome } from "./journal.ts";
import { type LoadedRun, Loader } from "./loader.ts";
import { type Mail, mailIdentity } from "./mail.ts";
import { Ownership } from "./ownership.ts";
import type { ActivityExecutor } from "./ports/activity-executor.ts";
import type { Clock } from "./ports/clock.ts";
import type { EngineLog } from "./ports/log.ts";
import type { Loop } from "./ports/loop.ts";
import type { Random } from "./ports/random.ts";
import { type InstanceKey, type InstanceRow, type NewInstance, type Store, StoreUnavailableError } from "./ports/store.ts";
import { recover } from "./recovery.ts";
import type { Registry } from "./registry.ts";
import { Replay } from "./replay.ts";
import { newRunId, newSeed } from "./run-id.ts";
import { shardOf } from "./shard-of.ts";
import { Strikes, strikeLimit } from "./strikes.ts";
import { Timers } from "./timers.ts";
import { type PreparedTurn, prepareTurn } from "./turn-write.ts";
import { type Job, Turns } from "./turns.ts";
import { Waiters } from "./waiters.ts";

export type EngineLimits = {
  readonly execution: ExecutionLimits;
  readonly cache: CacheLimits;
  readonly journal: JournalLimits;
  /** Activities that run in this process at once. */
  readonly activities: number;
  /** Attempts that wait for a place: above it, new starts are refused. */
  readonly waitingActivities: number;
  /** Callers that wait for results at once. */
  readonly waiters: number;
};

export type EngineOptions = {
  readonly store: Store;
  readonly registry: Registry;
  readonly clock: Clock;
  readonly random: Random;
  readonly loop: Loop;
  readonly log: EngineLog;
  readonly executor: ActivityExecutor;
  readonly codec: PayloadCodec | undefined;
  readonly limits: EngineLimits;
  readonly group: string;
  readonly shards: number;
  readonly node: string;
  /** Milliseconds. */
  readonly lease: number;
  readonly deadOwners: (owners: readonly string[]) => readonly string[];
  /** Hears which run's turn is being made, for the watchdog; undefined when none is. */
  readonly turnBegan?: (run: InstanceIdentity | undefined, tail: number) => void;
};

/** Why a new instance was not created; the caller finds out which identity was taken. */
export class StartRefused extends WovyrError {}

export type Start = {
  readonly identity: InstanceIdentity;
  readonly create: NewInstance;
  readonly fact: Extract<Incoming, { type: "InstanceStarted" }>;
};

/** Facts that loading a run may add before its code is entered: with them alone it has come no further. */
const addedByLoading: ReadonlySet<HistoryFact["type"]> = new Set(["Resumed", "AttemptLost", "AttemptStarted"]);
const attemptLossLimit = 5;
const startKeyLife = 24 * 3_600_000;
const housekeepingInterval = 600_000;
/** How long `close` waits for a store that does not answer, in milliseconds. */
const storePatience = 1_000;

export class Engine {
  readonly options: EngineOptions;
  readonly rows: HistoryRows;
  readonly table: InstanceTable;
  readonly waiters: Waiters<Closing>;
  readonly hub = new EventHub();
  readonly ownership: Ownership;
  readonly journal: Journal;
  readonly dispatch: Dispatch;
  readonly #turns: Turns;
  readonly #timers: Timers;
  readonly #loader: Loader;
  readonly #host: InstanceHost;
  readonly #loading = new Map<string, Mail[]>();
  #strikes = new Strikes([]);
  /** Parked runs that are to be tried once more. */
  readonly #chances = new Set<string>();
  /** Instances whose turns wait until the lease is renewed. */
  readonly #deferred = new Set<Instance>();
  #nonce = 0;
  #recovery: Promise<void> = Promise.resolve();
  #recovered = false;
  #cancelHousekeeping = () => {};
  #closing = false;
  #closed = false;
  /** Counts how often this node lost its shards: what was begun before is void after. */
  #term = 0;
  /** Runs whose turns take one item each, since the store refuses one of several. */
  readonly #careful = new Set<string>();

  constructor(options: EngineOptions) {
    this.options = options;
    const { store, clock, loop, log, limits } = options;
    this.rows = new HistoryRows(options.codec);
    this.table = new InstanceTable(limits.cache);
    this.waiters = new Waiters(limits.waiters);
    this.ownership = new Ownership({
      store,
      clock,
      log,
      group: options.group,
      shards: options.shards,
      node: options.node,
      lease: options.lease,
      deadOwners: options.deadOwners,
      acquired: () => this.#acquired(),
      lost: () =>
        this.#lost(
          new ApiError("This node no longer owns the instance; try again.", {
            code: "NOT_OWNER",
          }),
        ),
    });
    this.journal = new Journal({
      store,
      clock,
      loop,
      log,
      limits: limits.journal,
      epochOf: (shard) => this.ownership.epochOf(shard),
      recovered: () => void this.#sweepInbox(),
    });
    this.dispatch = new Dispatch({
      executor: options.executor,
      clock,
      random: options.random,
      log,
      concurrency: limits.activities,
      payloadLimit: limits.execution.payload,
    });
    this.#turns = new Turns(loop, (job) => this.#began(job));
    this.#timers = new Timers({
      store,
      clock,
      log,
      shards: () => this.ownership.shards,
      fire: ({ tenant, run, effect, due }) => this.deliver({ tenant, run }, { fact: { type: "TimerFired", effect, due } }),
    });
    this.#loader = new Loader({ store, rows: this.rows, clock, loop });
    this.#host = {
      now: () => clock.now(),
      mayAct: () => this.ownership.holds,
      deferred: (instance) => this.#deferred.add(instance),
      newRunId: () => this.newRunId(),
      limits: limits.execution,
      eventSchema: (instance, event) => this.#eventSchema(instance, event),
      retryAlone: (instance, attempt) => this.#retryAlone(instance, attempt),
      turnEnded: (instance, turn) => this.#turnEnded(instance, turn),
      turnBroke: (instance, failure, turn) => this.#turnBroke(instance, failure, turn),
      jobDone: (instance) => this.#turns.done(instance),
    };
  }

  // ── life ───────────────────────────────────────────────────────────────────────────────────────────────

  /** Claims the shards and recovers what was running; resolves then, or after `patience` milliseconds of standing by. */
  async start(patience: number): Promise<void> {
    await this.ownership.start(patience);
    await this.#recovery;
  }

  /** Why this node cannot take work now; undefined when it can. */
  get unavailable(): WovyrError | undefined {
    if (this.#closing)
      return new ApiError("The orchestrator is shutting down; try again.", {
        code: "SHUTTING_DOWN",
        retryAfter: 1_000,
      });
    const { down } = this.journal;
    if (down !== undefined)
      return new ApiError(`The store cannot be reached: ${down.message}`, {
        code: "STORE_UNAVAILABLE",
        retryAfter: 1_000,
      });
    if (this.ownership.holds && this.ownership.unreachable === undefined) return undefined;
    const { heldBy, unreachable } = this.ownership;
    if (unreachable !== undefined)
      return new ApiError(`The store cannot be reached: ${unreachable.message}`, { code: "STORE_UNAVAILABLE", retryAfter: 1_000 });
    return new ApiError(
      heldBy === undefined
        ? "The orchestrator has not taken its shards yet; try again."
        : `Node ${heldBy} owns the shards of group "${this.options.group}"; this one stands by.`,
      { code: "NOT_OWNER", retryAfter: 1_000 },
    );
  }

  get ready(): boolean {
    return this.unavailable === undefined && this.#recovered;
  }

  /** Whether nothing moves: no turn, no load, no attempt. Only time or a message from outside can change anything then. */
  get quiet(): boolean {
    return (
      this.#turns.idle &&
      this.#loading.size === 0 &&
      this.dispatch.running + this.dispatch.waiting === 0 &&
      !this.journal.busy &&
      !this.#anyActive()
    );
  }

  /** Ends what runs, within `grace` milliseconds; hands over the rest. Nothing is lost, and no attempt that is given up here counts as lost. */
  async close(grace: number): Promise<void> {
    if (this.#closing) return;
    this.#closing = true;
    this.#timers.stop();
    const { clock } = this.options;
    let cancelGrace = () => {};
    const graceOver = new Promise<void>((resolve) => {
      cancelGrace = clock.wakeAt(clock.now() + grace, resolve);
    });
    await Promise.race([this.dispatch.drain(), graceOver]);
    cancelGrace();
    this.dispatch.abort(new CancelledError("the orchestrator is shutting down; the attempt is made again elsewhere"));
    let answers = this.ownership.holds && this.journal.down === undefined && (await this.#settledUnlessStalled());
    if (answers) {
      this.#releaseAttempts();
      answers = await this.#settledUnlessStalled();
    }
    this.#loader.stop();
    this.#turns.stop();
    // A store that does not answer learns by the lease.
    const released = this.ownership.release();
    if (answers) await this.#atMost(storePatience, released);
    this.#closed = true;
    this.journal.stop();
    this.#lost(
      new ApiError("The orchestrator is shutting down; try again.", {
        code: "SHUTTING_DOWN",
        retryAfter: 1_000,
      }),
    );
  }

  /** True when the promise was kept within so many milliseconds. */
  async #atMost(milliseconds: number, promise: Promise<void>): Promise<boolean> {
    const { clock } = this.options;
    let cancel = () => {};
    const late = new Promise<boolean>((resolve) => {
      cancel = clock.wakeAt(clock.now() + milliseconds, () => resolve(false));
    });
    const kept = await Promise.race([promise.then(() => true), late]);
    cancel();
    return kept;
  }

  /** Waits until everything is saved; false when the store is away, or has not taken anything for a while. */
  async #settledUnlessStalled(): Promise<boolean> {
    const settled = this.#settled();
    for (;;) {
      const { flushes } = this.journal;
      if (await this.#atMost(storePatience, settled)) return this.journal.down === undefined;
      if (this.journal.flushes === flushes) return false;
    }
  }

  /** Resolves when no turn is queued, running or being saved, or when the store is away. */
  async #settled(): Promise<void> {
    while (!this.#turns.idle || this.#loading.size > 0 || this.#anyActive()) {
      await this.journal.idle();
      await new Promise<void>((resolve) => this.options.loop.immediate(resolve));
      if (this.journal.down !== undefined) return;
    }
  }

  #anyActive(): boolean {
    for (const instance of this.table.values()) if (instance.phase !== "idle") return true;
    return false;
  }

  #releaseAttempts(): void {
    for (const instance of this.table.values())
      for (const [effect, activity] of instance.state.activities)
        if (activity.state === "Running")
          this.deliver(instance.identity, {
            fact: {
              type: "AttemptLost",
              effect,
              attempt: activity.attempt,
              cause: "shutdown",
            },
          });
  }

  #acquired(): void {
    const deferred = [...this.#deferred];
    this.#deferred.clear();
    for (const instance of deferred) this.#queue(instance);
    this.#recovery = this.#recover();
  }

  async #recover(): Promise<void> {
    try {
      await this.#readStrikes();
      await recover(this);
      if (this.#closing) return;
      await this.#timers.start();
      this.#recovered = true;
      this.#keepHouse();
    } catch (error) {
      if (this.#closing || !this.ownership.holds) return;
      const { clock, log } = this.options;
      if (!(error instanceof StoreUnavailableError)) log.error("recovery failed; it is tried again", { error });
      clock.wakeAt(clock.now() + 500, () => this.#acquired());
    }
  }

  /** Start keys are kept for a day. */
  #keepHouse(): void {
    this.#cancelHousekeeping();
    const { clock, store, log } = this.options;
    store.expireStartKeys(clock.now() - startKeyLife).catch((error) => log.warn("old start keys could not be removed", { error }));
    this.#cancelHousekeeping = clock.wakeAt(clock.now() + housekeepingInterval, () => this.#keepHouse());
  }

  async #readStrikes(): Promise<void> {
    this.#strikes = new Strikes(await this.options.store.listStrikes());
  }

  async #sweepInbox(): Promise<void> {
    const { store } = this.options;
    try {
      for (let after = 0; ; ) {
        const page = await store.listInbox(this.ownership.shards, {
          after,
          limit: 500,
        });
        for (const message of page) await this.deliverMessage(message);
        const last = page[page.length - 1];
        if (last === undefined || page.length < 500) return;
        after = last.position;
      }
    } catch (error) {
      this.options.log.warn("the inbox could not be swept; its messages are delivered after the next outage or start", { error });
    }
  }

  /** A message of the durable inbox on its way to its run. */
  async deliverMessage(message: { tenant: string; run: string; message: string; fact: string }): Promise<void> {
    const fact = (await this.rows.decodeFact(message.fact)) as Incoming;
    this.deliver(message, { fact, inbox: message.message });
  }

  /** Everything in memory is void: another node acts on it, or nobody does any more. */
  #lost(reason: WovyrError): void {
    this.#recovered = false;
    this.#cancelHousekeeping();
    this.#term += 1;
    this.#timers.stop();
    if (!this.#closing) this.dispatch.forget(reason);
    this.#deferred.clear();
    const refuse = (mail: readonly Mail[]) => {
      for (const item of mail) item.receipt?.refused(reason);
    };
    for (const instance of [...this.table.values()]) {
      const { mailbox } = instance;
      instance.mailbox = [];
      this.table.remove(instance);
      refuse(mailbox);
    }
    for (const mail of this.#loading.values()) refuse(mail);
    this.#loading.clear();
  }

  // ── what comes in ──────────────────────────────────────────────────────────────────────────────────────

  get node(): string {
    return this.options.node;
  }

  /** Marks a turn as this node's: unique while the node lives. */
  newNonce(): string {
    this.#nonce += 1;
    return `${this.options.node}#${this.#nonce}`;
  }

  newRunId(): string {
    return newRunId(this.options.clock.now(), this.options.random);
  }

  newSeed(): string {
    return newSeed(this.options.random);
  }

  shardOf(tenant: string, id: string): number {
    return this.ownership.firstShard + shardOf(tenant, id, this.options.shards);
  }

  /** Why a new start is refused for now. */
  get overloaded(): WovyrError | undefined {
    if (!this.journal.overloaded && this.dispatch.waiting <= this.options.limits.waitingActivities) return undefined;
    return new ApiError("The orchestrator has more work waiting than it takes; try again soon.", { code: "OVERLOADED", retryAfter: 1_000 });
  }

  /** Creates a run; `receipt` hears when it is durable, or that it was refused. */
  startInstance(start: Start, receipt: Mail["receipt"]): void {
    const instance = this.#newInstance(start.identity);
    instance.create = start.create;
    instance.mailbox.push({
      fact: start.fact,
      ...(receipt !== undefined && { receipt }),
    });
    this.table.add(instance);
    if (this.#strikes.suspects(start.identity.workflow)) this.#holdSuspect(instance, start, receipt);
    else instance.execution = instance.newExecution();
    this.#queue(instance);
  }

  /** The first turn of this workflow has ended a process before: the start becomes durable, parked, before its code is entered. */
  #holdSuspect(instance: Instance, start: Start, receipt: Mail["receipt"]): void {
    const { workflow, run } = instance.identity;
    const failure = new WovyrError(`The first turn of workflow "${workflow}" has blocked a process before; it is tried with care.`, {
      code: "TURN_NEVER_YIELDS",
    });
    const accepted = (replayed: boolean) => {
      receipt?.accepted(replayed);
      this.#chances.add(run);
      this.table.remove(instance);
      this.deliver(instance.identity, {
        fact: start.fact,
        inbox: mailIdentity(start.fact),
      });
    };
    instance.mailbox = [
      { fact: { type: "Parked", failure: failureOf(failure) } },
      {
        fact: start.fact,
        receipt: { accepted, refused: (error) => receipt?.refused(error) },
      },
    ];
  }

  /** Gives an item to its run, which is loaded when it is not in memory. */
  deliver(key: InstanceKey, mail: Mail): void {
    const instance = this.table.get(key.run);
    if (instance !== undefined) {
      instance.mailbox.push(mail);
      this.#queue(instance);
      return;
    }
    this.load(key, mail);
  }

  /** The run is parked, and its code may try again as soon as it is loaded. */
  giveChance(key: InstanceKey): void {
    if (this.table.get(key.run) === undefined) this.#chances.add(key.run);
    else this.deliver(key, { fact: { type: "Resumed" } });
  }

  /** Brings a run into memory, if it is not there. Resolves when it is, or when there is no such run. */
  load(key: InstanceKey, mail?: Mail): Promise<void> {
    const waiting = this.#loading.get(key.run);
    if (waiting !== undefined) {
      if (mail !== undefined) waiting.push(mail);
      return Promise.resolve();
    }
    if (this.table.get(key.run) !== undefined) return Promise.resolve();
    this.#loading.set(key.run, mail === undefined ? [] : [mail]);
    return this.#load(key);
  }

  #load(key: InstanceKey): Promise<void> {
    const term = this.#term;
    return this.#loader.load(key).then(
      (loaded) => (term === this.#term ? this.#loaded(key, loaded) : undefined),
      (error) => {
        if (term === this.#term) this.#notLoaded(key, error);
      },
    );
  }

  #takeLoading(key: InstanceKey): Mail[] {
    const mail = this.#loading.get(key.run) ?? [];
    this.#loading.delete(key.run);
    return mail;
  }

  #notLoaded(key: InstanceKey, error: unknown): void {
    this.options.log.error("a run could not be loaded", {
      run: key.run,
      error,
    });
    const refusal = error instanceof WovyrError ? error : new WovyrError("the run could not be loaded", { cause: error });
    for (const mail of this.#takeLoading(key)) mail.receipt?.refused(refusal);
  }

  #loaded(key: InstanceKey, loaded: LoadedRun | undefined): Promise<void> | void {
    if (loaded === undefined) {
      const mail = this.#takeLoading(key);
      this.#dropMessages(key, mail);
      for (const item of mail)
        item.receipt?.refused(
          new ApiError(`There is no run "${key.run}".`, {
            code: "INSTANCE_NOT_FOUND",
          }),
        );
      return;
    }
    return this.#revive(loaded);
  }

  /** Replays a loaded run and gives it the items that waited for it. */
  #revive({ row, turns, weight }: LoadedRun): Promise<void> {
    const definition = this.options.registry.find(row.workflow, row.version);
    const instance = new Instance(
      {
        tenant: row.tenant,
        run: row.run,
        id: row.id,
        shard: row.shard,
        workflow: row.workflow,
        version: row.version,
        correlationId: row.correlationId,
        parent: row.parent,
      },
      row.closedAt === undefined ? definition : undefined,
      this.#host,
    );
    instance.phase = "loading";
    if (definition === undefined && row.closedAt === undefined)
      this.options.log.warn(`workflow "${row.workflow}" version "${row.version}" is not registered here; its runs wait until it is`, {
        run: row.run,
      });
    if (this.#careful.has(row.run)) instance.mailPerTurn = 1;
    const strikes = this.#strikes.against(row);
    const term = this.#term;
    return new Promise((resolve) => {
      const enter = (settle: () => void) => {
        if (term !== this.#term) {
          resolve();
          return;
        }
        instance.weight = weight;
        instance.phase = "idle";
        instance.mailbox = this.#takeLoading(instance.identity);
        this.table.add(instance);
        settle();
        this.#queue(instance);
        resolve();
      };
      if (strikes >= strikeLimit && row.closedAt === undefined) {
        enter(() => this.#withoutCode(instance, turns, neverYields(row.workflow, strikes)));
        return;
      }
      this.#turns.add(
        new Replay(instance, turns, row.tail, this.#turns, (failure) => {
          if (failure === undefined) enter(() => this.#revived(instance));
          else
            this.#diagnose(instance, turns, undefined).then((found) => enter(() => this.#withoutCode(instance, turns, found ?? failure)));
        }),
      );
    });
  }

  /** The run's code cannot be run: only its state is known, and it is parked unless it was already. */
  #withoutCode(instance: Instance, turns: LoadedRun["turns"], failure: Error): void {
    const { weight } = instance;
    instance.forget();
    instance.weight = weight;
    for (const turn of turns) instance.state.apply(turn);
    if (instance.state.parked === undefined) instance.mailbox.unshift({ fact: { type: "Parked", failure: failureOf(failure) } });
  }

  /** What a loaded run needs before anything else: a second chance, or that attempts died with their process. */
  #revived(instance: Instance): void {
    if (instance.state.closed || instance.execution === undefined) return;
    const { parked } = instance.state;
    if (parked !== undefined && !this.#chances.delete(instance.identity.run)) return;
    const resumed: Mail[] = parked === undefined ? [] : [{ fact: { type: "Resumed" } }];
    instance.mailbox.unshift(...resumed, ...this.#lostAttempts(instance));
  }

  #lostAttempts(instance: Instance): Mail[] {
    const reported = new Set(instance.mailbox.map((mail) => mailIdentity(mail.fact)));
    const mail: Mail[] = [];
    for (const [effect, activity] of instance.state.activities) {
      if (reported.has(`outcome:${effect}:${activity.attempt}`) || this.dispatch.has(instance.identity.run, effect)) continue;
      if (activity.state === "Running") mail.push(...lossOf(effect, activity));
      else if (activity.state !== "Retrying" && activity.losses >= suspectLosses) this.#startAlone(instance, effect, activity);
      else if (activity.state === "Scheduled") mail.push({ fact: { type: "AttemptStarted", effect, attempt: activity.attempt } });
    }
    return mail;
  }

  /** A suspect's next attempt is recorded when no other suspect runs. */
  #startAlone(instance: Instance, effect: string, activity: OpenActivity): void {
    this.#deliverAlone(instance, activity, { type: "AttemptStarted", effect, attempt: activity.attempt });
  }

  #retryAlone(instance: Instance, fact: Extract<Incoming, { type: "AttemptStarted" }>): void {
    const activity = instance.state.activities.get(fact.effect);
    if (activity !== undefined && !this.dispatch.has(instance.identity.run, fact.effect)) this.#deliverAlone(instance, activity, fact);
  }

  #deliverAlone(
    { identity: { tenant, run } }: Instance,
    activity: OpenActivity,
    fact: Extract<Incoming, { type: "AttemptStarted" }>,
  ): void {
    this.dispatch.startAlone({ run, effect: fact.effect, activity, begin: () => this.deliver({ tenant, run }, { fact }) });
  }

  #newInstance(identity: InstanceIdentity): Instance {
    return new Instance(identity, this.options.registry.find(identity.workflow, identity.version), this.#host);
  }

  #eventSchema(instance: Instance, event: string): { readonly schema?: unknown } | undefined {
    const { workflow, version } = instance.identity;
    const declared = this.options.registry.event(workflow, version, event);
    if (declared !== undefined) return declared;
    for (const leaf of instance.execution?.leaves.values() ?? [])
      if (leaf.work.kind === "event" && leaf.work.effect.event.name === event) return leaf.work.effect.event;
    return undefined;
  }

  // ── turns ──────────────────────────────────────────────────────────────────────────────────────────────

  #queue(instance: Instance): void {
    if (instance.phase !== "idle") return;
    if (instance.mailbox.length === 0) {
      this.#rest(instance);
      return;
    }
    instance.phase = "queued";
    this.table.busy(instance);
    this.#turns.add(instance);
  }

  #rest(instance: Instance): void {
    if (this.#careful.delete(instance.identity.run)) instance.mailPerTurn = turnMail;
    if (instance.state.closed) this.table.remove(instance);
    else this.table.rest(instance);
  }

  #began(job: Job | undefined): void {
    const { turnBegan } = this.options;
    if (turnBegan === undefined) return;
    if (job instanceof Instance) turnBegan(job.identity, job.state.tail);
    else if (job instanceof Replay) turnBegan(job.instance.identity, job.tail);
    else turnBegan(undefined, 0);
  }

  #turnEnded(instance: Instance, turn: OpenTurn): void {
    if (turn.facts.length === 0) {
      this.#answer(instance, turn);
      this.#dropMessages(instance.identity, turn.mail);
      this.#keepHeld(instance, turn.held);
      instance.phase = "idle";
      this.#queue(instance);
      return;
    }
    instance.phase = "saving";
    const prepared = prepareTurn(instance, turn, this);
    if (!(prepared instanceof Promise)) {
      this.#save(instance, turn, prepared);
      return;
    }
    prepared.then(
      (ready) => this.#save(instance, turn, ready),
      (error) => this.#settle(instance, turn, undefined, { kind: "impossible", error }),
    );
  }

  #save(instance: Instance, turn: OpenTurn, prepared: PreparedTurn): void {
    this.journal.submit(prepared.write, (outcome) => this.#settle(instance, turn, prepared, outcome));
  }

  #settle(instance: Instance, turn: OpenTurn, prepared: PreparedTurn | undefined, outcome: TurnOutcome): void {
    if (outcome.kind === "durable" && prepared !== undefined) this.#committed(instance, turn, prepared, outcome.rejectedChildren);
    else if (outcome.kind === "impossible") this.#impossible(instance, turn, outcome.error);
    else this.#refused(instance, turn);
  }

  /** The turn is durable: answer, show and start what it caused. */
  #committed(instance: Instance, turn: OpenTurn, prepared: PreparedTurn, rejectedChildren: ReadonlySet<string>): void {
    instance.create = undefined;
    if (this.#strikes.any) this.#forgive(instance, turn);
    instance.weight += prepared.write.events.length;
    this.#answer(instance, turn);
    this.#log(instance);
    this.hub.publish(instance.identity.run, () => ({
      run: instance.identity.run,
      seq: turn.tail + 1,
      at: turn.at,
      facts: turn.facts,
    }));
    // Another node may own it meanwhile; then that one does the rest.
    if (instance.phase === "saving") this.#startWork(instance, turn, prepared, rejectedChildren);
    this.#keepHeld(instance, turn.held);
    if (turn.plan.closing !== undefined) this.waiters.tell(instance.identity.run, turn.plan.closing);
    if (instance.phase !== "saving") return;
    instance.phase = "idle";
    this.#queue(instance);
  }

  /** A run that was struck has come further: what was held against it, and against first turns of its workflow, is void. */
  #forgive(instance: Instance, turn: OpenTurn): void {
    if (instance.state.parked !== undefined || turn.facts.every(({ type }) => addedByLoading.has(type))) return;
    for (const key of this.#strikes.forgive(instance.identity))
      this.options.store.clearStrikes(key).catch((error) => this.options.log.warn("strikes could not be cleared", { error }));
  }

  #answer(instance: Instance, turn: OpenTurn): void {
    turn.mail.forEach((mail, index) => {
      const verdict = turn.verdicts[index];
      if (mail.fact.type === "TimerFired" && verdict !== "done") this.#timers.resolve(instance.identity.run, mail.fact.effect);
      if (mail.receipt === undefined) return;
      if (verdict instanceof WovyrError) mail.receipt.refused(verdict);
      else mail.receipt.accepted(verdict === "known");
    });
  }

  #log(instance: Instance): void {
    const { workflow, id, run } = instance.identity;
    for (const { level, message, data } of instance.takeLogs())
      this.options.log[level](message, {
        workflow,
        instance: id,
        run,
        ...data,
      });
  }

  #startWork(instance: Instance, turn: OpenTurn, { children, sends }: PreparedTurn, rejectedChildren: ReadonlySet<string>): void {
    const { plan } = turn;
    const { tenant, run, shard } = instance.identity;
    for (const effect of plan.stopped)
      this.dispatch.stop(run, effect, new CancelledError("the workflow no longer waits for this activity"));
    for (const effect of plan.timersDone) this.#timers.resolve(run, effect);
    for (const [effect, due] of plan.timers) this.#timers.add({ tenant, run, shard, effect, due });
    for (const effect of plan.attempts.keys()) this.#startAttempt(instance, effect);
    for (const { write, start } of children) {
      if (rejectedChildren.has(write.run)) {
        const fact = JSON.parse(write.rejection.fact) as Incoming;
        this.deliver({ tenant, run }, { fact, inbox: write.rejection.message });
      } else this.#startChild(tenant, write.run, write.shard, start);
    }
    for (const send of sends) this.deliver({ tenant, run: send.run }, { fact: send.fact, inbox: send.message });
  }

  #startAttempt(instance: Instance, effect: string): void {
    const activity = instance.state.activities.get(effect);
    if (activity?.state === "Lost") this.#startAlone(instance, effect, { ...activity });
    const leaf = instance.execution?.leaves.get(effect);
    if (activity?.state !== "Running" || leaf?.work.kind !== "activity") return;
    const { tenant, run, id, workflow } = instance.identity;
    this.dispatch.start({
      tenant,
      run,
      instanceId: id,
      workflow,
      effect,
      call: leaf.work.effect as ActivityEffect<unknown>,
      activity: { ...activity },
      report: (fact) => this.deliver({ tenant, run }, { fact }),
    });
  }

  #startChild(tenant: string, run: string, shard: number, fact: Start["fact"]): void {
    if (this.table.get(run) !== undefined || this.#loading.has(run)) return;
    const { id, workflow, version, correlationId, parent } = fact;
    const child = this.#newInstance({
      tenant,
      run,
      shard,
      id,
      workflow,
      version,
      correlationId,
      parent,
    });
    child.execution = child.newExecution();
    child.mailbox.push({ fact, inbox: "start" });
    this.table.add(child);
    this.#queue(child);
  }

  /** Items that wait for the run's code stay in its durable inbox; then they are as good as delivered. */
  #keepHeld(instance: Instance, held: readonly Mail[]): void {
    const { tenant, run, shard } = instance.identity;
    // These two come again by themselves: from a row, and from the state of the activity.
    const volatile = held.filter(({ inbox, fact: { type } }) => inbox === undefined && type !== "TimerFired" && type !== "AttemptStarted");
    for (const { fact } of held)
      if (fact.type === "AttemptStarted") this.dispatch.stop(run, fact.effect, new CancelledError("the run is parked"));
    if (volatile.length === 0) return;
    const keep = async () => {
      const messages = volatile.map(async ({ fact }) => ({
        tenant,
        run,
        shard,
        message: mailIdentity(fact),
        fact: await this.rows.encodeFact(fact),
      }));
      await this.options.store.post(await Promise.all(messages));
    };
    keep().then(
      () => {
        for (const mail of volatile) mail.receipt?.accepted(false);
      },
      (error) => {
        for (const mail of volatile) mail.receipt?.refused(error);
      },
    );
  }

  #dropMessages(key: InstanceKey, mail: readonly Mail[]): void {
    const messages = mail.flatMap((item) => (item.inbox === undefined ? [] : [{ tenant: key.tenant, run: key.run, message: item.inbox }]));
    if (messages.length > 0)
      this.options.store.drop(messages).catch((error) => this.options.log.warn("messages of an ended run could not be removed", { error }));
  }

  /** The store did not take the turn: what was made of it is void, its items are given to what is durable, as long as this node is its owner. */
  #refused(instance: Instance, turn: OpenTurn): void {
    const mail = [...turn.mail, ...turn.held, ...instance.mailbox];
    instance.mailbox = [];
    this.table.remove(instance);
    if (instance.create !== undefined) {
      for (const item of mail) item.receipt?.refused(new StartRefused("an identity of the new instance is taken"));
      return;
    }
    // They wait where items of a run that is being loaded wait, so that what arrives meanwhile comes after them.
    const { run } = instance.identity;
    this.#loading.set(run, mail);
    const again = () => {
      if (this.#loading.get(run) !== mail) return;
      const { unavailable } = this;
      if (unavailable === undefined || (this.#closing && !this.#closed)) void this.#load(instance.identity);
      else for (const item of this.#takeLoading(instance.identity)) item.receipt?.refused(unavailable);
    };
    void this.ownership.verify().then(again);
  }

  /** The store can never take the turn. What made it so is turned away; if that is nothing in particular, the run is parked. */
  #impossible(instance: Instance, turn: OpenTurn, error: Error): void {
    this.options.log.error("a turn cannot be stored", {
      run: instance.identity.run,
      error,
    });
    const failure = failureOf(error);
    const mail = [...turn.mail, ...turn.held, ...instance.mailbox];
    instance.mailbox = [];
    this.table.remove(instance);
    if (instance.create !== undefined) {
      for (const item of mail)
        item.receipt?.refused(
          new ApiError(`The store does not take this start: ${error.message}`, {
            code: "PAYLOAD_UNSERIALIZABLE",
          }),
        );
      return;
    }
    const suspects = turn.mail.filter(({ fact }) => fact.type === "ActivityCompleted" || fact.type === "EventReceived");
    if (suspects.length > 1) {
      this.#careful.add(instance.identity.run);
      for (const item of mail) this.deliver(instance.identity, item);
      return;
    }
    for (const item of mail) {
      const { fact } = item;
      if (fact.type === "ActivityCompleted" && suspects.includes(item))
        this.deliver(instance.identity, {
          fact: {
            type: "ActivityFailed",
            effect: fact.effect,
            attempt: fact.attempt,
            failure,
          },
        });
      else if (suspects.includes(item))
        item.receipt?.refused(
          new ApiError(`The store does not take this event: ${error.message}`, {
            code: "PAYLOAD_UNSERIALIZABLE",
          }),
        );
      else this.deliver(instance.identity, item);
    }
    if (suspects.length === 0) this.deliver(instance.identity, { fact: { type: "Parked", failure } });
  }

  /** The lines that an open run waits at; empty when its code is not here. */
  async waitingAt(row: InstanceRow): Promise<readonly string[]> {
    if (row.status !== "open" || this.unavailable !== undefined) return [];
    if (sitesAreRemembered()) {
      await this.load(row);
      return this.table.get(row.run)?.execution?.waitingAt() ?? [];
    }
    const loaded = await this.#loader.load(row);
    const instance = this.#newInstance({ ...row });
    const execution = instance.newExecution();
    if (loaded === undefined || execution === undefined) return [];
    await new Promise<void>((resolve) => this.#turns.add(new Diagnosis(execution, loaded.turns, undefined, this.#turns, resolve)));
    return execution.waitingAt();
  }

  /** What went wrong, told with its line. Undefined when lines are remembered anyway, or when it does not happen again. */
  async #diagnose(instance: Instance, turns: LoadedRun["turns"], next: VoidTurn | undefined): Promise<Error | undefined> {
    const execution = sitesAreRemembered() ? undefined : instance.newExecution();
    if (execution === undefined) return undefined;
    await new Promise<void>((resolve) => this.#turns.add(new Diagnosis(execution, turns, next, this.#turns, resolve)));
    return execution.broken;
  }

  /** A turn cannot be made. Until it is known why, the instance is left as it is: at work. */
  #turnBroke(instance: Instance, failure: Error, turn: VoidTurn): void {
    const history =
      instance.create === undefined ? this.#loader.load(instance.identity).then((loaded) => loaded?.turns) : Promise.resolve([]);
    history
      .then((turns) => this.#diagnose(instance, turns ?? [], turn))
      .catch(() => undefined)
      .then((found) => {
        if (instance.phase === "running") this.park(instance, found ?? failure);
      });
  }

  /** The code cannot go on from what is durable: the run waits for a person, and what reaches it waits with it. */
  park(instance: Instance, failure: Error): void {
    const { workflow, id, run } = instance.identity;
    this.options.log.error(`the run is parked: ${failure.message}`, {
      workflow,
      instance: id,
      run,
    });
    const parked: Mail = {
      fact: { type: "Parked", failure: failureOf(failure) },
    };
    if (instance.create !== undefined) {
      instance.forget();
      instance.mailbox.unshift(parked);
      instance.phase = "idle";
      this.#queue(instance);
      return;
    }
    // What loading a run adds by itself is not kept: a second chance that was wasted above all.
    const mail = [parked, ...instance.mailbox.filter(({ fact }) => !addedByLoading.has(fact.type))];
    instance.mailbox = [];
    this.table.remove(instance);
    for (const item of mail) this.deliver(instance.identity, item);
  }
}

function neverYields(workflow: string, count: number): WovyrError {
  return new WovyrError(
    `A turn of workflow "${workflow}" ran without yielding until its process was ended, ${count} times. Look for a loop without \`yield*\` in its code, deploy a fix, and start the orchestrator again.`,
    { code: "TURN_NEVER_YIELDS" },
  );
}

/** A crash took the attempt with it; too many of those, and no further one is made. */
function lossOf(effect: string, activity: OpenActivity): Mail[] {
  const lost: Mail = {
    fact: {
      type: "AttemptLost",
      effect,
      attempt: activity.attempt,
      cause: "crash",
    },
  };
  if (activity.losses + 1 < attemptLossLimit) return [lost];
  const failure = failureOf(
    new WovyrError(`Activity "${activity.name}" was running ${attemptLossLimit} times when its process died; it is not tried again.`, {
      code: "ATTEMPTS_LOST",
    }),
  );
  return [
    lost,
    {
      fact: {
        type: "ActivityFailed",
        effect,
        attempt: activity.attempt,
        failure,
      },
    },
  ];
}
