/** Which node holds how many permits of which limit. */
import { type PermitAsk, type PermitGrant, sharesOf } from "../../engine/ports/limits.ts";
import { compareText } from "../text-order.ts";

type Holding = {
  readonly owner: string;
  held: number;
  inUse: number;
  wanted: number;
  /** Since which ask it waits for more; undefined when it does not. */
  since: number | undefined;
  oldest: number;
  /** Uses that it is to end: those that it has yet to be told of, and those that it was told of last. */
  evict: number;
  told: number;
  leaseUntil: number;
};

const neverServed = Number.POSITIVE_INFINITY;

export class PermitTable {
  readonly #limits = new Map<string, Map<string, Holding>>();
  #asks = 0;

  exchange(owner: string, lease: number, asks: readonly PermitAsk[], now: number): PermitGrant[] {
    return asks.map((ask) => this.#ask(owner, lease, ask, now));
  }

  release(owners: readonly string[]): void {
    for (const [key, holdings] of this.#limits) {
      for (const owner of owners) holdings.delete(owner);
      if (holdings.size === 0) this.#limits.delete(key);
    }
  }

  owners(): string[] {
    const owners = new Set<string>();
    for (const holdings of this.#limits.values()) for (const owner of holdings.keys()) owners.add(owner);
    return [...owners].sort(compareText);
  }

  expire(now: number): void {
    for (const [key, holdings] of this.#limits) {
      dropExpired(holdings, now);
      if (holdings.size === 0) this.#limits.delete(key);
    }
  }

  #ask(owner: string, lease: number, ask: PermitAsk, now: number): PermitGrant {
    const key = JSON.stringify([ask.tenant, ask.name]);
    const holdings = this.#limits.get(key) ?? new Map<string, Holding>();
    this.#limits.set(key, holdings);
    dropExpired(holdings, now);
    this.#asks += 1;
    const before = holdings.get(owner);
    holdings.delete(owner);
    const others = [...holdings.values()];
    const own: Holding = {
      owner,
      held: 0,
      inUse: ask.inUse,
      wanted: ask.wanted,
      since: ask.wanted === 0 ? undefined : (before?.since ?? this.#asks),
      oldest: ask.oldest,
      evict: Math.min(before?.evict ?? 0, ask.inUse),
      // What it was told of is ended by now: it is not in use any more.
      told: 0,
      leaseUntil: now + lease,
    };
    const contenders = [own, ...others.filter(({ inUse, wanted }) => inUse + wanted > 0)].sort(compareTurns);
    const { permits, held } = sharesOf({
      ...ask,
      heldByOthers: sum(others, (each) => each.held),
      demandOfOthers: sum(others, (each) => each.inUse + each.wanted),
      contenders: contenders.length,
      before: contenders.indexOf(own),
    });
    own.held = held;
    // What is being served is behind those that are not.
    if (held > 0 && own.since !== undefined) own.since = this.#asks;
    if (ask.inUse + ask.wanted > 0) holdings.set(owner, own);
    else if (holdings.size === 0) this.#limits.delete(key);
    if (ask.evicts) evictFor(ask.wanted - (held - ask.inUse), [own, ...others]);
    own.told = own.evict;
    own.evict = 0;
    return { permits, evict: own.told, shared: others.length > 0 };
  }
}

function dropExpired(holdings: Map<string, Holding>, now: number): void {
  for (const [owner, { leaseUntil }] of holdings) if (leaseUntil <= now) holdings.delete(owner);
}

/** Who is served first of what cannot be divided: who uses least, then who has waited longest. */
function compareTurns(a: Holding, b: Holding): number {
  return a.inUse - b.inUse || order(a.since ?? neverServed, b.since ?? neverServed) || compareText(a.owner, b.owner);
}

const order = (a: number, b: number): number => (a === b ? 0 : a < b ? -1 : 1);

/** Marks uses as to be ended, the longest first, beside those that are marked already. */
function evictFor(missing: number, holdings: readonly Holding[]): void {
  let left = missing - sum(holdings, ({ evict, told }) => evict + told);
  for (const holding of [...holdings].sort((a, b) => a.oldest - b.oldest || compareText(a.owner, b.owner))) {
    const marked = Math.max(0, Math.min(left, holding.inUse - holding.evict - holding.told));
    holding.evict += marked;
    left -= marked;
  }
}

const sum = (holdings: readonly Holding[], of: (holding: Holding) => number): number =>
  holdings.reduce((total, holding) => total + of(holding), 0);
