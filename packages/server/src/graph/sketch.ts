/**
 * The nodes and edges of a graph while it is drawn.
 *
 * 1. An edge is there once; its ends are nodes that were added.
 * 2. From `maxNodes` on nothing is added: all that would be is one node that counts.
 */
import type { EdgeKind, ExecutionGraph, GraphEdge, GraphNode, NodeKind } from "@wovyr/sdk/internal";

/** Where an edge to what comes next begins. */
export type Exit = { readonly from: string; readonly kind: EdgeKind; readonly label?: string };

export class Sketch {
  readonly #nodes: GraphNode[] = [];
  readonly #edges = new Map<string, GraphEdge>();
  readonly #maxNodes: number;
  #leftOut = 0;

  constructor(maxNodes: number) {
    this.#maxNodes = maxNodes;
  }

  /** Adds a node that is reached from `entry`; returns its id. */
  add(kind: NodeKind, name: string, entry: readonly Exit[], given?: string): string {
    // One is kept for what counts the others, one for the end.
    const full = given === undefined && this.#nodes.length >= this.#maxNodes - 2;
    const id = given ?? (full ? "more" : `s${this.#nodes.length}`);
    if (full) this.#leftOut += 1;
    if (!full || this.#leftOut === 1) this.#nodes.push({ id, kind: full ? "more" : kind, name });
    this.link(entry, id);
    return id;
  }

  link(entry: readonly Exit[], to: string): void {
    for (const { from, kind, label } of entry) {
      if (from === to && kind !== "loop") continue;
      const edge = { from, to, kind, ...(label !== undefined && { label }) };
      this.#edges.set(JSON.stringify([from, to, kind, label]), edge);
    }
  }

  graph(workflow: string, version: string): ExecutionGraph {
    const nodes = this.#nodes.map((node) => (node.id === "more" ? { ...node, name: `${this.#leftOut} more` } : node));
    return { workflow, version, nodes, edges: [...this.#edges.values()] };
  }
}

/** The ends of branches, as what comes after all of them is reached. */
export const joined = (exits: readonly Exit[]): Exit[] => exits.map(({ from }) => ({ from, kind: "join" }));
