/** As much of ESLint's interface as the rules need: the SDK depends on no linter. */

/** A node of ESTree, or of what a TypeScript parser makes of it. */
export type Node = { readonly type: string; readonly parent?: Node; readonly [field: string]: unknown };

export type Fix = object;
export type Fixer = {
  replaceTextRange(range: readonly [number, number], text: string): Fix;
  insertTextBefore(node: Node, text: string): Fix;
};

export type Variable = { readonly defs: readonly { readonly type: string; readonly node: Node; readonly parent?: Node | null }[] };
export type Scope = { readonly set: ReadonlyMap<string, Variable>; readonly upper: Scope | null };

export type Context = {
  readonly sourceCode: {
    readonly ast: unknown;
    getScope(node: never): unknown;
    getText(node: never): string;
  };
  report(descriptor: never): void;
};

export type Rule = {
  readonly meta: {
    readonly type: "problem";
    readonly docs: { readonly description: string; readonly url: string };
    readonly fixable?: "code";
    readonly messages: Readonly<Record<string, string>>;
    readonly schema: never[];
  };
  /** `context` is ESLint's, whose types differ from release to release. */
  create(context: object): Record<string, (node: Node) => void>;
};

export type Report = {
  readonly node: Node;
  readonly messageId: string;
  readonly data?: Readonly<Record<string, string>>;
  readonly fix?: ((fixer: Fixer) => Fix) | undefined;
};

export const docsUrl = "https://github.com/wovyr/wovyr/blob/main/docs/replay-and-determinism.md";

/** A rule over nodes of some types; `check` says what is wrong with one, if anything is. */
export function ruleOf(
  description: string,
  messages: Readonly<Record<string, string>>,
  types: readonly string[],
  check: (node: Node, source: Source) => Report | undefined,
  fixable = false,
): Rule {
  return {
    meta: { type: "problem", docs: { description, url: docsUrl }, ...(fixable && { fixable: "code" as const }), messages, schema: [] },
    create(given) {
      const context = given as Context;
      const source = new Source(context);
      const visit = (node: Node) => {
        const report = check(node, source);
        if (report !== undefined) context.report(report as never);
      };
      return Object.fromEntries(types.map((type) => [type, visit]));
    },
  };
}

/** What a file says, as far as the rules ask. */
export class Source {
  readonly #context: Context;

  constructor(context: Context) {
    this.#context = context;
  }

  /** Whether the file imports anything from the SDK. */
  get importsSdk(): boolean {
    const { body } = this.#context.sourceCode.ast as { readonly body: readonly Node[] };
    return body.some((statement) => statement.type === "ImportDeclaration" && isSdk(statement.source));
  }

  text(node: Node): string {
    return this.#context.sourceCode.getText(node as never);
  }

  /** What a name means at a node; undefined for a global. */
  definition(name: string, at: Node): Variable["defs"][number] | undefined {
    let scope = this.#context.sourceCode.getScope(at as never) as Scope | null;
    for (; scope !== null; scope = scope.upper) {
      const found = scope.set.get(name)?.defs[0];
      if (found !== undefined) return found;
    }
    return undefined;
  }

  /** The name under which a module exports what an identifier or a member of a namespace means; undefined for anything else. */
  imported(node: Node | undefined, isModule: (source: unknown) => boolean): string | undefined {
    if (node?.type === "MemberExpression") {
      const object = node.object as Node;
      const found = object.type === "Identifier" ? this.definition(object.name as string, object) : undefined;
      const whole = found?.node.type === "ImportNamespaceSpecifier" || found?.node.type === "ImportDefaultSpecifier";
      return whole && isModule(found?.parent?.source) ? propertyOf(node) : undefined;
    }
    if (node?.type !== "Identifier") return undefined;
    const found = this.definition(node.name as string, node);
    if (found?.node.type !== "ImportSpecifier" || !isModule(found.parent?.source)) return undefined;
    const name = found.node.imported as Node;
    return (name.name ?? name.value) as string;
  }

  /** The name of the SDK's function that a call calls. */
  sdkCall(node: Node | undefined): string | undefined {
    return node?.type === "CallExpression" ? this.imported(bare(node.callee as Node), isSdk) : undefined;
  }

  /** The initial value of the constant that an identifier means. */
  constant(node: Node): Node | undefined {
    if (node.type !== "Identifier") return undefined;
    const found = this.definition(node.name as string, node);
    return found?.node.type === "VariableDeclarator" ? bare(found.node.init as Node | undefined) : undefined;
  }
}

/** Whether an import comes from the SDK. */
export const isSdk = (source: unknown) => {
  const value = (source as { readonly value?: unknown } | undefined)?.value;
  return typeof value === "string" && /^@wovyr\/sdk(?:\/|$)/.test(value);
};

/** The property that a member expression names. */
export function propertyOf(node: Node): string | undefined {
  const property = node.property as Node;
  if (node.computed !== true) return property.name as string | undefined;
  return typeof property.value === "string" ? property.value : undefined;
}

const wrappers = new Set([
  "ParenthesizedExpression",
  "TSAsExpression",
  "TSNonNullExpression",
  "TSSatisfiesExpression",
  "TSTypeAssertion",
  "ChainExpression",
]);

/** An expression without what only types or parentheses add. */
export function bare<N extends Node | undefined>(node: N): N {
  let at: Node | undefined = node;
  while (at !== undefined && at !== null && wrappers.has(at.type)) at = at.expression as Node;
  return at as N;
}

/** The node around an expression that is more than types and parentheses. */
export function around(node: Node): { readonly parent: Node | undefined; readonly inner: Node } {
  let inner = node;
  while (inner.parent !== undefined && wrappers.has(inner.parent.type)) inner = inner.parent;
  return { parent: inner.parent, inner };
}
