/**
 * How much may run at once, and begin within a time, as a store keeps it for all nodes.
 *
 * 1. Of a limit each node holds so many permits. Those of all nodes whose leases have not ended, by the store's clock, are never more than `capacity`; an
 *    ask gives back what the node neither uses nor wants.
 * 2. Where several nodes want permits their shares are even; what cannot be divided goes in turn.
 * 3. A token is taken when it is granted, whatever becomes of the answer. Never more than `limit` are granted within any `per`, by the store's clock.
 */

export type PermitAsk = {
  readonly tenant: string;
  /** Of the limit. */
  readonly name: string;
  readonly capacity: number;
  /** Permits that the node uses: it holds them already. */
  readonly inUse: number;
  /** Permits that it could use beside. */
  readonly wanted: number;
  /** When the longest use began, in milliseconds since the epoch; 0 when there is none. */
  readonly oldest: number;
  /** What is used longest is to end, on whatever node, where there is nothing left of what is wanted. */
  readonly evicts: boolean;
};

export type PermitGrant = {
  /**
   * How many the node may use from now on. Less than are in use: it holds those that it uses until they end, and is to begin nothing in their place, for
   * others have their turn.
   */
  readonly permits: number;
  /** Uses that the node is to end, the longest first: others take their place. */
  readonly evict: number;
  /** Whether other nodes hold or want some. */
  readonly shared: boolean;
};

export type TokenAsk = {
  readonly tenant: string;
  readonly name: string;
  readonly limit: number;
  /** Milliseconds. */
  readonly per: number;
  readonly wanted: number;
};

export type TokenGrant = {
  readonly tokens: number;
  /** Milliseconds until there may be another one; 0 when all that were wanted were granted. */
  readonly wait: number;
};

/** A window is counted in so many parts; a token counts until the part in which it was granted is out of the window as a whole. */
export const windowParts = 50;

export const partLength = (per: number): number => Math.max(1, Math.ceil(per / windowParts));

/** The permits of a node, as an ask is answered. */
export type PermitShares = {
  readonly capacity: number;
  readonly inUse: number;
  readonly wanted: number;
  /** Permits that other nodes hold, and that they use or want. */
  readonly heldByOthers: number;
  readonly demandOfOthers: number;
  /** Nodes that use or want some, this one included, and how many of them come before it when what is left over is given out. */
  readonly contenders: number;
  readonly before: number;
};

/** What a node may use, and what it holds after it. The SQL of the stores says the same. */
export function sharesOf({ capacity, inUse, wanted, heldByOthers, demandOfOthers, contenders, before }: PermitShares): {
  readonly permits: number;
  readonly held: number;
} {
  if (inUse + wanted === 0) return { permits: 0, held: 0 };
  const even = Math.floor(capacity / contenders) + (before < capacity % contenders ? 1 : 0);
  const allowed = Math.max(even, capacity - demandOfOthers);
  const more = Math.max(0, Math.min(wanted, allowed - inUse, capacity - heldByOthers - inUse));
  return { permits: Math.min(inUse + more, allowed), held: inUse + more };
}
