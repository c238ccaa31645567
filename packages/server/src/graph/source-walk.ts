/**
 * A walk through the code of a generator, in the order in which it may run.
 *
 * 1. A part takes the exits of what comes before it and gives its own; none means that nothing comes after it there.
 * 2. Only yields are nodes, and the choices, loops and `try`s that yields, returns or throws stand in.
 * 3. What is yielded is drawn by effect-drawing.ts.
 */
import type {
  AnyNode,
  BlockStatement,
  CallExpression,
  CatchClause,
  DoWhileStatement,
  Expression,
  ForInStatement,
  ForOfStatement,
  ForStatement,
  IfStatement,
  Statement,
  SwitchStatement,
  TryStatement,
  VariableDeclaration,
  WhileStatement,
} from "acorn";
import { type Code, EffectDrawing, ways } from "./effect-drawing.ts";
import { Locals } from "./locals.ts";
import { type Exit, joined, type Sketch } from "./sketch.ts";
import type { Source } from "./source.ts";
import { bare, childrenOf, type FunctionLike, flows, handlerIn, isAwaited, isFunction, methodOf, returnsOf } from "./syntax.ts";

type Loop = ForStatement | ForInStatement | ForOfStatement | WhileStatement | DoWhileStatement;

/** Where jumps out of the present statement lead. */
type Jumps = {
  readonly returns: Exit[];
  readonly throws: Exit[];
  readonly targets: readonly JumpTarget[];
};

type JumpTarget = { readonly labels: readonly string[]; readonly loop: boolean; readonly breaks: Exit[]; readonly continues: Exit[] };

export class SourceWalk implements Code {
  readonly #sketch: Sketch;
  readonly #source: Source;
  readonly #locals: Locals;
  readonly #effects: EffectDrawing;
  /** Functions that are being walked: a call of one of them is not walked again. */
  readonly #walking = new Set<FunctionLike>();
  #jumps: Jumps = { returns: [], throws: [], targets: [] };
  /** Branches of tasks that nothing has joined yet. */
  #unjoined: (readonly Exit[])[] = [];

  constructor(sketch: Sketch, source: Source) {
    this.#sketch = sketch;
    this.#source = source;
    this.#locals = new Locals(source);
    this.#effects = new EffectDrawing(sketch, source, this.#locals, this);
  }

  root(entry: readonly Exit[]): Exit[] {
    return this.inline(this.#source.fn, entry);
  }

  // ── functions ──

  /** Walks a function's code where it is called: its exits are where it returns, throws or ends. */
  inline(fn: FunctionLike, entry: readonly Exit[]): Exit[] {
    if (this.#walking.has(fn)) return [{ from: this.#sketch.add("call", "again", entry), kind: "sequence" }];
    const outer = this.#jumps;
    const outerTasks = this.#unjoined;
    const jumps: Jumps = { returns: [], throws: [], targets: [] };
    this.#jumps = jumps;
    this.#unjoined = [];
    this.#walking.add(fn);
    const ended = fn.body.type !== "BlockStatement" ? this.#effects.draw(fn.body, entry) : this.#code(fn, fn.body, entry);
    const tasks = this.#unjoined.flatMap((exits) => joined(exits));
    this.#walking.delete(fn);
    this.#jumps = outer;
    this.#unjoined = outerTasks;
    return [...ended, ...jumps.returns, ...jumps.throws.map(thrown), ...tasks];
  }

  /** A generator yields effects; a plain function returns the one that it stands for. */
  #code(fn: FunctionLike, body: BlockStatement, entry: readonly Exit[]): Exit[] {
    if (fn.generator) return this.#statement(body, entry);
    const returned = returnsOf(body).flatMap((argument) => this.#effects.draw(argument, entry));
    return returned.length > 0 ? returned : [...entry];
  }

  walks(fn: FunctionLike): boolean {
    return this.#walking.has(fn);
  }

  ended(exit: Exit): void {
    this.#jumps.returns.push(exit);
  }

  detached(exits: readonly Exit[]): void {
    this.#unjoined.push(exits);
  }

  joined(task: readonly Exit[]): void {
    this.#unjoined = this.#unjoined.filter((exits) => exits !== task);
  }

  // ── statements ──

  #statement(node: Statement | VariableDeclaration, entry: readonly Exit[], labels: readonly string[] = []): Exit[] {
    // Nothing leads there.
    if (entry.length === 0) return [];
    switch (node.type) {
      case "BlockStatement":
        return this.#statements(node.body, entry);
      case "ExpressionStatement":
        return this.expression(node.expression, entry);
      case "VariableDeclaration":
        return this.#declaration(node, entry);
      case "ReturnStatement":
        this.#jumps.returns.push(...this.#optional(node.argument, entry));
        return [];
      case "ThrowStatement":
        this.#jumps.throws.push(...this.expression(node.argument, entry));
        return [];
      case "IfStatement":
        return this.#if(node, entry);
      case "SwitchStatement":
        return this.#switch(node, entry, labels);
      case "ForStatement":
      case "ForInStatement":
      case "ForOfStatement":
      case "WhileStatement":
      case "DoWhileStatement":
        return this.#loop(node, entry, labels);
      case "LabeledStatement":
        return this.#labelled(node.body, entry, [...labels, node.label.name]);
      case "BreakStatement":
        this.#jump(node.label?.name, "breaks", entry);
        return [];
      case "ContinueStatement":
        this.#jump(node.label?.name, "continues", entry);
        return [];
      case "TryStatement":
        return this.#try(node, entry);
      case "FunctionDeclaration":
      case "ClassDeclaration":
      case "EmptyStatement":
      case "DebuggerStatement":
        return [...entry];
      case "WithStatement":
        return this.#statement(node.body, entry);
      default:
        node satisfies never;
        return [...entry];
    }
  }

  #statements(nodes: readonly Statement[], entry: readonly Exit[]): Exit[] {
    let exits = [...entry];
    for (const node of nodes) exits = this.#statement(node, exits);
    return exits;
  }

  #declaration({ declarations }: VariableDeclaration, entry: readonly Exit[]): Exit[] {
    let exits = [...entry];
    for (const { id, init } of declarations) {
      const before = this.#unjoined.length;
      exits = this.#optional(init, exits);
      const task = this.#unjoined[before];
      if (id.type === "Identifier" && task !== undefined && this.#unjoined.length === before + 1) this.#locals.task(id.name, task);
    }
    return exits;
  }

  #if({ test, consequent, alternate }: IfStatement, entry: readonly Exit[]): Exit[] {
    const tested = this.expression(test, entry);
    if (!flows(consequent) && !flows(alternate)) return tested;
    const from = this.#sketch.add("choice", this.#source.textOf(test), tested);
    return [
      ...this.#statement(consequent, [{ from, kind: "branch", label: "true" }]),
      ...this.#statement(alternate ?? { type: "EmptyStatement", start: 0, end: 0 }, [{ from, kind: "branch", label: "false" }]),
    ];
  }

  #switch({ discriminant, cases }: SwitchStatement, entry: readonly Exit[], labels: readonly string[]): Exit[] {
    const tested = this.expression(discriminant, entry);
    if (!cases.some(({ consequent }) => consequent.some((node) => flows(node, false)))) return tested;
    const from = this.#sketch.add("choice", `switch ${this.#source.textOf(discriminant)}`, tested);
    const target: JumpTarget = { labels, loop: false, breaks: [], continues: [] };
    let exits: Exit[] = [];
    this.#within(target, () => {
      for (const { test, consequent } of cases) {
        const label = test ? this.#source.textOf(test) : "default";
        exits = this.#statements(consequent, [...exits, { from, kind: "branch", label }]);
      }
    });
    const none: Exit[] = cases.some(({ test }) => !test) ? [] : [{ from, kind: "branch", label: "no case" }];
    return [...exits, ...target.breaks, ...none];
  }

  #loop(node: Loop, entry: readonly Exit[], labels: readonly string[]): Exit[] {
    const before = this.#loopHead(node, entry);
    if (!flows(node, false)) return before;
    const id = this.#sketch.add("loop", loopName(node, this.#source), before);
    const inside: Exit[] = [{ from: id, kind: "branch" }];
    const test = "test" in node ? node.test : undefined;
    const target: JumpTarget = { labels, loop: true, breaks: [], continues: [] };
    const first = node.type === "DoWhileStatement" ? inside : this.#optional(test, inside);
    const body = this.#within(target, () => this.#statement(node.body, first));
    let again = [...body, ...target.continues];
    if (node.type === "DoWhileStatement") again = this.#optional(test, again);
    if (node.type === "ForStatement") again = this.#optional(node.update, again);
    this.#sketch.link(
      again.map(({ from, label }) => ({ from, kind: "loop", ...(label !== undefined && { label }) })),
      id,
    );
    return [...this.#loopEnd(node, id, first, again), ...target.breaks];
  }

  #loopHead(node: Loop, entry: readonly Exit[]): Exit[] {
    if (node.type === "ForOfStatement" || node.type === "ForInStatement") return this.expression(node.right, entry);
    if (node.type !== "ForStatement" || !node.init) return [...entry];
    return node.init.type === "VariableDeclaration" ? this.#declaration(node.init, entry) : this.expression(node.init, entry);
  }

  /** Where a loop that is over goes on from; one without a condition is never over. */
  #loopEnd(node: Loop, id: string, tested: readonly Exit[], again: readonly Exit[]): Exit[] {
    const test = "test" in node ? node.test : undefined;
    if ("test" in node && (!test || (test.type === "Literal" && Boolean(test.value)))) return [];
    if (node.type === "DoWhileStatement") return [...again];
    return tested.map(({ from }) => ({ from, kind: from === id ? "sequence" : "branch" }));
  }

  #labelled(body: Statement, entry: readonly Exit[], labels: readonly string[]): Exit[] {
    if (body.type === "LabeledStatement" || body.type === "SwitchStatement" || body.type.startsWith("For") || body.type.includes("While"))
      return this.#statement(body, entry, labels);
    const target: JumpTarget = { labels, loop: false, breaks: [], continues: [] };
    return [...this.#within(target, () => this.#statement(body, entry)), ...target.breaks];
  }

  #within<T>(target: JumpTarget, walk: () => T): T {
    return this.#jumping({ ...this.#jumps, targets: [...this.#jumps.targets, target] }, walk);
  }

  #jumping<T>(jumps: Jumps, walk: () => T): T {
    const outer = this.#jumps;
    this.#jumps = jumps;
    const walked = walk();
    this.#jumps = outer;
    return walked;
  }

  #jump(label: string | undefined, how: "breaks" | "continues", exits: readonly Exit[]): void {
    const target = this.#jumps.targets.findLast(({ labels, loop, breaks: _ }) =>
      label === undefined ? loop || how === "breaks" : labels.includes(label),
    );
    target?.[how].push(...exits);
  }

  #try(node: TryStatement, entry: readonly Exit[]): Exit[] {
    if (!flows(node)) return [...entry];
    const { block, handler, finalizer } = node;
    const cleans = finalizer && flows(finalizer) ? finalizer : undefined;
    const outer = this.#jumps;
    const id = this.#sketch.add("try", cleans === undefined ? "try" : "try … finally", entry);
    const returns: Exit[] = cleans === undefined ? outer.returns : [];
    const escaping: Exit[] = [];
    const inside = { ...outer, returns, throws: escaping };
    let exits = this.#jumping(inside, () => this.#statement(block, [{ from: id, kind: "sequence" }]));
    const uncaught: Exit[] = [];
    if (handler) {
      const caught: Exit[] = [{ from: id, kind: "branch", label: "catch" }, ...escaping];
      exits = [...exits, ...this.#jumping({ ...inside, throws: uncaught }, () => this.#handler(handler, caught))];
    } else uncaught.push(...(cleans === undefined ? [] : [{ from: id, kind: "branch", label: "failure" } as const]), ...escaping);
    if (cleans === undefined) {
      outer.throws.push(...uncaught);
      return exits;
    }
    const cleaned = this.#statement(cleans, [...exits, ...returns, ...uncaught]);
    if (returns.length > 0) outer.returns.push(...cleaned);
    if (uncaught.length > 0) outer.throws.push(...cleaned);
    return exits.length > 0 ? cleaned : [];
  }

  #handler({ body }: CatchClause, entry: readonly Exit[]): Exit[] {
    return this.#statement(body, entry);
  }

  // ── expressions ──

  #optional(node: Expression | null | undefined, entry: readonly Exit[]): Exit[] {
    return node ? this.expression(node, entry) : [...entry];
  }

  /** What an expression yields on the way to its value. */
  expression(node: AnyNode, entry: readonly Exit[]): Exit[] {
    if (isFunction(node) || node.type === "ClassBody") return [...entry];
    if (node.type === "YieldExpression") {
      if (!node.argument) return [this.#effects.unknown("a yield of nothing", entry)];
      return isAwaited(node)
        ? this.expression(node.argument, entry)
        : this.#effects.draw(node.argument, this.#yieldsWithin(node.argument, entry));
    }
    if (node.type === "ConditionalExpression" && (flows(node.consequent) || flows(node.alternate))) {
      const from = this.#sketch.add("choice", this.#source.textOf(node.test), this.expression(node.test, entry));
      return [
        ...this.expression(node.consequent, [{ from, kind: "branch", label: "true" }]),
        ...this.expression(node.alternate, [{ from, kind: "branch", label: "false" }]),
      ];
    }
    if (node.type === "LogicalExpression" && flows(node.right)) {
      const from = this.#sketch.add("choice", this.#source.textOf(node.left), this.expression(node.left, entry));
      const [goes, stays] = ways[node.operator];
      return [...this.expression(node.right, [{ from, kind: "branch", label: goes }]), { from, kind: "branch", label: stays }];
    }
    if (node.type === "CallExpression") this.#registered(node);
    let exits = [...entry];
    for (const child of childrenOf(node)) exits = this.expression(child, exits);
    return exits;
  }

  /** `ctx.on(event, handler)`, `ctx.onUpdate(update, handler)`: messages begin what the handler does, beside the rest. */
  #registered(call: CallExpression): void {
    const of = methodOf(call, "on") ?? methodOf(call, "onUpdate");
    const [what, handler] = call.arguments;
    if (of?.object.type !== "Identifier" || !this.#locals.contexts.has(of.object.name) || what === undefined || handler === undefined)
      return;
    const name = `${methodOf(call, "on") === undefined ? "update" : "on"} ${this.#source.textOf(what)}`;
    const id = this.#sketch.add("event", name, [{ from: "start", kind: "event" }]);
    const fn = handlerIn(handler);
    if (fn?.generator) this.#unjoined.push(this.inline(fn, [{ from: id, kind: "branch" }]));
  }

  /** Yields in the arguments of what is yielded come first. */
  #yieldsWithin(argument: Expression, entry: readonly Exit[]): Exit[] {
    const effect = bare(argument);
    if (effect.type === "ConditionalExpression" || effect.type === "LogicalExpression") return [...entry];
    return this.expression(effect, entry);
  }
}

const thrown = (exit: Exit): Exit => ({ ...exit, label: exit.label === undefined ? "throw" : `${exit.label}, throw` });

function loopName(node: Loop, { textOf }: Source): string {
  switch (node.type) {
    case "ForOfStatement":
    case "ForInStatement": {
      const left = node.left.type === "VariableDeclaration" ? node.left.declarations[0]?.id : node.left;
      return `for ${left === undefined ? "" : textOf(left)} ${node.type === "ForOfStatement" ? "of" : "in"} ${textOf(node.right)}`;
    }
    case "ForStatement":
      return node.test ? `for ${textOf(node.test)}` : "for ever";
    case "WhileStatement":
    case "DoWhileStatement":
      return `while ${textOf(node.test)}`;
  }
}
