/** How a node reaches the others of its group. */
import type { Operations } from "@wovyr/sdk/internal";

/** A node of the group, as its name and its address tell. */
export type Peer = { readonly node: string; readonly url?: string | undefined };

/** Why an answer is none: whoever gave it is not the node that was asked. It is the cause of an `ApiError` UNREACHABLE. */
export class StrangeAnswer extends Error {
  override readonly name = "StrangeAnswer";
}

export interface Peers {
  /**
   * The operations of another node, bound to a tenant. Each call is made once, within bounds of time, and is answered by that node itself or refused with
   * NOT_OWNER; it rejects with UNREACHABLE when nothing answers (its cause is named TimeoutError when nothing did in time), or another than that node. Throws an `ApiError` that says what is missing when this node cannot be reached from here.
   */
  operations(tenant: string, peer: Peer): Operations;
  /** The same of a node that is asked in the place of this one: it may go on to the owner of what it starts, but to no other than that. */
  delegated(tenant: string, peer: Peer): Pick<Operations, "start">;
}
