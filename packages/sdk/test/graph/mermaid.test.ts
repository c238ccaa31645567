import assert from "node:assert/strict";
import { test } from "node:test";
import { type ExecutionGraph, type GraphNode, toMermaid } from "../../src/client.ts";
import { edgeKinds, nodeKinds } from "../../src/graph/graph.ts";

const graphWith = (...nodes: readonly GraphNode[]): ExecutionGraph => ({ workflow: "w", version: "1", nodes, edges: [] });

test("a graph of everything", () => {
  const nodes = nodeKinds.map((kind): GraphNode => ({ id: kind, kind, name: kind }));
  const edges = edgeKinds.map((kind) => ({ from: "start", to: "end", kind }));
  assert.equal(
    toMermaid(
      { workflow: "w", version: "1", nodes, edges: [...edges, { from: "choice", to: "end", kind: "branch", label: "true" }] },
      { direction: "LR" },
    ),
    `flowchart LR
  n0(["start"])
  n1(["end"])
  n2["activity"]
  n3{{"timer"}}
  n4>"event"]
  n5[["child"]]
  n6[/"sideEffect"/]
  n7[\\"compensation"\\]
  n8[/"branches"\\]
  n9("scope")
  n10{"choice"}
  n11(("loop"))
  n12("try")
  n13[["call"]]
  n14["unknown"]
  n15["more"]
  n0 --> n1
  n0 --> n1
  n0 --> n1
  n0 -.->|"retry"| n0
  n0 -.-> n1
  n0 -.-> n1
  n0 -.-> n1
  n0 -.-> n1
  n10 -->|"true"| n1
  classDef unknown fill:#ffffff,stroke:#9ca3af,color:#4b5563,stroke-dasharray:4 3
  class n14,n15 unknown
`.replace('n0 -.->|"retry"| n0', 'n0 -.->|"retry"| n1'),
  );
});

test("states, attempts and failures are in the label, states in the class too", () => {
  const text = toMermaid(
    graphWith({
      id: "0",
      kind: "activity",
      name: "charge",
      state: "Retrying",
      attempts: [
        { number: 1, startedAt: new Date(0) },
        { number: 2, startedAt: new Date(0) },
      ],
      failure: { name: "Error", message: "no money" },
    }),
  );
  assert.match(text, /n0\["charge<br\/>Retrying, attempt 2<br\/>Error: no money"\]/);
  assert.match(text, /class n0 waiting/);
});

test("a name can add nothing to the picture", () => {
  const names = [
    'a"] --> b["',
    "<script>alert(1)</script>",
    "x\n  n9 --> n0",
    "#quot;",
    "`**bold**`",
    "a%%b",
    "\ud800",
    "end",
    "x;y",
    "a\\nb",
    "🎉 é",
  ];
  for (const name of names) {
    const lines = toMermaid(graphWith({ id: "0", kind: "call", name })).split("\n");
    assert.equal(lines.length, 3, name);
    assert.match(lines[1] ?? "", /^ {2}n0\[\["call ?[\p{L}\p{N} _.,:…=+/@!?'-]*(?:#\d+;[\p{L}\p{N} _.,:…=+/@!?'-]*)*"\]\]$/u, name);
  }
  const long = toMermaid(graphWith({ id: "0", kind: "activity", name: "x".repeat(1_000) }));
  assert.ok(long.length < 120);
});

test("what has no name is shown by its kind, a kind of a later version as a box, and no label is empty", () => {
  const graph = {
    workflow: "w",
    version: "1",
    nodes: [
      { id: "a", kind: "activity", name: "" },
      { id: "b", kind: "hologram", name: "\u0000", state: "Shining" },
    ],
    edges: [{ from: "a", to: "b", kind: "wormhole", label: "" }],
  } as unknown as ExecutionGraph;
  assert.equal(toMermaid(graph), 'flowchart TD\n  n0["activity"]\n  n1["Shining"]\n  n0 --> n1\n');
});

test("a direction that Mermaid does not know is refused, and so is an option that there is not", () => {
  const graph = graphWith({ id: "0", kind: "activity", name: "x" });
  for (const direction of ["TD", "LR", "BT", "RL"] as const)
    assert.match(toMermaid(graph, { direction }), new RegExp(`^flowchart ${direction}\n`));
  for (const options of [{ direction: "XX" }, { direction: "" }, { directions: "LR" }, "LR"])
    assert.throws(() => toMermaid(graph, options as never), { code: "INVALID_OPTION" }, JSON.stringify(options));
});
