/** What the drawing of a source needs to know of its syntax. */
import type { AnyNode, ArrowFunctionExpression, CallExpression, Expression, FunctionDeclaration, FunctionExpression, Super } from "acorn";

export type FunctionLike = FunctionDeclaration | FunctionExpression | ArrowFunctionExpression;

const functions: ReadonlySet<string> = new Set(["FunctionDeclaration", "FunctionExpression", "ArrowFunctionExpression"]);

export function isFunction(node: AnyNode | null | undefined): node is FunctionLike {
  return node !== null && node !== undefined && functions.has(node.type);
}

/** The parts of a node in the order of the source. */
export function childrenOf(node: AnyNode): AnyNode[] {
  const children: AnyNode[] = [];
  for (const value of Object.values(node)) {
    for (const part of Array.isArray(value) ? value : [value]) {
      if (typeof part === "object" && part !== null && typeof part.type === "string") children.push(part);
    }
  }
  return children.sort((a, b) => a.start - b.start);
}

const leaving: ReadonlySet<string> = new Set(["YieldExpression", "ReturnStatement", "ThrowStatement"]);
const loops: ReadonlySet<string> = new Set(["ForStatement", "ForInStatement", "ForOfStatement", "WhileStatement", "DoWhileStatement"]);

/** Whether control stops or leaves there: at a yield, a return, a throw, or a jump out of it. What is inside functions does not count. */
export function flows(node: AnyNode | null | undefined, jumpsCount = true): boolean {
  if (node === null || node === undefined || isFunction(node) || node.type === "ClassBody") return false;
  if (leaving.has(node.type)) return true;
  if (node.type === "BreakStatement" || node.type === "ContinueStatement") return jumpsCount || (node.label ?? null) !== null;
  const within = jumpsCount && !loops.has(node.type);
  return childrenOf(node).some((child) => flows(child, within));
}

/** An expression without what the syntax wraps around it. */
export function bare(node: Expression | Super): Expression | Super {
  switch (node.type) {
    case "ChainExpression":
      return bare(node.expression);
    case "ParenthesizedExpression":
      return bare(node.expression);
    case "AwaitExpression":
      return bare(node.argument);
    case "SequenceExpression":
      return bare(node.expressions[node.expressions.length - 1] as Expression);
    case "AssignmentExpression":
      return bare(node.right);
    case "CallExpression":
      return transparent.has(calledName(node) ?? "") && node.arguments[0] !== undefined ? bare(node.arguments[0] as Expression) : node;
    case "YieldExpression":
      return isAwaited(node) ? bare(node.argument as Expression) : node;
    default:
      return node;
  }
}

/** Calls that compilers put around an expression without changing what it says. */
const transparent: ReadonlySet<string> = new Set(["__await", "__yieldStar", "__asyncDelegator", "__asyncValues", "__name"]);

/** `yield __await(x)`: what older targets make of `await x`. */
export function isAwaited(node: AnyNode): boolean {
  return (
    node.type === "YieldExpression" && !node.delegate && node.argument?.type === "CallExpression" && calledName(node.argument) === "__await"
  );
}

/** `f` of `f(…)`, `ns.f(…)` and `(0, ns.f)(…)`. */
export function calledName({ callee }: Pick<CallExpression, "callee">): string | undefined {
  const called = callee.type === "CallExpression" ? callee : bare(callee);
  if (called.type === "Identifier") return called.name;
  return called.type === "MemberExpression" ? propertyName(called.property, called.computed) : undefined;
}

/** The name of a property, as far as the source says it. */
export function propertyName(key: AnyNode, computed: boolean): string | undefined {
  if (key.type === "Literal") return String(key.value);
  if (computed) return undefined;
  return key.type === "Identifier" ? key.name : undefined;
}
