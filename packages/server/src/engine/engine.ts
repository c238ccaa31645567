/**
 * The engine: instances, their turns, and the work that their turns start.
 *
 *     deliver ─▶ mailbox ─▶ turn ─▶ journal ─▶ store
 *        ▲                                       │ durable
 *        └── attempts · timers · children ◀── started; callers answered
 *
 * What follows a commit is in settlement.ts, how runs come into memory in revival.ts.
 */
import { ApiError, WovyrError } from "@wovyr/sdk";
import {
  type Classifier,
  type Closing,
  type ExecutionLimits,
  failureOf,
  type Incoming,
  type PayloadCodec,
  type RetryPolicy,
  type WorkflowGuard,
} from "@wovyr/sdk/internal";
import { Admission, type AdmissionLimits } from "./admission.ts";
import { Attempts, shuttingDown } from "./attempts.ts";
import { turnBroke } from "./broken-turns.ts";
import { builtIn } from "./built-in.ts";
import { Dialogue, type UpdateEnd, updateKey } from "./dialogue.ts";
import { Dispatch } from "./dispatch.ts";
import { EventHub } from "./event-hub.ts";
import { forkWrite } from "./fork-write.ts";
import { recordedBefore, resetKey } from "./forking.ts";
import { HandOver, handedOver } from "./hand-over.ts";
import { Heartbeats } from "./heartbeats.ts";
import { HeldMail } from "./held-mail.ts";
import { HistoryRows } from "./history-row.ts";
import { Housekeeping } from "./housekeeping.ts";
import { Inbox } from "./inbox.ts";
import { Instance, type InstanceHost, type InstanceIdentity, type OpenTurn, turnMail } from "./instance.ts";
import { type CacheLimits, InstanceTable } from "./instance-table.ts";
import { Journal, type JournalLimits } from "./journal.ts";
import { Admissions } from "./limits/admissions.ts";
import type { TenantLimits } from "./limits/limits-of.ts";
import { comesAgainTo, isForSuccessor, type Mail, mailIdentity } from "./mail.ts";
import { NewIds } from "./new-ids.ts";
import { notOwned, OwnedShards } from "./owned-shards.ts";
import { Ownership } from "./ownership.ts";
import { atMost } from "./pause.ts";
import { Placement } from "./placement.ts";
import type { ActivityExecutor } from "./ports/activity-executor.ts";
import type { Clock } from "./ports/clock.ts";
import { type EngineLog, guarded } from "./ports/log.ts";
import type { Loop } from "./ports/loop.ts";
import type { Peers } from "./ports/peers.ts";
import type { Random } from "./ports/random.ts";
import type { InboxMessage, RunAddress, RunImport, Store } from "./ports/store.ts";
import type { Registry } from "./registry.ts";
import { judgedOutcome } from "./remote-outcome.ts";
import type { RetentionTimes } from "./removal.ts";
import { Replay } from "./replay.ts";
import { Requests } from "./requests.ts";
import { Revival } from "./revival.ts";
import { fifo } from "./scheduling/fifo.ts";
import type { SchedulingStrategy } from "./scheduling/strategy.ts";
import { Settlement } from "./settlement.ts";
import { shardOf } from "./shard-of.ts";
import type { Start } from "./start.ts";
import { completionOf, StepOutcomes } from "./step-outcomes.ts";
import { Strikes } from "./strikes.ts";
import { TaskLeases } from "./task-leases.ts";
import { TaskQueues } from "./task-queues.ts";
import { TaskSweep } from "./task-sweep.ts";
import { Timers } from "./timers.ts";
import { type Job, Turns } from "./turns.ts";
import { UnpolledQueues } from "./unpolled-queues.ts";
import { Waiters } from "./waiters.ts";
import { WakeUps } from "./wake-ups.ts";
import { Workers } from "./workers.ts";

export type EngineLimits = {
  readonly execution: ExecutionLimits;
  readonly cache: CacheLimits;
  readonly journal: JournalLimits;
  /** Activities that run in this process at once. */
  readonly activities: number;
  readonly admission: AdmissionLimits;
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
  /** How activities are tried again, for what neither the workflow nor the activity says. */
  readonly retry?: RetryPolicy | undefined;
  /** Says of what kind failures are that their activity does not classify. */
  readonly classify?: Classifier | undefined;
  /** Who is next when attempts wait; default: first in, first out. */
  readonly scheduling?: SchedulingStrategy | undefined;
  readonly tenantLimits?: TenantLimits | undefined;
  readonly group: string;
  readonly shards: number;
  readonly node: string;
  /** Whether other processes reach the store, known to this node or not. */
  readonly shared?: boolean | undefined;
  /** Where other nodes reach it, once that is known. */
  readonly url?: () => string | undefined;
  /** How this node reaches others. */
  readonly peers?: Peers | undefined;
  /** Of the code that it runs. */
  readonly release?: string | undefined;
  /** Milliseconds. */
  readonly lease: number;
  /** How long publications are kept, in milliseconds. */
  readonly publicationRetention: number;
  readonly deadOwners: (owners: readonly string[]) => readonly string[];
  /** Whether others may put tasks into queues, or lease them: then polls, and the sweep, look for them now and then. */
  readonly looksForTasks?: boolean | undefined;
  /** Task queues whose activities this process runs itself, like any other; default: none. */
  readonly localQueues?: ReadonlySet<string> | "all" | undefined;
  /** How long closed runs are kept; default: for ever. */
  readonly retention?: RetentionTimes | undefined;
  /** Watches what workflow code calls. */
  readonly guard?: WorkflowGuard | undefined;
  /** Whether the process is about to run out of memory: idle instances go then. */
  readonly memoryIsShort?: () => boolean;
  /** Hears which run's turn is being made, for the watchdog; undefined when none is. */
  readonly turnBegan?: (run: InstanceIdentity | undefined, tail: number) => void;
};

/** How long `close` waits until the other nodes know of it: then they take what it leaves at once, and else when they look next. */
const farewellPatience = 300;
/** How long `close` waits for a store that does not answer, in milliseconds. */
const storePatience = 1_000;

type ResetFact = Extract<Incoming, { type: "ResetRequested" }>;

export class Engine {
  readonly options: EngineOptions;
  readonly rows: HistoryRows;
  readonly table: InstanceTable;
  readonly waiters: Waiters<Closing>;
  /** Those who wait for updates, by `updateKey`. */
  readonly updates: Waiters<UpdateEnd>;
  readonly dialogue: Dialogue;
  /** Decisions that are under way on dead letters that no run waits for, by tenant and letter. */
  readonly deciding = new Map<string, Promise<void>>();
  readonly hub = new EventHub();
  readonly ids: NewIds;
  readonly ownership: Ownership;
  readonly shards: OwnedShards;
  readonly handOver: HandOver;
  readonly journal: Journal;
  readonly dispatch: Dispatch;
  readonly attempts: Attempts;
  readonly heartbeats: Heartbeats;
  readonly stepOutcomes: StepOutcomes;
  readonly admission: Admission;
  readonly turns: Turns;
  readonly timers: Timers;
  readonly revival: Revival;
  readonly inbox: Inbox;
  readonly placement: Placement;
  readonly wakeUps: WakeUps;
  readonly requests: Requests;
  readonly heldMail: HeldMail;
  readonly taskQueues: TaskQueues;
  readonly taskLeases: TaskLeases;
  readonly taskSweep: TaskSweep;
  readonly unpolledQueues: UnpolledQueues;
  readonly workers: Workers;
  readonly admissions: Admissions;
  readonly #settlement: Settlement;
  readonly housekeeping: Housekeeping;
  readonly host: InstanceHost;
  strikes = new Strikes([]);
  #closing = false;
  #closed = false;

  constructor(options: EngineOptions) {
    this.options = { ...options, log: guarded(options.log) };
    const { store, clock, loop, log, limits } = this.options;
    this.rows = new HistoryRows(options.codec);
    this.table = new InstanceTable(limits.cache, options.memoryIsShort);
    this.waiters = new Waiters(limits.waiters);
    this.updates = new Waiters(limits.waiters);
    this.dialogue = new Dialogue(this);
    this.ids = new NewIds(this);
    this.shards = new OwnedShards(this);
    this.ownership = new Ownership({
      store,
      clock,
      log,
      group: options.group,
      shards: options.shards,
      node: options.node,
      url: options.url ?? (() => undefined),
      release: options.release ?? "",
      workflows: options.registry.labels,
      lease: options.lease,
      random: options.random,
      deadOwners: options.deadOwners,
      gained: (shards) => this.shards.gained(shards),
      lost: (shards) => this.shards.lost(shards),
      resumed: () => this.shards.resumed(),
      shed: (tooMany) => this.handOver.shed(tooMany),
      looked: () => {
        this.inbox.look();
        this.handOver.offerAll();
      },
    });
    this.handOver = new HandOver(this);
    this.journal = new Journal({
      store,
      clock,
      loop,
      log,
      limits: limits.journal,
      epochOf: (shard) => this.ownership.epochOf(shard),
      recovered: () => this.inbox.sweep(),
    });
    this.attempts = new Attempts(this);
    this.heartbeats = new Heartbeats({ store, rows: this.rows, clock, loop, log });
    this.stepOutcomes = new StepOutcomes({ store, rows: this.rows, clock, log, ownership: this.ownership, closed: () => this.#closed });
    this.dispatch = new Dispatch({
      executor: options.executor,
      builtIn: builtIn(this),
      transaction: (attempt, signal, work) => this.stepOutcomes.run(attempt, signal, work),
      clock,
      random: options.random,
      log,
      heartbeats: this.heartbeats,
      retry: options.retry,
      classify: options.classify,
      concurrency: limits.activities,
      scheduling: options.scheduling ?? fifo(),
      tenantLimits: options.tenantLimits,
      ownership: this.ownership,
      store,
      group: options.group,
      node: options.node,
      lease: options.lease,
      deadOwners: options.deadOwners,
      payloadLimit: limits.execution.payload,
    });
    this.admission = new Admission({ journal: this.journal, dispatch: this.dispatch, clock, limits: limits.admission });
    this.turns = new Turns(loop, (job) => this.#began(job));
    this.timers = new Timers({
      store,
      clock,
      log,
      shards: () => this.ownership.shards,
      fire: ({ tenant, run, shard, effect, due }) => this.deliver({ tenant, run, shard }, { fact: { type: "TimerFired", effect, due } }),
    });
    this.revival = new Revival(this);
    this.inbox = new Inbox(this);
    this.placement = new Placement(options.node, this.ownership, (shard) => this.handOver.isClosing(shard) || this.#isStalled(shard), {
      clock,
      log,
    });
    this.wakeUps = new WakeUps(this);
    this.requests = new Requests(this);
    this.heldMail = new HeldMail(this);
    this.taskQueues = new TaskQueues(this);
    this.taskLeases = new TaskLeases(this);
    this.taskSweep = new TaskSweep(this);
    this.unpolledQueues = new UnpolledQueues(this);
    this.workers = new Workers(this);
    this.#settlement = new Settlement(this);
    this.housekeeping = new Housekeeping(this);
    this.admissions = new Admissions(this);
    this.host = {
      group: options.group,
      now: () => clock.now(),
      mayAct: () => this.ownership.holds,
      deferred: (instance) => this.shards.defer(instance),
      newRunId: (after) => this.ids.run(after),
      limits: limits.execution,
      guard: options.guard,
      eventSchema: (instance, event) => this.#eventSchema(instance, event),
      announce: (instance, attempt) => this.attempts.announce(instance, attempt),
      judged: (_instance, fact, attempt) =>
        judgedOutcome(fact, attempt, {
          retry: options.retry,
          classify: options.classify,
          clock,
          random: options.random,
          log,
          payloadLimit: limits.execution.payload,
        }),
      isQueued: (queue) => options.localQueues !== "all" && options.localQueues?.has(queue) !== true,
      settle: (instance, effect, mail) => void this.#settleStep(instance, effect, mail),
      turnEnded: (instance, turn) => this.#settlement.turnEnded(instance, turn),
      turnBroke: (instance, failure, turn) => turnBroke(this, instance, failure, turn),
      jobDone: (instance) => this.turns.done(instance),
    };
  }

  // ── life ───────────────────────────────────────────────────────────────────────────────────────────────

  /** Joins the group and recovers what was running in the shards that it gets; resolves then, or after `patience` milliseconds without any. */
  async start(patience: number): Promise<void> {
    this.wakeUps.start();
    await this.ownership.start(patience);
    await this.shards.whenRecovered();
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
    const { unreachable } = this.ownership;
    if (unreachable !== undefined)
      return new ApiError(`The store cannot be reached: ${unreachable.message}`, { code: "STORE_UNAVAILABLE", retryAfter: 1_000 });
    return new ApiError("The orchestrator has not taken its shards yet; try again.", { code: "NOT_OWNER", retryAfter: 1_000 });
  }

  /** Why a run cannot be loaded now: while it closes, this node still does what it owes. */
  get unableToLoad(): WovyrError | undefined {
    return this.#closing && !this.#closed ? undefined : this.unavailable;
  }

  get closing(): boolean {
    return this.#closing;
  }

  get closed(): boolean {
    return this.#closed;
  }

  /** Whether it can answer: what it owns is recovered, or others own everything. */
  get ready(): boolean {
    return this.unavailable === undefined && (this.shards.recovered || this.placement.forNew().kind === "there");
  }

  /** Whether nothing is under way but attempts: no turn, no load, no flush. Only time, an attempt or a message from outside can change anything then. */
  get resting(): boolean {
    if (!this.turns.idle || !this.revival.idle || this.journal.busy || !this.stepOutcomes.idle || this.#anyActive()) return false;
    return this.shards.idle && this.handOver.idle && this.options.store.databases?.idle !== false;
  }

  /** Ends what runs, within `grace` milliseconds; hands over the rest. Nothing is lost, and no attempt that is given up here counts as lost. */
  async close(grace: number): Promise<void> {
    if (this.#closing) return;
    this.#closing = true;
    this.timers.stop();
    this.requests.stop();
    this.taskSweep.stop();
    this.unpolledQueues.stop();
    this.taskQueues.close();
    const { clock } = this.options;
    let cancelGrace = () => {};
    const graceOver = new Promise<void>((resolve) => {
      cancelGrace = clock.wakeAt(clock.now() + grace, resolve);
    });
    // It may have been alone when it looked last.
    const told = this.journal.down === undefined && (await atMost(clock, farewellPatience, this.ownership.drain()));
    if (told && !this.ownership.members.alone) await Promise.race([this.handOver.giveUpAll(graceOver), graceOver]);
    await Promise.race([this.dispatch.drain(), graceOver]);
    cancelGrace();
    const ran = this.dispatch.abort(shuttingDown());
    let answers = this.ownership.holds && this.journal.down === undefined && (await this.#settledUnlessStalled());
    if (answers) {
      this.attempts.release(ran);
      answers = await this.#settledUnlessStalled();
    }
    this.revival.stop();
    this.turns.stop();
    // A store that does not answer learns by the lease.
    const released = this.ownership.release();
    if (answers) await atMost(clock, storePatience, Promise.all([released, this.#releasePermits()]));
    this.wakeUps.left();
    this.#closed = true;
    this.wakeUps.stop();
    this.journal.stop();
    this.hub.close();
    for (const waiters of [this.waiters, this.updates])
      waiters.giveUp(new ApiError("The orchestrator is shutting down; try again.", { code: "SHUTTING_DOWN", retryAfter: 1_000 }));
    this.shards.dropAll(
      new ApiError("The orchestrator is shutting down; try again.", {
        code: "SHUTTING_DOWN",
        retryAfter: 1_000,
      }),
    );
  }

  async #releasePermits(): Promise<void> {
    await this.dispatch
      .release()
      .catch((error) => this.options.log.warn("permits could not be given up before their lease ends", { error }));
  }

  /** Waits until everything is saved; false when the store is away, or has not taken anything for a while. */
  async #settledUnlessStalled(): Promise<boolean> {
    const { clock } = this.options;
    const settled = this.#settled();
    for (;;) {
      const { flushes } = this.journal;
      if (await atMost(clock, storePatience, settled)) return this.journal.down === undefined;
      if (this.journal.flushes === flushes) return false;
    }
  }

  /** Resolves when no turn is queued, running or being saved, or when the store is away. */
  async #settled(): Promise<void> {
    while (!this.turns.idle || !this.revival.idle || !this.stepOutcomes.idle || this.#anyActive()) {
      await this.journal.idle();
      await new Promise<void>((resolve) => this.options.loop.immediate(resolve));
      if (this.journal.down !== undefined) return;
    }
  }

  #anyActive(): boolean {
    for (const instance of this.table.values()) if (instance.phase !== "idle") return true;
    return false;
  }

  // ── shards ─────────────────────────────────────────────────────────────────────────────────────────────

  /** Whether a run of the shard may be brought into memory, and made to take steps, by what comes from outside. */
  mayEnter(shard: number): boolean {
    return this.ownership.owns(shard) && !this.handOver.isClosing(shard);
  }

  /** Whether a run may be created in the shard. */
  mayBegin(shard: number): boolean {
    return this.mayEnter(shard) && !this.#isStalled(shard);
  }

  /** A message of the durable inbox on its way to its run. */
  async deliverMessage(message: InboxMessage): Promise<void> {
    const fact = (await this.rows.decodeFact(message.fact)) as Incoming;
    this.deliver(message, { fact, inbox: message.message });
  }

  /** The same, when this node owns the run; else its owner hears that there is something for it. */
  async deliverOwned(message: InboxMessage): Promise<void> {
    if (this.ownership.owns(message.shard)) await this.deliverMessage(message);
    else this.wakeUps.tell([message.shard]);
  }

  // ── what comes in ──────────────────────────────────────────────────────────────────────────────────────

  get node(): string {
    return this.options.node;
  }

  get publicationRetention(): number {
    return this.options.publicationRetention;
  }

  now(): number {
    return this.options.clock.now();
  }

  /** The run that takes the place of one that a turn resets, ready to be written with it. */
  async successorOf({ identity }: Instance, { facts }: OpenTurn, reset: ResetFact): Promise<RunImport> {
    await this.heldMail.settled(identity.run);
    const source = await this.revival.read(identity, { inbox: true });
    if (source === undefined) throw new Error(`run ${identity.run} is to be reset and is not there`);
    return forkWrite(
      {
        source,
        at: reset.to,
        id: identity.id,
        run: reset.run,
        version: identity.version,
        startKey: resetKey(identity.id, reset),
        reset: { reason: reset.reason, since: recordedBefore(facts, reset) },
      },
      this,
    );
  }

  /** Whether the database of a shard is away while others are there: what is asked of it meanwhile is not to wait for it. */
  #isStalled(shard: number): boolean {
    return this.options.store.databases?.unavailable(shard) !== undefined;
  }

  /** Why nothing can be begun in a shard. */
  #refusal(shard: number): ApiError {
    const away = this.options.store.databases?.unavailable(shard);
    if (away === undefined) return notOwned();
    return new ApiError(`The store cannot be reached: ${away.message}`, { code: "STORE_UNAVAILABLE", retryAfter: 1_000 });
  }

  /** Whether two shards live in different databases, so that what is said from one to the other is brought there after the commit. */
  isElsewhere(shard: number, other: number): boolean {
    const { databases } = this.options.store;
    return databases !== undefined && databases.placeOf(shard) !== databases.placeOf(other);
  }

  shardOf(tenant: string, id: string): number {
    return this.ownership.firstShard + shardOf(tenant, id, this.options.shards);
  }

  /** Creates a run; `receipt` hears when it is durable, or that it was refused. */
  startInstance(start: Start, receipt: Mail["receipt"], also: readonly Mail[] = []): void {
    const { shard } = start.identity;
    if (!this.mayBegin(shard)) {
      receipt?.refused(this.#refusal(shard));
      return;
    }
    const instance = this.newInstance(start.identity);
    instance.create = start.create;
    instance.mailbox.push({ fact: start.fact, ...(receipt !== undefined && { receipt }) }, ...also);
    this.table.add(instance);
    if (this.strikes.suspects(start.identity.workflow)) this.#holdSuspect(instance, start, receipt, also);
    else instance.execution = instance.newExecution();
    this.queue(instance);
  }

  /** The first turn of this workflow has ended a process before: the start becomes durable, parked, before its code is entered. */
  #holdSuspect(instance: Instance, start: Start, receipt: Mail["receipt"], also: readonly Mail[]): void {
    const { workflow, run } = instance.identity;
    const failure = new WovyrError(`The first turn of workflow "${workflow}" has blocked a process before; it is tried with care.`, {
      code: "TURN_NEVER_YIELDS",
    });
    const accepted = (replayed: boolean) => {
      receipt?.accepted(replayed);
      this.revival.giveChance(run);
      this.table.remove(instance);
      this.deliver(instance.identity, {
        fact: start.fact,
        inbox: mailIdentity(start.fact),
      });
      for (const item of also) this.deliver(instance.identity, item);
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
  deliver(key: RunAddress, mail: Mail): void {
    const instance = this.table.get(key.run);
    if (instance === undefined) {
      void this.revival.load(key, mail);
      return;
    }
    if (this.handOver.isClosing(instance.identity.shard) && comesAgainTo(mail)) {
      mail.receipt?.refused(handedOver());
      return;
    }
    instance.mailbox.push(mail);
    this.queue(instance);
  }

  /** What is in memory of a run is not to be used any more: it is loaded again with its next item. */
  reload(instance: Instance): void {
    const { mailbox } = instance;
    instance.mailbox = [];
    this.table.remove(instance);
    for (const item of mailbox) this.deliver(instance.identity, item);
  }

  /** The run is parked, and its code may try again as soon as it is loaded. */
  giveChance(key: RunAddress): void {
    if (this.table.get(key.run) === undefined) this.revival.giveChance(key.run);
    else this.deliver(key, { fact: { type: "Resumed" } });
  }

  newInstance(identity: InstanceIdentity): Instance {
    return new Instance(identity, this.options.registry.find(identity.workflow, identity.version), this.host);
  }

  #eventSchema(instance: Instance, event: string): { readonly schema?: unknown } | undefined {
    const { workflow, version } = instance.identity;
    const declared = this.options.registry.event(workflow, version, event);
    if (declared !== undefined) return declared;
    for (const leaf of instance.execution?.leaves.values() ?? [])
      if (leaf.work.kind === "event" && leaf.work.effect.event.name === event) return leaf.work.effect.event;
    return instance.execution?.handledEvent(event);
  }

  /** A transactional step came to its end without an attempt, unless one has committed: then that is told first. */
  async #settleStep({ identity, state }: Instance, effect: string, mail: Mail): Promise<void> {
    const activity = state.activities.get(effect);
    if (activity === undefined) return;
    const before = { ...activity };
    try {
      const outcome = await this.stepOutcomes.giveUp(identity, effect);
      if (outcome !== undefined) for (const fact of completionOf(effect, before, outcome)) this.deliver(identity, { fact });
      this.deliver(identity, { ...mail, settled: true });
    } catch (error) {
      // The next owner finds the attempt lost, and what became of it.
      this.options.log.warn("a step could not be given up", { run: identity.run, effect, error });
      mail.receipt?.refused(error as Error);
    }
  }

  // ── turns ──────────────────────────────────────────────────────────────────────────────────────────────

  /** The instance makes a turn when it has items, and rests when it has none. */
  queue(instance: Instance): void {
    if (instance.phase !== "idle") return;
    const { successor } = instance.state;
    if (successor !== undefined) this.#forward(instance, successor);
    if (instance.mailbox.length === 0) {
      this.#rest(instance);
      return;
    }
    instance.phase = "queued";
    this.table.busy(instance);
    this.turns.add(instance);
  }

  /** What is said to a run that another one goes on from is said to that one. */
  #forward(instance: Instance, run: string): void {
    const { identity, mailbox, state } = instance;
    const passedOn = mailbox.filter(({ fact }) => isForSuccessor(state, fact));
    if (passedOn.length === 0) return;
    instance.mailbox = mailbox.filter(({ fact }) => !isForSuccessor(state, fact));
    for (const { fact, receipt, inbox } of passedOn) {
      if (fact.type === "UpdateRequested") this.updates.move(updateKey(identity.run, fact.message), updateKey(run, fact.message));
      const arrived = () => {
        if (inbox !== undefined) this.dropMessages(identity, [{ fact, inbox }]);
      };
      this.deliver(
        { tenant: identity.tenant, run, shard: identity.shard },
        {
          fact,
          receipt: {
            accepted: (replayed) => {
              arrived();
              receipt?.accepted(replayed);
            },
            refused: (error) => receipt?.refused(error),
          },
        },
      );
    }
  }

  #rest(instance: Instance): void {
    if (this.revival.endCare(instance.identity.run)) instance.mailPerTurn = turnMail;
    if (instance.state.closed) this.table.remove(instance);
    else this.table.rest(instance);
  }

  /** Removes messages that came to nothing from the durable inbox. */
  dropMessages(key: RunAddress, mail: readonly Mail[]): void {
    const messages = mail.flatMap((item) =>
      item.inbox === undefined ? [] : [{ tenant: key.tenant, run: key.run, shard: key.shard, message: item.inbox }],
    );
    if (messages.length > 0)
      this.options.store.drop(messages).catch((error) => this.options.log.warn("messages of an ended run could not be removed", { error }));
  }

  #began(job: Job | undefined): void {
    const { turnBegan } = this.options;
    if (turnBegan === undefined) return;
    if (job instanceof Instance) turnBegan(job.identity, job.state.tail);
    else if (job instanceof Replay) turnBegan(job.instance.identity, job.tail);
    else turnBegan(undefined, 0);
  }
}
