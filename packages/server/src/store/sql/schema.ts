/**
 * The tables of the SQL stores, all in the Postgres schema `wovyr`.
 *
 * 1. Times of the engine are milliseconds since the epoch as `bigint`; only leases, which the database's own clock judges, are timestamps.
 * 2. Texts compare by code point (`collate "C"`).
 * 3. The row of an instance is narrow, and no index covers a column that changes at every turn, so that an update rewrites no index.
 */
import { sql } from "drizzle-orm";
import {
  bigint,
  bigserial,
  boolean,
  customType,
  index,
  integer,
  jsonb,
  pgSchema,
  primaryKey,
  timestamp,
  uniqueIndex,
} from "drizzle-orm/pg-core";

const text = customType<{ data: string }>({
  dataType: () => 'text collate "C"',
});
const milliseconds = (name: string) => bigint(name, { mode: "number" });

export const wovyr = pgSchema("wovyr");

export const groups = wovyr.table("groups", {
  name: text("name").primaryKey(),
  /** The number of the group's first shard; its shards are consecutive. */
  first: integer("first").notNull(),
  shards: integer("shards").notNull(),
});

export const shards = wovyr.table("shards", {
  id: integer("id").primaryKey(),
  group: text("group").notNull(),
  epoch: bigint("epoch", { mode: "number" }).notNull(),
  owner: text("owner"),
  /** The workflow for which it was given up last. */
  needs: text("needs"),
});

export const nodes = wovyr.table(
  "nodes",
  {
    group: text("group").notNull(),
    node: text("node").notNull(),
    url: text("url"),
    release: text("release").notNull(),
    /** A list of texts, as the commit takes them. */
    workflows: text("workflows").notNull(),
    draining: boolean("draining").notNull(),
    leaseUntil: timestamp("lease_until", { withTimezone: true }).notNull(),
  },
  (table) => [primaryKey({ name: "nodes_pk", columns: [table.group, table.node] })],
);

export const instances = wovyr.table(
  "instances",
  {
    createdAt: milliseconds("created_at").notNull(),
    closedAt: milliseconds("closed_at"),
    shard: integer("shard").notNull(),
    tail: integer("tail").notNull(),
    busy: boolean("busy").notNull(),
    tenant: text("tenant").notNull(),
    run: text("run").notNull(),
    id: text("id").notNull(),
    workflow: text("workflow").notNull(),
    version: text("version").notNull(),
    status: text("status").notNull(),
    /** Of the last turn. */
    nonce: text("nonce").notNull(),
    /** JSON of a `ParentLink`. */
    parent: text("parent"),
    correlationId: text("correlation_id"),
    /** JSON of a `RunOrigin`. */
    origin: text("origin"),
  },
  (table) => [
    primaryKey({ name: "instances_pk", columns: [table.tenant, table.run] }),
    uniqueIndex("instances_open").on(table.tenant, table.id).where(sql`${table.closedAt} is null`),
    index("instances_closed").on(table.tenant, table.id, table.run).where(sql`${table.closedAt} is not null`),
    index("instances_busy").on(table.shard, table.run, table.tenant).where(sql`${table.busy}`),
    index("instances_parked").on(table.shard, table.run, table.tenant).where(sql`${table.status} = 'parked'`),
  ],
);

export const history = wovyr.table(
  "history",
  {
    at: milliseconds("at").notNull(),
    seq: integer("seq").notNull(),
    count: integer("count").notNull(),
    tenant: text("tenant").notNull(),
    run: text("run").notNull(),
    node: text("node").notNull(),
    /** JSON of the turn's events. */
    events: text("events").notNull(),
  },
  (table) => [
    primaryKey({
      name: "history_pk",
      columns: [table.tenant, table.run, table.seq],
    }),
  ],
);

export const timers = wovyr.table(
  "timers",
  {
    due: milliseconds("due").notNull(),
    shard: integer("shard").notNull(),
    tenant: text("tenant").notNull(),
    run: text("run").notNull(),
    effect: text("effect").notNull(),
  },
  (table) => [
    primaryKey({
      name: "timers_pk",
      columns: [table.tenant, table.run, table.effect],
    }),
    index("timers_due").on(table.shard, table.due),
  ],
);

export const inbox = wovyr.table(
  "inbox",
  {
    position: bigserial("position", { mode: "number" }).notNull(),
    shard: integer("shard").notNull(),
    tenant: text("tenant").notNull(),
    run: text("run").notNull(),
    message: text("message").notNull(),
    /** JSON of an incoming fact. */
    fact: text("fact").notNull(),
  },
  (table) => [
    primaryKey({
      name: "inbox_pk",
      columns: [table.tenant, table.run, table.message],
    }),
    index("inbox_posted").on(table.shard, table.position),
  ],
);

export const startKeys = wovyr.table(
  "start_keys",
  {
    at: milliseconds("at").notNull(),
    tenant: text("tenant").notNull(),
    /** Digest of workflow and key, which may be too long for an index together. */
    slot: text("slot").notNull(),
    run: text("run").notNull(),
    /** Of the request that came with the key. */
    digest: text("digest").notNull(),
  },
  (table) => [primaryKey({ name: "start_keys_pk", columns: [table.tenant, table.slot] }), index("start_keys_at").on(table.at)],
);

export const instanceAttributes = wovyr.table(
  "instance_attributes",
  {
    tenant: text("tenant").notNull(),
    run: text("run").notNull(),
    attributes: jsonb("attributes").notNull(),
  },
  (table) => [
    primaryKey({
      name: "instance_attributes_pk",
      columns: [table.tenant, table.run],
    }),
    index("instance_attributes_search").using("gin", sql`${table.attributes} jsonb_path_ops`),
  ],
);

/** Turns that never ended, recorded by the watchdog. */
export const strikes = wovyr.table(
  "strikes",
  {
    tenant: text("tenant").notNull(),
    run: text("run").notNull(),
    tail: integer("tail").notNull(),
    workflow: text("workflow").notNull(),
    count: integer("count").notNull(),
  },
  (table) => [
    primaryKey({
      name: "strikes_pk",
      columns: [table.tenant, table.run, table.tail],
    }),
  ],
);

/** What a run waits for: publications of a name, with this key or (null) without any. */
export const waits = wovyr.table(
  "waits",
  {
    shard: integer("shard").notNull(),
    tenant: text("tenant").notNull(),
    run: text("run").notNull(),
    effect: text("effect").notNull(),
    name: text("name").notNull(),
    key: text("key"),
    /** Digest of name and key, which may be too long for an index together. */
    topic: text("topic").notNull(),
  },
  (table) => [
    primaryKey({ name: "waits_pk", columns: [table.tenant, table.run, table.effect] }),
    index("waits_topic").on(table.tenant, table.topic, table.run),
  ],
);

export const publications = wovyr.table(
  "publications",
  {
    position: bigserial("position", { mode: "number" }).notNull(),
    at: milliseconds("at").notNull(),
    /** How many runs waited for it. */
    reached: integer("reached").notNull().default(0),
    tenant: text("tenant").notNull(),
    id: text("id").notNull(),
    name: text("name").notNull(),
    key: text("key"),
    topic: text("topic").notNull(),
    /** Of the request that came with the id. */
    digest: text("digest").notNull(),
    /** JSON of the fact that receivers get, without its position. */
    fact: text("fact").notNull(),
  },
  (table) => [
    primaryKey({ name: "publications_pk", columns: [table.tenant, table.id] }),
    index("publications_topic").on(table.tenant, table.topic, table.position),
    index("publications_at").on(table.at),
  ],
);

/** Work that was given up. */
export const deadLetters = wovyr.table(
  "dead_letters",
  {
    at: milliseconds("at").notNull(),
    attempts: integer("attempts").notNull(),
    tenant: text("tenant").notNull(),
    run: text("run").notNull(),
    effect: text("effect").notNull(),
    kind: text("kind").notNull(),
    workflow: text("workflow").notNull(),
    /** Of the instance. */
    id: text("id").notNull(),
    name: text("name").notNull(),
    /** JSON of a failure. */
    failure: text("failure").notNull(),
  },
  (table) => [
    primaryKey({ name: "dead_letters_pk", columns: [table.tenant, table.run, table.effect] }),
    index("dead_letters_at").on(table.tenant, table.at, table.run, table.effect),
  ],
);

/** The last heartbeat of an effect. No index covers its time, so that a heartbeat rewrites none. */
export const heartbeats = wovyr.table(
  "heartbeats",
  {
    at: milliseconds("at").notNull(),
    attempt: integer("attempt").notNull(),
    tenant: text("tenant").notNull(),
    run: text("run").notNull(),
    effect: text("effect").notNull(),
    details: text("details").notNull(),
  },
  (table) => [primaryKey({ name: "heartbeats_pk", columns: [table.tenant, table.run, table.effect] })],
);

/** What became of transactional steps; written in the transactions of their authors (step-outcomes.ts). */
export const stepOutcomes = wovyr.table(
  "step_outcomes",
  {
    at: milliseconds("at").notNull(),
    tenant: text("tenant").notNull(),
    run: text("run").notNull(),
    effect: text("effect").notNull(),
    /** Null: given up. */
    outcome: text("outcome"),
  },
  (table) => [
    primaryKey({ name: "step_outcomes_pk", columns: [table.tenant, table.run, table.effect] }),
    index("step_outcomes_at").on(table.at),
  ],
);

/** What applications asked for in transactions of their own; a row goes when it is done (engine/requests.ts). */
export const requests = wovyr.table(
  "requests",
  {
    position: bigserial("position", { mode: "number" }).notNull(),
    shard: integer("shard").notNull(),
    tenant: text("tenant").notNull(),
    /** Empty for a publication. */
    run: text("run").notNull(),
    /** The name of the message that it becomes. */
    message: text("message").notNull(),
    kind: text("kind").notNull(),
    /** Tells whether another request of this name is the same. */
    digest: text("digest").notNull(),
    /** JSON of an incoming fact; empty for a start, whose fact is in the inbox of the run. */
    fact: text("fact").notNull(),
  },
  (table) => [
    primaryKey({ name: "requests_pk", columns: [table.tenant, table.run, table.message] }),
    index("requests_asked").on(table.shard, table.position),
  ],
);

/** Attempts of activities that workers in other processes make (engine/ports/tasks.ts). */
export const tasks = wovyr.table(
  "tasks",
  {
    position: bigserial("position", { mode: "number" }).notNull(),
    /** When somebody has to look at it. */
    due: milliseconds("due"),
    startBy: milliseconds("start_by"),
    closeBy: milliseconds("close_by"),
    leaseUntil: milliseconds("lease_until"),
    runUntil: milliseconds("run_until"),
    beatUntil: milliseconds("beat_until"),
    runWithin: milliseconds("run_within"),
    beatWithin: milliseconds("beat_within"),
    /** Since when it waits, or waited. */
    since: milliseconds("since").notNull(),
    shard: integer("shard").notNull(),
    priority: integer("priority").notNull(),
    attempt: integer("attempt").notNull(),
    losses: integer("losses").notNull(),
    /** `waiting`, `leased` or `ended`. */
    state: text("state").notNull(),
    tenant: text("tenant").notNull(),
    run: text("run").notNull(),
    effect: text("effect").notNull(),
    queue: text("queue").notNull(),
    /** Of the activity. */
    name: text("name").notNull(),
    /** Labels, separated by spaces. */
    requires: text("requires").notNull(),
    /** Of the present lease. */
    token: text("token"),
    worker: text("worker").notNull(),
    /** Why it is nobody's any more. */
    ended: text("ended"),
    /** JSON: what else the worker and the owner of the run are to know. */
    about: text("about").notNull(),
    details: text("details"),
    input: text("input").notNull(),
  },
  (table) => [
    primaryKey({ name: "tasks_pk", columns: [table.tenant, table.run, table.effect] }),
    index("tasks_waiting").on(table.queue, table.priority, table.tenant, table.position).where(sql`${table.state} = 'waiting'`),
    uniqueIndex("tasks_token").on(table.token).where(sql`${table.token} is not null`),
    index("tasks_due").on(table.due).where(sql`${table.due} is not null`),
  ],
);

/** Tokens of tasks whose outcome was taken, so that it is known when it is said again. */
export const settledTasks = wovyr.table(
  "settled_tasks",
  {
    at: milliseconds("at").notNull(),
    token: text("token").notNull(),
    digest: text("digest").notNull(),
  },
  (table) => [primaryKey({ name: "settled_tasks_pk", columns: [table.token] }), index("settled_tasks_at").on(table.at)],
);

/** Workers as they told of themselves last. */
export const workers = wovyr.table(
  "workers",
  {
    seenAt: milliseconds("seen_at").notNull(),
    until: milliseconds("until").notNull(),
    id: text("id").notNull(),
    /** Queues, separated by spaces. */
    takes: text("takes").notNull(),
    /** JSON (engine/workers.ts). */
    about: text("about").notNull(),
  },
  (table) => [primaryKey({ name: "workers_pk", columns: [table.id] })],
);

/** What each node holds of each limit on how much runs at once (policies). */
export const permits = wovyr.table(
  "permits",
  {
    held: integer("held").notNull(),
    inUse: integer("in_use").notNull(),
    wanted: integer("wanted").notNull(),
    /** Uses that the node is to end: those that it has yet to be told of, and those that it was told of last. */
    evict: integer("evict").notNull(),
    told: integer("told").notNull(),
    /** When its longest use began. */
    oldest: milliseconds("oldest").notNull(),
    /** Since when it waits for more. */
    since: timestamp("since", { withTimezone: true }),
    leaseUntil: timestamp("lease_until", { withTimezone: true }).notNull(),
    tenant: text("tenant").notNull(),
    name: text("name").notNull(),
    owner: text("owner").notNull(),
  },
  (table) => [primaryKey({ name: "permits_pk", columns: [table.tenant, table.name, table.owner] }), index("permits_owner").on(table.owner)],
);

/** Runs of limited workflows that wait for their turn, and those that have been admitted. */
export const admissions = wovyr.table(
  "admissions",
  {
    position: bigserial("position", { mode: "number" }).notNull(),
    shard: integer("shard").notNull(),
    admitted: boolean("admitted").notNull(),
    /** Whether it was told to make room for a newer one. */
    superseded: boolean("superseded").notNull(),
    tenant: text("tenant").notNull(),
    name: text("name").notNull(),
    run: text("run").notNull(),
  },
  (table) => [
    primaryKey({ name: "admissions_pk", columns: [table.tenant, table.name, table.run] }),
    index("admissions_order").on(table.tenant, table.name, table.admitted, table.position),
  ],
);

/** Tokens of rate limits that were granted, by the part of a window in which that was. */
export const tokens = wovyr.table(
  "tokens",
  {
    part: bigint("part", { mode: "number" }).notNull(),
    expiresAt: milliseconds("expires_at").notNull(),
    count: integer("count").notNull(),
    tenant: text("tenant").notNull(),
    name: text("name").notNull(),
  },
  (table) => [primaryKey({ name: "tokens_pk", columns: [table.tenant, table.name, table.part] })],
);

/** Of which set of databases this one is; no row when it is used by itself. */
export const databaseSets = wovyr.table("database_sets", {
  id: text("id").primaryKey(),
  /** Which of them it is, from 0 on. */
  place: integer("place").notNull(),
  size: integer("size").notNull(),
});

/** What turns, and publications, say to runs of other databases, until it was brought there. */
export const outbox = wovyr.table(
  "outbox",
  {
    position: bigserial("position", { mode: "number" }).notNull(),
    /** Of the sender; -1 of a publication. */
    shard: integer("shard").notNull(),
    /** The place of the database that it is for. */
    target: integer("target").notNull(),
    /** The sender. */
    tenant: text("tenant").notNull(),
    run: text("run").notNull(),
    name: text("name").notNull(),
    /** JSON of a `Parcel`. */
    parcel: text("parcel").notNull(),
  },
  (table) => [
    primaryKey({ name: "outbox_pk", columns: [table.tenant, table.run, table.name, table.target] }),
    index("outbox_order").on(table.target, table.shard, table.position),
  ],
);
