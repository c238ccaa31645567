/**
 * A graph as text of Mermaid.
 *
 * 1. The same graph gives the same text: nodes and edges come in their order, named `n0`, `n1` …
 * 2. A label is quoted and never empty, and what could end it or be read as markup in it is written as an entity: a name can add nothing to the picture.
 * 3. Every state has a class, and only the classes that are used are defined.
 */
import { checkOptions, oneOf } from "../model/option.ts";
import type { EdgeKind, ExecutionGraph, GraphEdge, GraphNode, NodeKind, NodeState } from "./graph.ts";

const directions = ["TD", "LR", "BT", "RL"] as const;
export type MermaidDirection = (typeof directions)[number];

export type MermaidOptions = {
  /** Default `TD`: from top to bottom. */
  readonly direction?: MermaidDirection | undefined;
};

/** A `flowchart` of a graph of either sort. */
export function toMermaid({ nodes, edges }: ExecutionGraph, options: MermaidOptions = {}): string {
  checkOptions(options, ["direction"], "toMermaid()");
  const direction = oneOf(options.direction ?? "TD", directions, "`direction` of toMermaid()");
  const names = new Map(nodes.map(({ id }, index) => [id, `n${index}`]));
  const classes = new Map<string, string[]>();
  for (const { id, kind, state } of nodes) {
    const shown = classOf(kind, state);
    if (shown === undefined) continue;
    const members = classes.get(shown) ?? [];
    members.push(names.get(id) as string);
    classes.set(shown, members);
  }
  const lines = [
    `flowchart ${direction}`,
    ...nodes.map((node) => `  ${names.get(node.id)}${shapeOf(node)}`),
    ...edges.map((edge) => `  ${names.get(edge.from)} ${arrowOf(edge)} ${names.get(edge.to)}`),
    ...[...classes.keys()].map((name) => `  classDef ${name} ${styles[name as keyof typeof styles]}`),
    ...[...classes].map(([name, members]) => `  class ${members.join(",")} ${name}`),
  ];
  return `${lines.join("\n")}\n`;
}

const shapes: Readonly<Record<NodeKind, readonly [open: string, close: string]>> = {
  start: ["([", "])"],
  end: ["([", "])"],
  activity: ["[", "]"],
  timer: ["{{", "}}"],
  event: [">", "]"],
  child: ["[[", "]]"],
  sideEffect: ["[/", "/]"],
  compensation: ["[\\", "\\]"],
  branches: ["[/", "\\]"],
  scope: ["(", ")"],
  choice: ["{", "}"],
  loop: ["((", "))"],
  try: ["(", ")"],
  call: ["[[", "]]"],
  unknown: ["[", "]"],
  more: ["[", "]"],
};

function shapeOf(node: GraphNode): string {
  // A server of a later version may know more kinds.
  const [open, close] = shapes[node.kind] ?? shapes.unknown;
  return `${open}"${labelOf(node)}"${close}`;
}

/** Kinds whose names do not say what they are. */
const said: ReadonlySet<NodeKind> = new Set(["event", "child", "call", "loop"]);

function labelOf({ kind, name, state, attempts, failure }: GraphNode): string {
  const tries = attempts?.[attempts.length - 1]?.number ?? 1;
  const what = said.has(kind) && name !== kind && !name.startsWith(`${kind} `) ? `${kind} ${name}` : name;
  const lines = [
    what,
    [state, tries > 1 && `attempt ${tries}`].filter(Boolean).join(", "),
    failure === undefined ? "" : `${failure.name}: ${failure.message}`,
  ];
  const shown = lines.map(escaped).filter((line) => line !== "");
  return shown.length === 0 ? kind : shown.join("<br/>");
}

function arrowOf({ kind, label }: GraphEdge): string {
  const text = escaped(label ?? (kind === "retry" ? "retry" : ""));
  const arrow = arrows[kind] ?? arrows.sequence;
  return text === "" ? arrow : `${arrow}|"${text}"|`;
}

const arrows: Readonly<Record<EdgeKind, string>> = {
  sequence: "-->",
  branch: "-->",
  join: "-->",
  retry: "-.->",
  loop: "-.->",
  child: "-.->",
  event: "-.->",
  compensation: "-.->",
};

const longestLabel = 80;

/** Nothing but letters, digits and harmless marks stays as it is. */
function escaped(text: string): string {
  const plain = text.replaceAll(/[\s\p{C}]+/gu, " ").trim();
  const letters = [...plain];
  const short = letters.length > longestLabel ? `${letters.slice(0, longestLabel - 1).join("")}…` : plain;
  return short.replaceAll(/[^\p{L}\p{N} _.,:…=+/@!?'-]/gu, (mark) => `#${mark.codePointAt(0)};`);
}

const styles = {
  open: "fill:#dbeafe,stroke:#2563eb,color:#1e3a8a",
  waiting: "fill:#fef9c3,stroke:#ca8a04,color:#713f12",
  done: "fill:#dcfce7,stroke:#16a34a,color:#14532d",
  failed: "fill:#fee2e2,stroke:#dc2626,color:#7f1d1d",
  cancelled: "fill:#f3f4f6,stroke:#6b7280,color:#374151",
  unknown: "fill:#ffffff,stroke:#9ca3af,color:#4b5563,stroke-dasharray:4 3",
} as const;

function classOf(kind: NodeKind, state: NodeState | undefined): keyof typeof styles | undefined {
  if (state !== undefined) return classes[state];
  return kind === "unknown" || kind === "more" ? "unknown" : undefined;
}

const classes: Readonly<Record<NodeState, keyof typeof styles>> = {
  Created: "waiting",
  Ready: "waiting",
  Validated: "waiting",
  Scheduled: "waiting",
  Waiting: "waiting",
  Paused: "waiting",
  Retrying: "waiting",
  Running: "open",
  Compensating: "open",
  Completed: "done",
  ContinuedAsNew: "done",
  Compensated: "done",
  Failed: "failed",
  TimedOut: "failed",
  Lost: "failed",
  Parked: "failed",
  CompensationFailed: "failed",
  Cancelled: "cancelled",
  Terminated: "cancelled",
};
