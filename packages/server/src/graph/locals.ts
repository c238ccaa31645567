/** The names that the code of a workflow declares, and what is known of them. */
import type { AnyNode, Expression } from "acorn";
import type { Exit } from "./sketch.ts";
import type { Source } from "./source.ts";
import { bare, childrenOf, type FunctionLike, isFunction } from "./syntax.ts";

/** What is known of a name that the code declares. */
export type Local =
  | { readonly kind: "value"; readonly value: Expression }
  | { readonly kind: "function"; readonly value: FunctionLike }
  /** A task that `spawn` gave: where its branch ends. */
  | { readonly kind: "task"; readonly exits: readonly Exit[] };

export class Locals {
  /** Names that the workflow's context has. */
  readonly contexts: ReadonlySet<string>;
  /** Whether names have been lost: then nothing follows from one. */
  readonly minified: boolean;
  readonly #known = new Map<string, Local>();

  constructor({ fn, oneLine }: Source) {
    this.contexts = new Set(fn.params.slice(1).flatMap((param) => (param.type === "Identifier" ? [param.name] : [])));
    this.minified = oneLine && isMinified(fn);
    this.#declare(fn);
  }

  get(name: string): Local | undefined {
    return this.#known.get(name);
  }

  /** A variable got a task. */
  task(name: string, exits: readonly Exit[]): void {
    this.#known.set(name, { kind: "task", exits });
  }

  /** Names that are declared anywhere in the code; of two of one name the first counts. */
  #declare(node: AnyNode): void {
    if (node.type === "VariableDeclarator" && node.id.type === "Identifier" && node.init && !this.#known.has(node.id.name)) {
      const value = bare(node.init) as Expression;
      this.#known.set(node.id.name, isFunction(value) ? { kind: "function", value } : { kind: "value", value });
    }
    if (node.type === "FunctionDeclaration" && node.id && !this.#known.has(node.id.name))
      this.#known.set(node.id.name, { kind: "function", value: node });
    for (const child of childrenOf(node)) this.#declare(child);
  }
}

/** Whether names have been lost: every parameter and everything that is called by a name of its own has one or two letters. */
function isMinified(fn: FunctionLike): boolean {
  const names = new Set(fn.params.flatMap((param) => (param.type === "Identifier" ? [param.name] : [])));
  const visit = (node: AnyNode): void => {
    if (node.type === "CallExpression" && node.callee.type === "Identifier") names.add(node.callee.name);
    for (const child of childrenOf(node)) visit(child);
  };
  visit(fn.body);
  return [...names].every((name) => name.length <= 2);
}
