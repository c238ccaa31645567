/**
 * Where a shard is: on this node, on another one, or nowhere at present.
 *
 * 1. What is here may be acted on: this node owns it, its lease runs, and it is not about to hand it over. What is elsewhere is hearsay, as old as the last beat.
 * 2. Whoever waits for another node is told when the shard is not that node's any more.
 */
import { ApiError } from "@wovyr/sdk";
import { Departure } from "./departure.ts";
import type { Member, Members } from "./members.ts";
import type { Ownership } from "./ownership.ts";
import { reasonOf } from "./ownership-errors.ts";
import { atMost } from "./pause.ts";
import type { Clock } from "./ports/clock.ts";
import type { EngineLog } from "./ports/log.ts";
import { StrangeAnswer } from "./ports/peers.ts";

export type Place =
  /** `epoch` tells one term of ownership from another. */
  { readonly kind: "here"; readonly epoch: number } | { readonly kind: "there"; readonly owner: Member } | { readonly kind: "nowhere" };

type Tenure = { readonly name: string; readonly departure: Departure };

const mostComplaints = 100;
/** Milliseconds. */
const longestLook = 1_000;
/** A node that has just come does not listen yet. */
const arrival = 10_000;
/** By how much the end of a node's lease has moved when it was surely renewed, in milliseconds. */
const livedOn = 1_500;
const nowhere: Place = { kind: "nowhere" };

export class Placement {
  readonly #isClosing: (shard: number) => boolean;
  readonly #clock: Clock;
  readonly #log: EngineLog;
  readonly #complaints = new Set<string>();
  readonly #self: string;
  readonly #ownership: Ownership;
  readonly #members: Members;
  readonly #tenures = new Map<number, Tenure>();
  readonly #departures = new Map<string, Departure>();
  /** Nodes that did not answer, with the end of their lease when that was found. */
  readonly #silent = new Map<string, { readonly leaseUntil: number; readonly error: ApiError }>();
  /** Calls to other nodes that are under way. */
  forwarding = 0;

  /** A shard that was this node's when one was looked for last. */
  #own = 0;

  /** `isClosing`: whether this node is about to hand a shard over. */
  constructor(
    self: string,
    ownership: Ownership,
    isClosing: (shard: number) => boolean,
    { clock, log }: { readonly clock: Clock; readonly log: EngineLog },
  ) {
    this.#clock = clock;
    this.#isClosing = isClosing;
    this.#log = log;
    this.#self = self;
    this.#ownership = ownership;
    this.#members = ownership.members;
    this.#members.listen(() => this.#moved());
  }

  of(shard: number): Place {
    const epoch = this.#ownership.epochOf(shard);
    if (epoch !== undefined) return this.#ownership.holds && !this.#isClosing(shard) ? { kind: "here", epoch } : nowhere;
    const owner = this.#members.ownerOf(shard);
    return owner === undefined || owner.node === this.#self ? nowhere : { kind: "there", owner };
  }

  /** Where something new can be begun whose shard is free to choose. */
  forNew(): Place {
    const known = this.of(this.#own);
    if (known.kind === "here") return known;
    for (const shard of this.#ownership.shards) {
      const place = this.of(shard);
      if (place.kind !== "here") continue;
      this.#own = shard;
      return place;
    }
    const owner = this.#members.all.find(({ node, shards, draining }) => node !== this.#self && shards.length > 0 && !draining);
    return owner === undefined ? nowhere : { kind: "there", owner };
  }

  /** Nodes that can be asked for a workflow that is not registered here. */
  thatHave(workflow: string, version: string | undefined): readonly Member[] {
    return this.#members.thatHave(workflow, version);
  }

  /** When a shard is found not to be this owner's any more. */
  tenure(shard: number, owner: Member): Departure {
    const known = this.#tenures.get(shard);
    if (known?.name === owner.node) return known.departure;
    known?.departure.end();
    const departure = new Departure();
    this.#tenures.set(shard, { name: owner.node, departure });
    return departure;
  }

  /** When a node is found to be gone. */
  departure({ node }: Member): Departure {
    const departure = this.#departures.get(node) ?? new Departure();
    this.#departures.set(node, departure);
    return departure;
  }

  /** Asks the store now who owns what; resolves when it has answered, or after a while. */
  async refresh(): Promise<void> {
    await atMost(this.#clock, longestLook, this.#ownership.verify());
  }

  /** Somebody has to look after the configuration of the cluster, or of a node: it is logged once. */
  complain(message: string, about?: Member, subject = message): void {
    if (about !== undefined && about.url === undefined && this.#clock.now() - about.since < arrival) return;
    if (this.#isNew(subject))
      this.#log.error(`nodes of this cluster cannot ask each other; messages reach their runs through the store meanwhile: ${message}`);
  }

  #isNew(subject: string): boolean {
    if (this.#complaints.has(subject) || this.#complaints.size >= mostComplaints) return false;
    this.#complaints.add(subject);
    return true;
  }

  answered({ node }: Member): void {
    this.#silent.delete(node);
  }

  /** Whether it was asked in vain, and has not answered since. */
  isSilent({ node }: Member): boolean {
    return this.#silent.has(node);
  }

  /**
   * A node was asked in vain. Once it is known to have lived on all the same, that is logged, once for each address of a node: when somebody else answers
   * there, and when it is asked in vain again.
   */
  unanswered({ node, leaseUntil }: Member, error: unknown): void {
    if (!(error instanceof ApiError) || error.code !== "UNREACHABLE") return;
    const before = this.#silent.get(node);
    this.#silent.set(node, { leaseUntil: before?.leaseUntil ?? leaseUntil, error });
    if (before !== undefined) this.#judge(node, error);
  }

  #judge(node: string, error: ApiError): void {
    const known = this.#silent.get(node);
    const member = this.#members.all.find((each) => each.node === node);
    if (known === undefined || member === undefined || member.leaseUntil - known.leaseUntil < livedOn) return;
    const { url = "" } = member;
    if ((error.cause as Error | undefined)?.name !== "TimeoutError")
      this.complain(
        `node ${node} is not reached at ${url}, though it lives: ${reasonOf(error)}; check its \`cluster.url\`, and the network between them`,
        member,
        `${node} ${url}`,
      );
    else if (this.#isNew(`${node} ${url} in time`))
      this.#log.warn(
        `node ${node} lives and gives no answer in time at ${url}; messages reach its runs through the store meanwhile: either of the two has more to do than it manages, or the network between them swallows what they say`,
      );
  }

  #moved(): void {
    for (const [shard, { name, departure }] of this.#tenures) {
      if (this.#members.ownerOf(shard)?.node === name) continue;
      this.#tenures.delete(shard);
      departure.end();
    }
    if (this.#departures.size === 0 && this.#silent.size === 0) return;
    const present = new Set(this.#members.all.map(({ node }) => node));
    for (const [node, { error }] of this.#silent) {
      if (!present.has(node)) this.#silent.delete(node);
      else if (error.cause instanceof StrangeAnswer) this.#judge(node, error);
    }
    for (const [node, departure] of this.#departures) {
      if (present.has(node)) continue;
      this.#departures.delete(node);
      departure.end();
    }
  }
}
