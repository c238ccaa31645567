/**
 * The graph of a workflow before anything ran, drawn from the source of its function.
 *
 * 1. Nothing is run and nothing is resolved: what a name stands for is taken from the name (effect-calls.ts).
 * 2. What cannot be known is a node that says so; there is no source that makes it throw.
 * 3. The same definition gives the same graph.
 */
import { defaultMaxNodes, type ExecutionGraph, type WorkflowDefinition } from "@wovyr/sdk/internal";
import { type Exit, Sketch } from "./sketch.ts";
import { readSource } from "./source.ts";
import { SourceWalk } from "./source-walk.ts";

export type StaticGraphOptions = {
  /** What is beyond becomes one node that says how many there are; at least 10, default 5,000. */
  readonly maxNodes?: number | undefined;
};

/** What a workflow may do, as its source says it. */
export function staticGraph(
  workflow: { readonly definition: WorkflowDefinition } | WorkflowDefinition,
  { maxNodes = defaultMaxNodes }: StaticGraphOptions = {},
): ExecutionGraph {
  const definition = "definition" in workflow ? workflow.definition : workflow;
  const drawn = sketchOf(definition, Math.max(10, maxNodes));
  return drawn.graph(definition.name, definition.version);
}

function sketchOf({ name, run }: WorkflowDefinition, maxNodes: number): Sketch {
  try {
    if (run === undefined) throw new Error("it is a contract: its code is elsewhere");
    const source = readSource(String(run));
    const sketch = new Sketch(maxNodes);
    const begun = sketch.add("start", name, [], "start");
    const exits = new SourceWalk(sketch, source).root([{ from: begun, kind: "sequence" }]);
    if (exits.length > 0) sketch.add("end", "end", exits, "end");
    return sketch;
  } catch (error) {
    const sketch = new Sketch(maxNodes);
    const begun: Exit = { from: sketch.add("start", name, [], "start"), kind: "sequence" };
    const what = sketch.add("unknown", `not known: ${error instanceof Error ? error.message : String(error)}`, [begun]);
    sketch.add("end", "end", [{ from: what, kind: "sequence" }], "end");
    return sketch;
  }
}
