/** Workflow code asks nothing for the time, chance, the network or the environment: a replay would get another answer. */
import { bare, type Node, propertyOf, ruleOf, type Source } from "./rule.ts";
import { isWorkflowCode } from "./workflow-code.ts";

const now = "`ctx.now()`";
const random = "`ctx.random()`";
const uuid = "`ctx.uuid()`";
const recorded = "`yield* sideEffect(() => …)`, which records it";
const sleep = "`yield* sleep(…)`";
const later = "`yield* spawn(…)`, or an activity";

const calls: Readonly<Record<string, string>> = {
  Date: now,
  "Date.now": now,
  "performance.now": now,
  "process.hrtime": now,
  "process.hrtime.bigint": now,
  "Math.random": random,
  "crypto.randomInt": random,
  "crypto.randomUUID": uuid,
  "crypto.getRandomValues": recorded,
  "crypto.randomBytes": recorded,
  setTimeout: sleep,
  setInterval: sleep,
  setImmediate: sleep,
  fetch: "an activity, or `yield* step(name, async () => …)`",
  queueMicrotask: later,
  "process.nextTick": later,
};

const modules: Readonly<Record<string, string>> = {
  crypto: "crypto.",
  timers: "",
  process: "process.",
  perf_hooks: "",
};

export const noNondeterminism = ruleOf(
  "a workflow asks nothing that a replay would answer otherwise",
  { other: "A replay would get another value of `{{what}}`. Use {{instead}}." },
  ["CallExpression", "NewExpression", "MemberExpression"],
  (node, source) => {
    const found = node.type === "MemberExpression" ? environment(node, source) : called(node, source);
    return found !== undefined && isWorkflowCode(node, source) ? { node, messageId: "other", data: found } : undefined;
  },
);

type Found = { readonly what: string; readonly instead: string };

function called(node: Node, source: Source): Found | undefined {
  const path = pathOf(bare(node.callee as Node), source);
  if (path === undefined) return undefined;
  if (node.type === "NewExpression")
    return path === "Date" && (node.arguments as readonly unknown[]).length === 0 ? { what: "new Date()", instead: now } : undefined;
  const instead = Object.hasOwn(calls, path) ? calls[path] : undefined;
  return instead === undefined ? undefined : { what: `${path}()`, instead };
}

function environment(node: Node, source: Source): Found | undefined {
  return propertyOf(node) === "env" && pathOf(node, source) === "process.env" ? { what: "process.env", instead: recorded } : undefined;
}

/** `Math.random` for what a node names by that, be it global or imported from a module of Node's. */
function pathOf(node: Node, source: Source): string | undefined {
  for (const [module, prefix] of Object.entries(modules)) {
    const name = source.imported(node, (from) => isBuiltIn(from, module));
    if (name !== undefined) return `${prefix}${name}`;
  }
  if (node.type === "Identifier")
    return source.definition(node.name as string, node) === undefined ? (node.name as string) : wholeModule(node, source);
  if (node.type !== "MemberExpression") return undefined;
  const object = pathOf(bare(node.object as Node), source);
  const property = propertyOf(node);
  if (object === undefined || property === undefined) return undefined;
  return object === "globalThis" ? property : `${object}.${property}`;
}

/** `process` for `import process from "node:process"`. */
function wholeModule(node: Node, source: Source): string | undefined {
  const found = source.definition(node.name as string, node);
  if (found?.node.type !== "ImportDefaultSpecifier" && found?.node.type !== "ImportNamespaceSpecifier") return undefined;
  return Object.keys(modules).find((module) => isBuiltIn(found.parent?.source, module));
}

function isBuiltIn(from: unknown, module: string): boolean {
  const value = (from as { readonly value?: unknown } | undefined)?.value;
  return value === module || value === `node:${module}`;
}
