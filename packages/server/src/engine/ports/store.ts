/**
 * What the engine asks of a database. Every provider passes the contract suite (`@wovyr/server/store-contract`).
 *
 * 1. `commit` is atomic per turn: all that a `TurnWrite` carries becomes durable, or none of it. A flush is not a transaction of all its turns:
 *    one that is refused takes no other with it.
 * 2. A turn is refused unless its shard is owned with exactly the given epoch, its run is open and its tail exactly the given one, and its id (of a
 *    new instance) is not held by an open instance of the tenant. The three checks and the write are one statement.
 * 3. A turn that `commit` reports done is durable. When `commit` rejects with `StoreUnavailableError`, the outcome is unknown: it may even become
 *    durable later.
 * 4. Nothing is read or written without its tenant, but for the sweeps of an owner over its shards, whose rows carry it.
 * 5. Methods reject with `StoreUnavailableError` when the database cannot be reached or asks to come again (connection lost, restarting, read-only,
 *    deadlock, serialization); any other rejection is permanent for these very values.
 */
import { WovyrError } from "@wovyr/sdk";
import type { ClosedStatus, ParentLink } from "@wovyr/sdk/internal";

export class StoreUnavailableError extends WovyrError {
  constructor(message: string, options: ErrorOptions = {}) {
    super(message, { code: "STORE_UNAVAILABLE", ...options });
  }
}

/** What of an instance's state is stored and indexed; the rest is derived from history. */
export type StoredStatus = "open" | "parked" | ClosedStatus;

export type InstanceKey = { readonly tenant: string; readonly run: string };

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
  /** Messages of this run's inbox that the turn applied. A closing turn removes all of the run's messages by itself. */
  readonly consumed: readonly string[];
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
};

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
  readonly attributes: Attributes;
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

export type TimerRow = {
  readonly tenant: string;
  readonly run: string;
  readonly shard: number;
  readonly effect: string;
  readonly due: number;
};

export type ClaimRequest = {
  readonly group: string;
  /** How many shards the group has; refused when it was created with another number. */
  readonly shards: number;
  readonly owner: string;
  /** Milliseconds. */
  readonly lease: number;
  /** Owners that are known to be dead: their shards are taken before the lease runs out. */
  readonly dead?: readonly string[];
};

export type Claim = {
  /** Granted shards with their new epochs. Shard numbers are unique over all groups; those of a group (granted and held together) are consecutive. */
  readonly granted: readonly ShardEpoch[];
  /** Shards that another owner's lease still covers. */
  readonly held: readonly {
    readonly shard: number;
    readonly owner: string;
    readonly remaining: number;
  }[];
};

export type ListFilter = {
  /** Only runs of this instance. */
  readonly id?: string;
  readonly workflow?: string;
  readonly statuses?: readonly StoredStatus[];
  readonly attributes?: Readonly<Record<string, string | number | boolean>>;
  /** Milliseconds since the epoch, exclusive. */
  readonly startedAfter?: number;
  readonly startedBefore?: number;
};

export interface Store {
  readonly kind: string;

  /** Claims every shard of the group that is free, expired by the database's clock, already the owner's, or of a dead owner; raises their epochs. */
  claimShards(request: ClaimRequest): Promise<Claim>;
  /** Prolongs the lease of the owner's shards; returns those that it still owns with the given epoch. */
  renewShards(owner: string, shards: readonly ShardEpoch[], lease: number): Promise<readonly ShardEpoch[]>;
  /** Gives the owner's shards up at once; their epochs stay. */
  releaseShards(owner: string, shards: readonly ShardEpoch[]): Promise<void>;

  commit(flush: Flush): Promise<FlushOutcome>;
  /** Makes facts for runs durable without owning their shards; known ones (run and message) are left as they are. */
  post(messages: readonly InboxMessage[]): Promise<void>;
  /** Removes messages without a turn (their run is closed or gone). */
  drop(messages: readonly (InstanceKey & { readonly message: string })[]): Promise<void>;

  /** The open instance of an id, else its newest closed run. */
  findInstance(tenant: string, id: string): Promise<InstanceRow | undefined>;
  getInstance(key: InstanceKey): Promise<InstanceRow | undefined>;
  findStartKey(tenant: string, workflow: string, key: string): Promise<{ run: string; digest: string } | undefined>;
  /** Rows and whole histories of many runs in one round trip; unknown runs are left out. */
  loadInstances(keys: readonly InstanceKey[]): Promise<readonly LoadedInstance[]>;
  /** Turns that hold events of number `fromSeq` or higher, in order, at most `limit` turns. */
  readHistory(key: InstanceKey, fromSeq: number, limit: number): Promise<readonly HistoryRow[]>;
  /** The last turn of a run, which holds its outcome when it is closed. */
  readLastTurn(key: InstanceKey): Promise<HistoryRow | undefined>;
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
  /** Whether other processes can reach the same data (then ownership is by lease); an exclusive store is owned at once. */
  readonly shared: boolean;
  open(options: StoreOptions): Promise<Store>;
}
