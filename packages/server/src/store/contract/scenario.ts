/** What the tests of the contract build their cases from: a group and a tenant of their own in a store that they share. */
import type {
  Beat,
  DeadLetterWrite,
  InboxMessage,
  Membership,
  NewInstance,
  Publication,
  ShardEpoch,
  Store,
  TurnWrite,
} from "../../engine/ports/store.ts";

let last = 0;

/** A name that no other case of this process uses; later ones are greater. */
export function unique(prefix: string): string {
  last += 1;
  return `${prefix}${process.pid.toString(36)}-${last.toString().padStart(8, "0")}`;
}

export type Scenario = {
  readonly store: Store;
  readonly tenant: string;
  readonly group: string;
  readonly owner: string;
  readonly fence: readonly ShardEpoch[];
  /** The numbers of the group's shards; over several databases, of those in the tenant's. */
  readonly shards: readonly number[];
  /** How many shards the group has. */
  readonly size: number;
};

const hour = 3_600_000;

export async function scenario(store: Store, shardCount = 2): Promise<Scenario> {
  const group = unique("group-");
  const owner = unique("owner-");
  const tenant = unique("tenant-");
  const size = shardCount * (store.databases?.count ?? 1);
  const { granted } = await claim({ store, group, size, tenant }, owner);
  return { store, tenant, group, owner, fence: granted, shards: granted.map(({ shard }) => shard), size };
}

/** The same, with all shards of the group, in whichever databases. */
export async function wholeGroup(store: Store, size = 2): Promise<Scenario & { readonly isWhole: true }> {
  const group = unique("group-");
  const owner = unique("owner-");
  const { granted } = await claim({ store, group, size }, owner);
  return { store, tenant: unique("tenant-"), group, owner, fence: granted, shards: granted.map(({ shard }) => shard), size, isWhole: true };
}

/** What a single database does at once, several do by and by: each case keeps to one of them. */
const isOfTenant = ({ databases }: Store, tenant: string, shard: number): boolean =>
  databases === undefined || databases.placeOf(shard) === databases.homeOf(tenant);

type Group = Pick<Scenario, "store" | "group" | "size"> & { readonly tenant?: string; readonly isWhole?: true };

/** A node says that it lives. */
export function beat({ store, group, size }: Group, node: string, details: Partial<Beat> = {}): Promise<Membership> {
  return store.beat({
    group,
    shards: size,
    node,
    release: "1",
    workflows: [],
    draining: false,
    lease: hour,
    give: [],
    take: [],
    ...details,
  });
}

/** Takes what nobody owns: `granted` is what the node owns then, `held` what others do. */
export async function claim(at: Group, owner: string, details: Partial<Beat> = {}) {
  const { shards: all } = await beat(at, owner, { take: "free", ...details });
  const { store, tenant, isWhole } = at;
  const shards = tenant === undefined || isWhole ? all : all.filter(({ shard }) => isOfTenant(store, tenant, shard));
  return {
    granted: shards.filter((each) => each.owner === owner).map(({ shard, epoch }): ShardEpoch => ({ shard, epoch })),
    held: shards.filter((each) => each.owner !== owner),
  };
}

export function shard(at: Scenario, index = 0): number {
  return at.shards[index] as number;
}

export function instance(details: Partial<NewInstance> = {}): NewInstance {
  return { id: unique("id-"), workflow: "order", version: "1", ...details };
}

type TurnDetails = Partial<TurnWrite>;

/** The first turn of a new run. */
export function firstTurn(at: Scenario, details: TurnDetails = {}): TurnWrite {
  return { ...laterTurn(at, { run: unique("run-"), tail: 0 }), create: instance(), ...details };
}

/** A turn of a run that exists: two events after `tail`. */
export function laterTurn(at: Scenario, details: TurnDetails & { run: string; tail: number }): TurnWrite {
  return {
    tenant: at.tenant,
    shard: shard(at),
    count: 2,
    at: 1_000 + details.tail,
    node: "node",
    nonce: unique("nonce-"),
    events: `[{"tail":${details.tail}},{}]`,
    status: "open",
    busy: false,
    timers: [],
    timersDone: [],
    children: [],
    sends: [],
    consumed: [],
    waits: [],
    waitsDone: [],
    deadLetters: [],
    deadLettersDone: [],
    ...details,
  };
}

/** The turn after `turn`. */
export function next(at: Scenario, turn: TurnWrite, details: TurnDetails = {}): TurnWrite {
  return laterTurn(at, { run: turn.run, tail: turn.tail + turn.count, shard: turn.shard, tenant: turn.tenant, ...details });
}

export function message(at: Scenario, run: string, details: Partial<InboxMessage> = {}): InboxMessage {
  return { tenant: at.tenant, run, shard: shard(at), message: unique("message-"), fact: '{"type":"Resumed"}', ...details };
}

/** A publication, with a key unless `key` is undefined. */
export function publication(at: Scenario, details: Partial<Publication> = {}): Publication {
  const id = details.id ?? unique("publication-");
  return {
    tenant: at.tenant,
    id,
    name: "paid",
    digest: "d",
    fact: `{"type":"EventReceived","of":${JSON.stringify(id)}}`,
    at: 5_000,
    ...details,
  };
}

export function deadLetter(details: Partial<DeadLetterWrite> = {}): DeadLetterWrite {
  return { effect: unique("effect-"), kind: "activity", name: "charge", attempts: 3, failure: '{"message":"\\u0000 no"}', ...details };
}

export function child(at: Scenario, parent: TurnWrite, details: { id?: string; run?: string; startKey?: NewInstance["startKey"] } = {}) {
  const run = details.run ?? unique("run-");
  const id = details.id ?? unique("child-");
  return {
    run,
    shard: shard(at, at.shards.length - 1),
    instance: instance({
      id,
      parent: { tenant: parent.tenant, id: parent.create?.id ?? "parent", run: parent.run, effect: "1" },
      ...(details.startKey !== undefined && { startKey: details.startKey }),
    }),
    start: message(at, run, { shard: shard(at, at.shards.length - 1), fact: `{"start":${JSON.stringify(run)}}` }),
    rejection: message(at, parent.run, { shard: parent.shard, fact: `{"rejected":${JSON.stringify(run)}}` }),
  };
}

/** Commits turns under the scenario's fence and returns the runs that are done, in the order of the turns. */
export async function commit(at: Scenario, ...turns: readonly TurnWrite[]): Promise<readonly string[]> {
  const { done } = await at.store.commit({ fence: at.fence, turns });
  return turns.filter(({ run }) => done.has(run)).map(({ run }) => run);
}

/** Creates a run and returns its first turn. */
export async function start(at: Scenario, details: TurnDetails = {}): Promise<TurnWrite> {
  const turn = firstTurn(at, details);
  const done = await commit(at, turn);
  if (done.length !== 1) throw new Error(`the first turn of ${turn.run} was refused`);
  return turn;
}

/** The texts of a run's messages, in order. */
export async function inboxOf(at: Scenario, run: string): Promise<readonly string[]> {
  const messages = await at.store.listInbox(at.shards, { limit: 10_000 });
  return messages.filter((each) => each.tenant === at.tenant && each.run === run).map((each) => each.message);
}

export async function timersOf(at: Scenario, run: string): Promise<readonly (readonly [string, number])[]> {
  const timers = await at.store.listTimers(at.shards, Number.MAX_SAFE_INTEGER, 10_000);
  return timers.filter((each) => each.tenant === at.tenant && each.run === run).map(({ effect, due }) => [effect, due] as const);
}

export async function tailOf(at: Scenario, run: string): Promise<number | undefined> {
  return (await at.store.getInstance({ tenant: at.tenant, run }))?.tail;
}
