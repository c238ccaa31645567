/** Workflow code waits for effects only. */
import { bare, type Node, ruleOf } from "./rule.ts";
import { effectCall, isWorkflowCode } from "./workflow-code.ts";

export const noForeignAwait = ruleOf(
  "a workflow awaits nothing but its effects",
  {
    foreign: "A workflow cannot wait for what history does not know. Put it into an activity, or into `yield* step(name, async () => …)`.",
    loop: "A workflow cannot wait for what history does not know. Read the stream in an activity.",
  },
  ["AwaitExpression", "ForOfStatement"],
  (node, source) => {
    if (node.type === "ForOfStatement" && node.await !== true) return undefined;
    if (!isWorkflowCode(node, source)) return undefined;
    if (node.type === "ForOfStatement") return { node, messageId: "loop" };
    // That one is for yield-effects to tell.
    if (effectCall(bare(node.argument as Node), source) !== undefined) return undefined;
    return { node, messageId: "foreign" };
  },
);
