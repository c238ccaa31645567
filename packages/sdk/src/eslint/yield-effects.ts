/** A call that makes an effect, where only its result can have been meant. */
import { around, type Fix, type Fixer, type Node, ruleOf } from "./rule.ts";
import { effectCall, functionAround, isWorkflowCode } from "./workflow-code.ts";

export const yieldEffects = ruleOf(
  "effects are yielded: a call alone runs nothing",
  {
    dropped: "`{{call}}(…)` only describes an effect: nothing of it runs. Write `yield* {{call}}(…)`.",
    awaited: "An effect cannot be awaited: nothing of it runs. Write `yield* {{call}}(…)`.",
    tested: "This tests the description of an effect, which is always there, and not its result. Write `yield* {{call}}(…)`.",
    calculated: "This takes the description of an effect for its result. Write `yield* {{call}}(…)`.",
    returned: "This returns the description of an effect and does not run it. Write `return yield* {{call}}(…)`.",
  },
  ["CallExpression"],
  (node, source) => {
    const { parent, inner } = around(node);
    const misuse = parent && misuseIn(parent, inner);
    if (misuse === undefined) return undefined;
    const call = effectCall(node, source);
    if (call === undefined || !isWorkflowCode(node, source)) return undefined;
    const fn = functionAround(node);
    if (misuse === "returned" && fn?.generator !== true) return undefined;
    return { node, messageId: misuse, data: { call }, fix: fn?.generator === true ? fixOf(parent as Node, inner, misuse) : undefined };
  },
  true,
);

type Misuse = "dropped" | "awaited" | "tested" | "calculated" | "returned";

function misuseIn(parent: Node, child: Node): Misuse | undefined {
  switch (parent.type) {
    case "ExpressionStatement":
      return "dropped";
    case "AwaitExpression":
      return "awaited";
    case "ReturnStatement":
      return "returned";
    case "IfStatement":
    case "WhileStatement":
    case "DoWhileStatement":
    case "ForStatement":
    case "ConditionalExpression":
      return parent.test === child ? "tested" : undefined;
    case "UnaryExpression":
      return parent.operator === "void" ? "dropped" : "tested";
    case "BinaryExpression":
    case "TemplateLiteral":
      return "calculated";
    default:
      return undefined;
  }
}

/** Only where `yield*`, which binds weakly, can stand without parentheses. */
function fixOf(parent: Node, child: Node, misuse: Misuse): ((fixer: Fixer) => Fix) | undefined {
  if (misuse === "dropped" && parent.type === "ExpressionStatement") return (fixer) => fixer.insertTextBefore(child, "yield* ");
  if (misuse === "returned") return (fixer) => fixer.insertTextBefore(child, "yield* ");
  if (misuse !== "awaited") return undefined;
  const { parent: outer, inner } = around(parent);
  const place =
    outer?.type === "ExpressionStatement" ||
    outer?.type === "ReturnStatement" ||
    (outer?.type === "VariableDeclarator" && outer.init === inner) ||
    (outer?.type === "AssignmentExpression" && outer.right === inner);
  if (!place) return undefined;
  const [start] = parent.range as [number, number];
  const [end] = child.range as [number, number];
  return (fixer) => fixer.replaceTextRange([start, end], "yield* ");
}
