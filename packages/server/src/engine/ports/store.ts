/**
 * What the engine asks of a database. Every provider passes the contract suite (`@wovyr/server/store-contract`).
 *
 * 1. `commit` is atomic per turn: all that a `TurnWrite` carries becomes durable, or none of it. A flush is not a transaction of all its turns:
 *    one that is refused takes no other with it.
 * 2. A turn is refused unless its shard is owned with exactly the given epoch, its run is open and its tail exactly the given one, and its id (of a
 *    new instance) is not held by an open instance of the tenant. The three checks and the write are one statement.
 * 3. A turn that `commit` reports done is durable. When `commit` rejects with `StoreUnavailableError`, the outcome is unknown: it may even become
 *    durable later.
 * 4. Nothing is read or written without its tenant, but for the sweeps of an owner over its shards and for task queues, whose rows carry it.
 * 5. Methods reject with `StoreUnavailableError` when the database cannot be reached or asks to come again (connection lost, restarting, read-only,
 *    deadlock, serialization); any other rejection is permanent for these very values.
 */
import { WovyrError } from "@wovyr/sdk";
import type { ActivityTransaction, ClosedStatus, DeadLetterKind, ParentLink } from "@wovyr/sdk/internal";
import type { AdmissionAsk, Told } from "./admissions.ts";
import type { Databases, OutboxWrite, StorePart } from "./databases.ts";
import type { PermitAsk, PermitGrant, TokenAsk, TokenGrant } from "./limits.ts";
import type { TaskStore, TaskWrite } from "./tasks.ts";

export type { DeadLetterKind } from "@wovyr/sdk/internal";

export class StoreUnavailableError extends WovyrError {
  constructor(message: string, options: ErrorOptions = {}) {
    super(message, { code: "STORE_UNAVAILABLE", ...options });
  }
}

/** In which a run may still take turns: it has no `closedAt`, and nobody else may have its id. */
export const openStatuses = ["open", "queued", "parked", "paused", "compensating"] as const;

export type OpenStatus = (typeof openStatuses)[number];

/** What of an instance's state is stored and indexed; the rest is derived from history. */
export type StoredStatus = OpenStatus | ClosedStatus;

const open: ReadonlySet<string> = new Set(openStatuses);

export function isOpenStatus(status: StoredStatus): status is OpenStatus {
  return open.has(status);
}

export type InstanceKey = { readonly tenant: string; readonly run: string };

/** A run, and the shard that it belongs to, where that is known: a store of several databases goes to the right one, and else asks all. */
export type RunAddress = InstanceKey & { readonly shard?: number | undefined };

export type NewInstance = {
  readonly id: string;
  readonly workflow: string;
  readonly version: string;
  readonly parent?: ParentLink;
  readonly correlationId?: string;
  /** Refuses a second start with the same tenant, workflow and key; `digest` tells whether it is the same request. */
  readonly startKey?: { readonly key: string; readonly digest: string };
};

/** Searchable attributes: JSON scalars and arrays of strings; dates as RFC 3339 text. */
export type Attributes = Readonly<Record<string, string | number | boolean | readonly string[]>>;

export type TimerWrite = {
  readonly effect: string;
  /** Milliseconds since the epoch. */
  readonly due: number;
};

/** A fact on its way to a run, durable until the turn that applies it removes it. */
export type InboxMessage = {
  readonly tenant: string;
  readonly run: string;
  readonly shard: number;
  /** Unique within the run: posting it twice leaves one. */
  readonly message: string;
  /** JSON of an `Incoming` fact. */
  readonly fact: string;
};

/** A child that the turn creates with tail 0, with the start fact in its inbox; when its id is taken, `rejection` is posted to the parent instead. */
export type ChildWrite = {
  readonly run: string;
  readonly shard: number;
  readonly instance: NewInstance;
  readonly start: InboxMessage;
  readonly rejection: InboxMessage;
};

/** A run waits for what is published under a name: with this key, or (no key) without any. */
export type WaitWrite = {
  readonly effect: string;
  readonly name: string;
  readonly key?: string;
  /** Publications up to this position are not looked back at; 0: every one that is kept. Means nothing without a key. */
  readonly after: number;
};

/**
 * How many publications one wait finds when it looks back, the oldest first. One that finds so many may not have seen all: it is not told what is published
 * from then on, and is to be written again when the run has applied what was found.
 */
export const lookBackLimit = 100;

/** An event for every run that waits for its name and key. */
export type Publication = {
  readonly tenant: string;
  /** Publishing it twice is publishing it once. */
  readonly id: string;
  readonly name: string;
  readonly key?: string;
  /** Tells whether another publication with the same id is the same. */
  readonly digest: string;
  /**
   * JSON of the `EventReceived` fact that its receivers get, without its position: an object with at least one field. The store adds `position` as its
   * first field (`positionedFact`).
   */
  readonly fact: string;
  /** Milliseconds since the epoch. */
  readonly at: number;
};

export type PublishOutcome = {
  /** Whether the id was published before: then nothing was done. */
  readonly known: boolean;
  /** Of the publication that has the id: the first. */
  readonly digest: string;
  /** Where it stands; those of one tenant, name and key rise in the order in which they became durable. */
  readonly position: number;
  /** When it was published first, in milliseconds since the epoch, and how many runs waited for it then. */
  readonly at: number;
  readonly reached: number;
  /** The runs into whose inbox this call put it. */
  readonly delivered: readonly { readonly run: string; readonly shard: number }[];
};

/** The name of the inbox message by which a publication reaches a run. */
export function publicationMessage(id: string): string {
  return `publication:${id}`;
}

export function positionedFact(fact: string, position: number): string {
  return `{"position":${position},${fact.slice(1)}`;
}

/** Work that was given up, for a person to look at. */
export type DeadLetterWrite = {
  readonly effect: string;
  readonly kind: DeadLetterKind;
  /** Of the activity, workflow or event. */
  readonly name: string;
  readonly attempts: number;
  /** JSON of a `Failure`. */
  readonly failure: string;
};

export type DeadLetter = InstanceKey &
  DeadLetterWrite & {
    /** Milliseconds since the epoch. */
    readonly at: number;
    /** Of the instance. */
    readonly workflow: string;
    readonly id: string;
  };

/** What belongs to one effect of one run. */
export type EffectKey = InstanceKey & { readonly effect: string };

export type EffectAddress = RunAddress & { readonly effect: string };

export type TurnWrite = {
  readonly tenant: string;
  readonly run: string;
  readonly shard: number;
  /** Given when this is the first turn of a run that has no row yet: the row is inserted, `tail` is 0. */
  readonly create?: NewInstance;
  /** Events in history before this turn. */
  readonly tail: number;
  /** Events that this turn adds, at least 1. */
  readonly count: number;
  /** Milliseconds since the epoch. */
  readonly at: number;
  readonly node: string;
  /** Stored with the run: tells the writer whether a turn of unknown outcome was its own. */
  readonly nonce: string;
  /** JSON of the events, as `encodeEvents` made it. */
  readonly events: string;
  readonly status: StoredStatus;
  /** Whether work in this process is open (in-process activities): such runs are loaded again when a shard is recovered. */
  readonly busy: boolean;
  /** When given, they take the place of all that the run had. */
  readonly attributes?: Attributes;
  readonly timers: readonly TimerWrite[];
  /** Effects whose timer rows go. A closing turn removes all of the run's timers by itself. */
  readonly timersDone: readonly string[];
  readonly children: readonly ChildWrite[];
  /** Facts for other runs. Those whose run is closed or unknown are dropped. */
  readonly sends: readonly InboxMessage[];
  /**
   * Messages of this run's inbox that the turn applied. A closing turn removes all of the run's messages by itself; but where the status is `ContinuedAsNew`
   * those that are publications go to the child that has the run's id.
   */
  readonly consumed: readonly string[];
  /**
   * Effects that wait for publications from now on. One with a key looks back in the same statement: what was published after its `after` is put into the
   * run's inbox. No publication is missed by both the look back and the publisher.
   */
  readonly waits: readonly WaitWrite[];
  /** Effects that wait no longer. A closing turn removes all of the run's waits by itself. */
  readonly waitsDone: readonly string[];
  /** Work that was given up in this turn; one of a known effect takes the place of the former. */
  readonly deadLetters: readonly DeadLetterWrite[];
  /**
   * Effects whose dead letters go. A closing turn removes those of activities and compensations by itself, but for those that it writes; those of workflows
   * and events stay.
   */
  readonly deadLettersDone: readonly string[];
  /** Attempts that workers are to make; one of a known effect takes the place of the former. Absent: none. */
  readonly tasks?: readonly TaskWrite[];
  /** Effects whose tasks go, before new ones come. A closing turn names all that the run has. */
  readonly tasksDone?: readonly string[];
  /** What the turn says to runs of other databases. Absent: nothing. */
  readonly outbox?: readonly OutboxWrite[];
  /** Given with a turn that closes its run: the run that takes its place, and its id, is written with it or not at all. */
  readonly successor?: RunImport;
};

export type ShardEpoch = { readonly shard: number; readonly epoch: number };

export type Flush = {
  /** The epochs under which the node owns the shards that the turns belong to. */
  readonly fence: readonly ShardEpoch[];
  readonly turns: readonly TurnWrite[];
};

export type FlushOutcome = {
  /** Runs whose turn is durable now. A flush holds at most one turn of a run. */
  readonly done: ReadonlySet<string>;
  /** Runs of children that were not created because their id is taken. */
  readonly rejectedChildren: ReadonlySet<string>;
  /** Runs whose turn can never be stored as it is (a text or a size that the database refuses), with the reason. They are not in `done`. */
  readonly failed: ReadonlyMap<string, Error>;
  /**
   * Runs whose new waits found publications when they looked back: these are in the runs' inboxes, unless the turn has consumed them. And those that handed
   * publications on: these are in the inboxes of the runs that go on from them.
   */
  readonly found: ReadonlySet<string>;
};

/** The outcome of a flush of which nothing was done and nothing failed. */
export function nothingDone(): FlushOutcome {
  return { done: new Set(), rejectedChildren: new Set(), failed: new Map(), found: new Set() };
}

export type InstanceRow = {
  readonly tenant: string;
  readonly run: string;
  readonly id: string;
  readonly shard: number;
  readonly workflow: string;
  readonly version: string;
  readonly status: StoredStatus;
  readonly busy: boolean;
  readonly tail: number;
  readonly nonce: string;
  readonly createdAt: number;
  readonly closedAt?: number;
  readonly parent?: ParentLink;
  readonly correlationId?: string;
  /** Where its history comes from, if it did not record all of it itself. */
  readonly origin?: RunOrigin;
  readonly attributes: Attributes;
};

export type RunOrigin = {
  /** The run whose events up to number `at` were copied; `reset` when this one took its place. */
  readonly from?: { readonly id: string; readonly run: string; readonly at: number; readonly reset?: true };
  /** How many events it had when it came from another store. */
  readonly importedAt?: number;
};

export type HistoryRow = {
  readonly seq: number;
  readonly count: number;
  readonly at: number;
  readonly node: string;
  readonly events: string;
};

export type LoadedInstance = {
  readonly row: InstanceRow;
  readonly turns: readonly HistoryRow[];
};

/** A run with its whole past, as it is to be stored. */
export type RunImport = {
  readonly row: Omit<InstanceRow, "nonce" | "attributes">;
  readonly attributes: Attributes;
  /** All of its history, in order. */
  readonly turns: readonly HistoryRow[];
  /** What wakes it. An import of a closed run has none. */
  readonly inbox: readonly Pick<InboxMessage, "message" | "fact">[];
  /** As with a new instance. */
  readonly startKey?: NonNullable<NewInstance["startKey"]>;
};

export type ImportOutcome = "done" | "id-taken" | "run-exists" | "key-taken";

export type Heartbeat = EffectKey & {
  readonly attempt: number;
  /** Milliseconds since the epoch. */
  readonly at: number;
  /** A payload. */
  readonly details: string;
};

/** What became of a transactional step, written in the transaction of the step itself. */
export type StepOutcome = EffectKey & {
  /** Milliseconds since the epoch. */
  readonly at: number;
  /** A payload; null is a tombstone: the attempt was given up, and whoever comes later must not do it. */
  readonly outcome: string | null;
};

/** One attempt of a transactional step. */
export type StepWork = EffectKey & {
  /** The shard of its run, and the epoch under which this node owned it when the attempt began. */
  readonly shard: number;
  readonly epoch: number;
  /** Milliseconds since the epoch. */
  readonly now: () => number;
  /** Aborted when nobody wants the attempt any more: what it has not committed by then is rolled back. */
  readonly signal: AbortSignal;
  /** Does the work; resolves with the outcome, a payload. */
  work(tx: ActivityTransaction): Promise<string>;
};

export type StepEnd =
  /** By this attempt, or by one before it; then the work was not done, or rolled back. */
  | { readonly kind: "committed"; readonly outcome: string }
  /** A tombstone is there. */
  | { readonly kind: "givenUp" }
  /** Another node owns the shard. */
  | { readonly kind: "notOwner" };

/**
 * How transactional steps are run.
 *
 * 1. What the work writes, and its outcome, become durable together or not at all; and only while the shard is owned with the epoch and there is neither an
 *    outcome nor a tombstone of the effect.
 * 2. An outcome or a tombstone is looked for before the work is begun.
 * 3. What the work throws is passed on, after everything was rolled back. `StoreUnavailableError`: nothing of it was there when it was looked for last.
 */
export interface StepTransactions {
  run(step: StepWork): Promise<StepEnd>;
}

/** What an application asked for in a transaction of its own: durable until it is done. */
export type AppRequest = InstanceKey & {
  readonly shard: number;
  /** Rises in the order of asking, within a transaction. */
  readonly position: number;
  /**
   * A run that was created takes its first message; an event is delivered to a run, or (`sendTo`, where `run` is its id) to an instance of another database, or
   * (with no run: an empty text) published.
   */
  readonly kind: "start" | "send" | "sendTo" | "publish";
  /** Unique within the run. */
  readonly message: string;
  /** JSON of an `EventReceived` fact; empty for a start, whose fact is in the run's inbox. */
  readonly fact: string;
};

export interface AppRequests {
  /** Those of the shards, the oldest first; `after` is the `position` after which to go on. As with `listInbox`, a later sweep begins anew. */
  list(shards: readonly number[], page: { after?: number; limit: number }): Promise<readonly AppRequest[]>;
  drop(requests: readonly Pick<AppRequest, "tenant" | "run" | "message" | "position">[]): Promise<void>;
}

/**
 * How nodes wake each other: word that something lies in the inbox of a shard, or that who owns what is about to change.
 *
 * 1. A hint may be lost, late or said twice. What it is about is durable, and is found by looking as well.
 * 2. After a gap, in which hints may have been lost, listeners hear that anything may have happened.
 */
export interface Hints {
  /** Tells the other nodes, soon: of these shards, or (undefined) that anything may have happened. Never rejects; what cannot be told is dropped. */
  tell(shards: readonly number[] | undefined): void;
  /** `heard` gets what was told. Returns what ends it. */
  listen(heard: (shards: readonly number[] | undefined) => void): () => void;
  /** Whether what others tell is heard at present. */
  readonly healthy: boolean;
}

export type DeadLetterFilter = {
  readonly workflow?: string;
  readonly kind?: DeadLetterKind;
  /** Of the instance. */
  readonly id?: string;
  readonly name?: string;
};

export type DeadLetterPage = {
  readonly after?: { readonly at: number; readonly run: string; readonly effect: string };
  readonly limit: number;
};

export type TimerRow = {
  readonly tenant: string;
  readonly run: string;
  readonly shard: number;
  readonly effect: string;
  readonly due: number;
};

/** What a node says of itself while it lives. */
export type Beat = {
  readonly group: string;
  /** How many shards the group has; refused when it was created with another number. */
  readonly shards: number;
  /** Unique over all that ever lived. */
  readonly node: string;
  /** Where other nodes reach it. */
  readonly url?: string | undefined;
  /** Of the code that it runs; later ones sort after earlier ones (`compareReleases`). */
  readonly release: string;
  /** What it can run: `name@version`. */
  readonly workflows: readonly string[];
  /** It is on its way out, and takes no shards. */
  readonly draining: boolean;
  /** For so many milliseconds the node, and its ownership of shards, is taken to live on. */
  readonly lease: number;
  /** Nodes that are known to be dead: they are removed before their leases run out. */
  readonly dead?: readonly string[];
  /** Shards that it gives up. One that it does not own with the given epoch is left alone. */
  readonly give: readonly HandedShard[];
  /** Shards that it takes if nobody owns them; `"free"`: all of these. */
  readonly take: readonly number[] | "free";
};

export type HandedShard = ShardEpoch & {
  /** The workflow (`name@version`) that a run of the shard waits for and that this node does not have. */
  readonly needs?: string;
};

export type NodeRow = {
  readonly node: string;
  readonly url?: string;
  readonly release: string;
  readonly workflows: readonly string[];
  readonly draining: boolean;
  /** Of its lease, in milliseconds. */
  readonly remaining: number;
  /** The places of those of several databases in which it is not known to live: it can own nothing there. */
  readonly absent?: readonly number[];
};

export type ShardRow = ShardEpoch & {
  /** Absent when nobody owns it. */
  readonly owner?: string;
  /** The workflow (`name@version`) for which it was given up last. */
  readonly needs?: string;
};

/** The group as it is after a beat. */
export type Membership = {
  /** Those that live, by name, the one that asked among them. */
  readonly nodes: readonly NodeRow[];
  /** All of the group's, by number. Numbers are unique over all groups; those of a group are consecutive. */
  readonly shards: readonly ShardRow[];
  /** After so many milliseconds from the ask it may be so no more, in part. Absent: the lease of the node. */
  readonly within?: number;
};

export type ListFilter = {
  /** Only runs of this instance; `shard` is its, as in `RunAddress`. */
  readonly id?: string;
  readonly shard?: number;
  readonly workflow?: string;
  readonly statuses?: readonly StoredStatus[];
  readonly attributes?: Readonly<Record<string, string | number | boolean>>;
  /** Milliseconds since the epoch, exclusive. */
  readonly startedAfter?: number;
  readonly startedBefore?: number;
};

export interface Store {
  readonly kind: string;
  /** Given when it is spread over several databases. */
  readonly databases?: Databases;
  /** Absent where it cannot be one of several. */
  readonly part?: StorePart;

  /**
   * Registers a node or renews its lease, by the database's clock; removes nodes of the group whose leases have ended, with their ownership; gives up and takes
   * shards. One statement. A shard that is taken gets a higher epoch; nothing else changes an epoch. What a statement or transaction under way holds on to is
   * not waited for: it is left for a later beat.
   */
  beat(beat: Beat): Promise<Membership>;
  /** Removes a node and gives up all that it owns. */
  leave(group: string, node: string): Promise<void>;

  commit(flush: Flush): Promise<FlushOutcome>;
  /** Makes facts for runs durable without owning their shards; known ones (run and message) are left as they are. */
  post(messages: readonly InboxMessage[]): Promise<void>;
  /** Removes messages without a turn (their run is closed or gone). */
  drop(messages: readonly (RunAddress & { readonly message: string })[]): Promise<void>;

  /**
   * Keeps a publication and puts it into the inbox of every run that waits for its name and key, in one transaction; a known id changes nothing. It needs no
   * ownership.
   */
  publish(publication: Publication): Promise<PublishOutcome>;
  /** Removes publications older than `before` (milliseconds since the epoch), a bounded number at a time. */
  expirePublications(before: number): Promise<void>;

  /**
   * Writes a run with its whole history in one transaction, without owning its shard: `run-exists` when the tenant has a run of this name, `id-taken` when
   * it is open and an open run has its id, `key-taken` when its start key is in use. Then nothing is written.
   */
  importRun(run: RunImport): Promise<ImportOutcome>;
  /** Removes closed runs with all that belongs to them, in one transaction; open ones are left alone. Says how many there were. */
  deleteRuns(keys: readonly RunAddress[]): Promise<number>;
  /**
   * Runs that closed before a time (milliseconds since the epoch), of all tenants, by tenant and run; `after` is the run after which to go on. Run ids tell
   * when a run was made (run-id.ts): those that were made later are not looked at.
   */
  listClosedBefore(before: number, page: { after?: InstanceKey; limit: number }): Promise<readonly InstanceRow[]>;

  /** Keeps a dead letter that no turn writes; one that is known (tenant, run and effect) is left as it is. */
  addDeadLetter(letter: DeadLetter & RunAddress): Promise<void>;
  /** Newest first, ties by run and effect, both descending. `after` is the letter after which to go on. */
  listDeadLetters(tenant: string, filter: DeadLetterFilter, page: DeadLetterPage): Promise<readonly DeadLetter[]>;
  getDeadLetter(key: EffectAddress): Promise<DeadLetter | undefined>;
  dropDeadLetters(keys: readonly EffectAddress[]): Promise<void>;

  /** Keeps the last heartbeat of each effect: a later attempt, or the same at a later time, takes the place of what is there. Closed runs keep none. */
  saveHeartbeats(heartbeats: readonly (Heartbeat & RunAddress)[]): Promise<void>;
  /** Those of a run, by effect. */
  readHeartbeats(key: RunAddress): Promise<readonly Heartbeat[]>;
  dropHeartbeats(keys: readonly EffectAddress[]): Promise<void>;
  /** Removes those older than `before` (milliseconds since the epoch). */
  expireHeartbeats(before: number): Promise<void>;

  /** Keeps the first outcome of an effect, and says which that is. */
  saveStepOutcome(outcome: StepOutcome & RunAddress): Promise<{ readonly won: boolean; readonly outcome: string | null }>;
  /** Absent where the store has no transactions to give to others. */
  readonly transactions?: StepTransactions;
  /** Those of a run, by effect. */
  readStepOutcomes(key: RunAddress): Promise<readonly StepOutcome[]>;
  /** Removes those older than `before` (milliseconds since the epoch) of runs that are closed or gone, a bounded number at a time. */
  expireStepOutcomes(before: number): Promise<void>;

  /** The open instance of an id, else its newest closed run. `shard`: as in `RunAddress`. */
  findInstance(tenant: string, id: string, shard?: number): Promise<InstanceRow | undefined>;
  getInstance(key: RunAddress): Promise<InstanceRow | undefined>;
  /** `shard`: of a run that has the key, if any has: it is looked for there first. */
  findStartKey(tenant: string, workflow: string, key: string, shard?: number): Promise<{ run: string; digest: string } | undefined>;
  /** Rows and whole histories of many runs in one round trip; unknown runs are left out. */
  loadInstances(keys: readonly RunAddress[]): Promise<readonly LoadedInstance[]>;
  /** Turns that hold events of number `fromSeq` or higher, in order, at most `limit` turns. */
  readHistory(key: RunAddress, fromSeq: number, limit: number): Promise<readonly HistoryRow[]>;
  /** The last turn of a run, which holds its outcome when it is closed. */
  readLastTurn(key: RunAddress): Promise<HistoryRow | undefined>;
  /** Newest first (by run). `after` is the run after which to go on. */
  listInstances(tenant: string, filter: ListFilter, page: { after?: string; limit: number }): Promise<readonly InstanceRow[]>;

  /** Open runs with `busy`, or parked ones, of the shards, by run; `after` is the run after which to go on. */
  listRunnable(
    shards: readonly number[],
    which: "busy" | "parked",
    page: { after?: InstanceKey; limit: number },
  ): Promise<readonly InstanceRow[]>;
  /**
   * Messages of the shards in the order in which they were posted; `after` is the `position` after which to go on. It pages through one sweep; a later
   * sweep begins anew, for a message may become visible after others with higher positions.
   */
  listInbox(
    shards: readonly number[],
    page: { after?: number; limit: number },
  ): Promise<readonly (InboxMessage & { readonly position: number })[]>;
  /** Messages of one run in the order in which they were posted; `after` is the `position` after which to go on. */
  readInbox(key: RunAddress, page: { after?: number; limit: number }): Promise<readonly (InboxMessage & { readonly position: number })[]>;
  /** Timers of the shards due at `until` or before, earliest first (ties: run, effect). */
  listTimers(shards: readonly number[], until: number, limit: number): Promise<readonly TimerRow[]>;

  /** Turns that never ended, recorded by the watchdog: how often per run and tail. */
  listStrikes(): Promise<
    readonly (InstanceKey & {
      readonly tail: number;
      readonly workflow: string;
      readonly count: number;
    })[]
  >;
  /** How the watchdog thread, which cannot use this object, records a strike: a value that crosses threads. */
  readonly strikes: StrikeSink;
  clearStrikes(key: InstanceKey): Promise<void>;

  /** Task queues. */
  readonly tasks: TaskStore;

  /** Given when applications can write into the same database in transactions of their own. */
  readonly requests?: AppRequests | undefined;

  /** Absent where nobody else can be told. */
  readonly hints?: Hints | undefined;
  /**
   * Says what a node uses and wants of limits, and what it may use from now on, until `lease` milliseconds after the ask. Each limit is asked for once;
   * undefined where its database does not answer.
   */
  exchangePermits(owner: string, lease: number, asks: readonly PermitAsk[]): Promise<readonly (PermitGrant | undefined)[]>;
  /** Gives up all that these owners hold. */
  releasePermits(owners: readonly string[]): Promise<void>;
  /** Who holds permits, or wants some. */
  listPermitOwners(): Promise<readonly string[]>;
  /** Takes as many tokens of each limit as there are, up to what is wanted. */
  takeTokens(asks: readonly TokenAsk[]): Promise<readonly TokenGrant[]>;
  /** Keeps runs that wait for their turn, and admits those whose turn has come. Says which runs were told something. */
  admit(asks: readonly AdmissionAsk[]): Promise<readonly Told[]>;
  /** Frees a start key, if it is that of the run. */
  dropStartKey(tenant: string, workflow: string, key: string, run: string): Promise<void>;
  /** Removes what is left of limits that nobody has asked for in a while. */
  expireLimits(): Promise<void>;

  /** Removes start keys older than `before` (milliseconds since the epoch). */
  expireStartKeys(before: number): Promise<void>;

  /** Resolves when the database answers. */
  ping(): Promise<void>;
  /** Waits for statements under way, then closes; later calls reject with `StoreUnavailableError`. */
  close(): Promise<void>;
}

export type StrikeSink =
  | { readonly kind: "none" }
  | { readonly kind: "file"; readonly path: string }
  | { readonly kind: "postgres"; readonly url: string };

export type StoreOptions = {
  /** Milliseconds since the epoch; for providers without a clock of their own. */
  readonly now: () => number;
  readonly log: StoreLog;
};

export type StoreLog = {
  info(message: string, data?: object): void;
  warn(message: string, data?: object): void;
};

/** What `memoryStore()`, `pgliteStore()` and `postgresStore()` return: opened once by the orchestrator. */
export interface StoreProvider {
  readonly kind: string;
  /** Where the data is, for messages; never a password. */
  readonly label?: string | undefined;
  /** Whether others can reach the same data while it is open. Opening an exclusive store removes all nodes that were in it. */
  readonly shared: boolean;
  open(options: StoreOptions): Promise<Store>;
}
