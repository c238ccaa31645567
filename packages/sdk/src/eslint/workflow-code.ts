/** Which code is workflow code, and which calls make effects. */
import { around, bare, isSdk, type Node, propertyOf, type Source } from "./rule.ts";

const functions = new Set(["FunctionExpression", "FunctionDeclaration", "ArrowFunctionExpression"]);
/** Their functions run outside of the workflow's code. */
const outside = new Set(["step", "sideEffect", "activity"]);

export const isFunction = (node: Node): boolean => functions.has(node.type);

/** The function that a node stands in. */
export function functionAround(node: Node): Node | undefined {
  let at = node.parent;
  while (at !== undefined && at !== null && !isFunction(at)) at = at.parent;
  return at ?? undefined;
}

/**
 * Whether a node is run as part of a workflow: in a function that is passed to `workflow(…)` or to the `implement` of a contract, or in an async
 * generator with a `yield*` in a file that imports the SDK; and not in a function that is passed to `step`, `sideEffect` or `activity`.
 */
export function isWorkflowCode(node: Node, source: Source): boolean {
  for (let fn = functionAround(node); fn !== undefined; fn = functionAround(fn)) {
    const call = callWith(fn);
    if (call !== undefined) {
      const name = calledMaker(call, source);
      if (name !== undefined && outside.has(name)) return false;
      if (name === "workflow") return true;
    }
    if (fn.async === true && fn.generator === true && source.importsSdk && delegates(fn.body as Node)) return true;
  }
  return false;
}

/** The call that a function is an argument of. */
function callWith(fn: Node): Node | undefined {
  const { parent, inner } = around(fn);
  return parent?.type === "CallExpression" && (parent.arguments as readonly Node[]).includes(inner) ? parent : undefined;
}

/** `workflow` for `workflow(…)` and for `workflow.contract(…).implement(…)`, whether the contract is in a constant or not; the like for activities. */
function calledMaker(call: Node, source: Source): string | undefined {
  const direct = source.sdkCall(call);
  if (direct !== undefined) return direct;
  const callee = bare(call.callee as Node);
  if (callee.type !== "MemberExpression") return undefined;
  const object = bare(callee.object as Node);
  const property = propertyOf(callee);
  if (property === "contract") return source.imported(object, isSdk);
  if (property !== "implement") return undefined;
  const contract = object.type === "CallExpression" ? object : source.constant(object);
  return contract?.type === "CallExpression" ? calledMaker(contract, source) : undefined;
}

/** Whether a function's own body has a `yield*`. */
function delegates(node: unknown): boolean {
  if (Array.isArray(node)) return node.some(delegates);
  if (typeof node !== "object" || node === null || !("type" in node)) return false;
  const at = node as Node;
  if (isFunction(at)) return false;
  if (at.type === "YieldExpression" && at.delegate === true) return true;
  return Object.entries(at).some(([field, value]) => field !== "parent" && delegates(value));
}

// ── effects ──────────────────────────────────────────────────────────────────────────────────────────────

export const makers: ReadonlySet<string> = new Set([
  "all",
  "any",
  "awaitEvent",
  "child",
  "compensateNow",
  "condition",
  "continueAsNew",
  "map",
  "patched",
  "publish",
  "race",
  "saga",
  "select",
  "send",
  "settled",
  "shield",
  "sideEffect",
  "sleep",
  "sleepUntil",
  "spawn",
  "step",
  "timeout",
]);

/** Methods of effects that give the effect with more said of it. */
const settings: ReadonlySet<string> = new Set(["with", "compensate"]);

/** The name of what makes the effect, when a node is a call that makes one: `sleep`, `charge`, `task.cancel`. */
export function effectCall(given: Node | undefined, source: Source): string | undefined {
  const node = bare(given);
  if (node?.type !== "CallExpression") return undefined;
  const callee = bare(node.callee as Node);
  const name = source.sdkCall(node);
  if (name !== undefined) return makers.has(name) ? source.text(callee) : undefined;
  if (callee.type === "MemberExpression") {
    const object = bare(callee.object as Node);
    if (settings.has(propertyOf(callee) ?? "")) return effectCall(object, source);
    if (propertyOf(callee) === "cancel" && isTask(object, source)) return source.text(callee);
    return undefined;
  }
  const made = source.constant(callee);
  return made?.type === "CallExpression" && calledMaker(made, source) === "activity" ? source.text(callee) : undefined;
}

function isTask(object: Node, source: Source): boolean {
  const made = source.constant(object);
  return made?.type === "YieldExpression" && source.sdkCall(bare(made.argument as Node | undefined)) === "spawn";
}
