/**
 * One store over several databases: what the engine sees of it, and what each database offers for it.
 *
 * 1. Each shard has one database, for ever, and so has each run. What a turn says to runs of other databases (parcels) is written with the turn into the
 *    outbox of its own database, and brought over from there: to `receive` there, and out of the outbox only after that.
 * 2. Bringing a parcel twice is bringing it once. Parcels of one sender to one database are brought in the order in which they were written.
 * 3. Publications of a tenant are decided on in one database, which sends the others copies by its outbox, in their order.
 */
import type { ChildWrite, InboxMessage, InstanceKey, Publication, PublishOutcome, StoreUnavailableError } from "./store.ts";

/** Absent where there is one. */
export interface Databases {
  readonly count: number;
  /** The database of a shard, from 0 on. */
  placeOf(shard: number): number;
  /** Why the database of a shard does not answer at present; undefined when it does. */
  unavailable(shard: number): StoreUnavailableError | undefined;
  /** The database that decides on the publications of a tenant. */
  homeOf(tenant: string): number;
  /** Whether nothing is being brought from one to another at present. */
  readonly idle: boolean;
  /** `arrived` hears of what came from another database and lies in the inbox of its run now. Returns what ends it. */
  listen(arrived: (arrivals: readonly Arrival[]) => void): () => void;
}

/** A message, or (a publication, of which a run may have to hear older ones first) just the run whose inbox it is in. */
export type Arrival =
  | InboxMessage
  | { readonly tenant: string; readonly run: string; readonly shard: number; readonly message?: undefined };

/** What is on its way from one database to another. */
export type Parcel =
  /** Dropped where its run is closed or unknown. */
  | { readonly kind: "send"; readonly message: InboxMessage }
  /** A run to be created, with its start in its inbox, unless it was. */
  | { readonly kind: "child"; readonly tenant: string; readonly at: number; readonly child: ChildWrite }
  | { readonly kind: "publication"; readonly publication: Publication };

export type OutboxWrite = {
  /** Unique within the sender and the target. */
  readonly name: string;
  /** The database that it is for. */
  readonly target: number;
  readonly parcel: Parcel;
};

export type OutboxKey = InstanceKey & Pick<OutboxWrite, "name" | "target">;

/** `tenant` and `run` are the sender's. */
export type OutboxRow = OutboxKey & OutboxWrite & { readonly shard: number; readonly position: number };

/** The shard, and the run, of publications in an outbox: they are no run's. */
export const publicationShard = -1;
export const publicationRun = "";

/** `taken`: the id of the child is another run's. */
export type Received = "done" | "taken";

/** What a database knows of the others. */
export type SetMembership = {
  /** Of the set: drawn when it was made. */
  readonly id: string;
  /** Which of them it is, from 0 on. */
  readonly place: number;
  readonly size: number;
};

/** What a store offers that can be one of several. */
export interface StorePart {
  /** Tells it from others in messages: where it is, and never a password. */
  readonly label: string;
  /** Whether it holds a group of nodes already, and of which set it is. */
  inspect(): Promise<{ readonly used: boolean; readonly member: SetMembership | undefined }>;
  /** Makes it one of a set, unless it is one; says which it is of. Rejects when it is in use without being one. */
  join(member: SetMembership): Promise<SetMembership>;
  /** Where the shards of a group begin, and how many there are; a group that is unknown is made where `first` is given: a number, or `"next"`. */
  group(name: string, shards: number, first?: number | "next"): Promise<{ readonly first: number; readonly shards: number } | undefined>;
  /** As `Store.publish`; a publication that is new is put into the outbox for each of the targets. */
  publish(publication: Publication, targets: readonly number[]): Promise<PublishOutcome>;
  /** What is for a database, of senders of these shards: for each sender in the order of writing. `after` is the `position` after which to go on. */
  listOutbox(target: number, shards: readonly number[], page: { after?: number; limit: number }): Promise<readonly OutboxRow[]>;
  dropOutbox(keys: readonly OutboxKey[]): Promise<void>;
  /** Takes sends and children in, in order, in one transaction. */
  receive(parcels: readonly Exclude<Parcel, { kind: "publication" }>[]): Promise<readonly Received[]>;
}
