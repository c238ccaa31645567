import assert from "node:assert/strict";
import { type ExecutionGraph, edgeKinds, nodeKinds, toMermaid } from "@wovyr/sdk/internal";

/** What holds of every graph: unique nodes, edges between nodes, all reached from the start, no cycle but for repetition; and its picture is one. */
export function assertGraph(graph: ExecutionGraph): void {
  const ids = graph.nodes.map(({ id }) => id);
  assert.equal(new Set(ids).size, ids.length, "every node once");
  assert.equal(ids[0], "start");
  const known = new Set(ids);
  const next = new Map<string, string[]>(ids.map((id) => [id, []]));
  const entering = new Map<string, number>(ids.map((id) => [id, 0]));
  const edges = new Set<string>();
  for (const { kind } of graph.nodes) assert.ok(nodeKinds.includes(kind), kind);
  for (const { from, to, kind, label } of graph.edges) {
    assert.ok(known.has(from) && known.has(to), `${from} → ${to}`);
    assert.ok(edgeKinds.includes(kind), kind);
    const edge = JSON.stringify([from, to, kind, label]);
    assert.ok(!edges.has(edge), `twice: ${edge}`);
    edges.add(edge);
    if (kind === "retry" || kind === "loop") continue;
    next.get(from)?.push(to);
    entering.set(to, (entering.get(to) ?? 0) + 1);
  }
  assert.deepEqual(
    ids.filter((id) => entering.get(id) === 0),
    ["start"],
    "only the start has nothing before it",
  );
  // What is left when whatever has nothing before it is taken away again and again is a cycle.
  const free = ["start"];
  for (const id of free) {
    for (const to of next.get(id) ?? []) {
      entering.set(to, (entering.get(to) ?? 0) - 1);
      if (entering.get(to) === 0) free.push(to);
    }
  }
  assert.deepEqual(
    ids.filter((id) => !free.includes(id)),
    [],
    "no cycle, and all of it is reached",
  );
  assertMermaid(toMermaid(graph), graph);
}

const label = /"(?!")[\p{L}\p{N} _.,:…=+/@!?'-]*(?:(?:#\d+;|<br\/>)[\p{L}\p{N} _.,:…=+/@!?'-]*)*"/u.source;
const shapes = [
  `\\(\\[${label}\\]\\)`,
  `\\[${label}\\]`,
  `\\{\\{${label}\\}\\}`,
  `>${label}\\]`,
  `\\[\\[${label}\\]\\]`,
  `\\[/${label}/\\]`,
  `\\[\\\\${label}\\\\\\]`,
  `\\[/${label}\\\\\\]`,
  `\\(${label}\\)`,
  `\\{${label}\\}`,
  `\\(\\(${label}\\)\\)`,
].join("|");
const nodeLine = new RegExp(`^ {2}n\\d+(?:${shapes})$`, "u");
const edgeLine = new RegExp(`^ {2}n\\d+ (?:-->|-\\.->)(?:\\|${label}\\|)? n\\d+$`, "u");

/** The part of Mermaid's grammar that is used, line by line; written after what its own parser takes. */
export function assertMermaid(text: string, { nodes, edges }: ExecutionGraph): void {
  const lines = text.split("\n");
  assert.match(lines.shift() ?? "", /^flowchart (?:TD|LR|BT|RL)$/);
  assert.equal(lines.pop(), "");
  for (const line of lines.splice(0, nodes.length)) assert.match(line, nodeLine);
  for (const line of lines.splice(0, edges.length)) assert.match(line, edgeLine);
  for (const line of lines)
    assert.match(line, /^ {2}(?:classDef [a-z]+ [a-z]+:[#0-9a-z]+(?:,[a-z-]+:[#0-9a-z ]+)*|class n\d+(?:,n\d+)* [a-z]+)$/);
}

/** A graph in lines: its nodes, then its edges. */
export function linesOf({ nodes, edges }: ExecutionGraph): string[] {
  return [
    ...nodes.map(({ id, kind, name, state }) =>
      [id, kind === id ? "" : kind, name === kind ? "" : name, state ?? ""].filter((part) => part !== "").join(" "),
    ),
    ...edges.map(
      ({ from, to, kind, label }) => `${from} → ${to}${kind === "sequence" ? "" : ` ${kind}`}${label === undefined ? "" : ` "${label}"`}`,
    ),
  ];
}
