/** How a node reaches the others of its group. */
import type { Operations } from "@wovyr/sdk/internal";

/** A node of the group, as its name and its address tell. */
export type Peer = { readonly node: string; readonly url?: string | undefined };

export interface Peers {
  /**
   * The operations of another node, bound to a tenant. Each call is made once, within bounds of time, and is answered by that node itself or refused with
   * NOT_OWNER. Throws an `ApiError` that says what is missing when this node cannot be reached from here.
   */
  operations(tenant: string, peer: Peer): Operations;
}
