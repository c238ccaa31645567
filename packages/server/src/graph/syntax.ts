/** What the drawing of a source needs to know of its syntax. */
import type {
  AnyNode,
  ArrowFunctionExpression,
  CallExpression,
  Expression,
  FunctionDeclaration,
  FunctionExpression,
  MemberExpression,
  SpreadElement,
  Super,
} from "acorn";

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

/** The object of `object.method(…)`. */
export function methodOf({ callee }: CallExpression, method: string): MemberExpression | undefined {
  const called = callee.type === "CallExpression" ? callee : bare(callee);
  return called.type === "MemberExpression" && propertyName(called.property, called.computed) === method ? called : undefined;
}

/** The call that `.with(…)` and `.compensate(…)` are chained to. What ts-pattern's `match` begins is no such chain. */
export function withoutOptions(call: CallExpression): CallExpression {
  const object = (methodOf(call, "with") ?? methodOf(call, "compensate"))?.object;
  if (object?.type !== "CallExpression") return call;
  const plain = withoutOptions(object);
  return calledName(plain) === "match" ? call : plain;
}

/** What is said to `.compensate(…)` in a chain; the last one counts. */
export function compensationIn(call: CallExpression): Expression | SpreadElement | undefined {
  if (methodOf(call, "compensate") !== undefined) return call.arguments[0];
  const object = methodOf(call, "with")?.object;
  return object?.type === "CallExpression" ? compensationIn(object) : undefined;
}

/** Functions that are written as arguments of a call, or of the calls that it is chained to. */
export function functionsIn(call: CallExpression): FunctionLike[] {
  const own = call.arguments.flatMap((argument) => {
    const value = argument.type === "SpreadElement" ? argument.argument : bare(argument);
    return isFunction(value) ? [value] : [];
  });
  const { callee } = call;
  const before = callee.type === "MemberExpression" ? callee.object : callee;
  return before.type === "CallExpression" ? [...functionsIn(before), ...own] : own;
}

/** The function of a handler: given itself, or beside its validator. */
export function handlerIn(node: Expression | SpreadElement): FunctionLike | undefined {
  const value = node.type === "SpreadElement" ? node.argument : bare(node);
  if (isFunction(value)) return value;
  if (value.type !== "ObjectExpression") return undefined;
  const property = value.properties.find((part) => part.type === "Property" && propertyName(part.key, part.computed) === "handler");
  return property?.type === "Property" && isFunction(property.value) ? property.value : undefined;
}

/** What the code of a plain function returns. */
export function returnsOf(node: AnyNode): Expression[] {
  if (isFunction(node)) return [];
  if (node.type === "ReturnStatement") return node.argument ? [node.argument] : [];
  return childrenOf(node).flatMap(returnsOf);
}
