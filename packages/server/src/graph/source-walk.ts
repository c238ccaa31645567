/**
 * A walk through the code of a generator, in the order in which it may run.
 *
 * 1. A part takes the exits of what comes before it and gives its own; none means that nothing comes after it there.
 * 2. Only yields are nodes, and the choices, loops and `try`s that yields, returns or throws stand in.
 * 3. Where an expression does not say what is yielded, the node says that.
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
  MemberExpression,
  SpreadElement,
  Statement,
  SwitchStatement,
  TryStatement,
  VariableDeclaration,
  WhileStatement,
} from "acorn";
import { effectCall } from "./effect-calls.ts";
import type { Exit, Sketch } from "./sketch.ts";
import type { Source } from "./source.ts";
import { bare, calledName, childrenOf, type FunctionLike, flows, isAwaited, isFunction, propertyName } from "./syntax.ts";

type Loop = ForStatement | ForInStatement | ForOfStatement | WhileStatement | DoWhileStatement;

/** Where jumps out of the present statement lead. */
type Jumps = {
  readonly returns: Exit[];
  readonly throws: Exit[];
  readonly targets: readonly JumpTarget[];
};

type JumpTarget = { readonly labels: readonly string[]; readonly loop: boolean; readonly breaks: Exit[]; readonly continues: Exit[] };

/** What is known of a name that the code declares. */
type Local =
  | { readonly kind: "value"; readonly value: Expression }
  | { readonly kind: "function"; readonly value: FunctionLike }
  /** A task that `spawn` gave: where its branch ends. */
  | { readonly kind: "task"; readonly exits: readonly Exit[] };

/** How deep names are looked up behind names. */
const deepestLookup = 20;

export class SourceWalk {
  readonly #sketch: Sketch;
  readonly #source: Source;
  readonly #minified: boolean;
  readonly #locals = new Map<string, Local>();
  readonly #contexts: ReadonlySet<string>;
  /** Functions that are being walked: a call of one of them is not walked again. */
  readonly #walking = new Set<FunctionLike>();
  #jumps: Jumps = { returns: [], throws: [], targets: [] };
  /** Branches of tasks that nothing has joined yet. */
  #unjoined: (readonly Exit[])[] = [];
  #lookups = 0;

  constructor(sketch: Sketch, source: Source) {
    this.#sketch = sketch;
    this.#source = source;
    this.#contexts = new Set(source.fn.params.slice(1).flatMap((param) => (param.type === "Identifier" ? [param.name] : [])));
    this.#minified = source.oneLine && isMinified(source.fn);
    this.#declare(source.fn);
  }

  root(entry: readonly Exit[]): Exit[] {
    return this.#inline(this.#source.fn, entry);
  }

  // ── functions ──

  /** Names that are declared anywhere in the code; of two of one name the first counts. */
  #declare(node: AnyNode): void {
    if (node.type === "VariableDeclarator" && node.id.type === "Identifier" && node.init && !this.#locals.has(node.id.name)) {
      const value = bare(node.init) as Expression;
      this.#locals.set(node.id.name, isFunction(value) ? { kind: "function", value } : { kind: "value", value });
    }
    if (node.type === "FunctionDeclaration" && node.id && !this.#locals.has(node.id.name))
      this.#locals.set(node.id.name, { kind: "function", value: node });
    for (const child of childrenOf(node)) this.#declare(child);
  }

  /** Walks a function's code where it is called: its exits are where it returns, throws or ends. */
  #inline(fn: FunctionLike, entry: readonly Exit[]): Exit[] {
    if (this.#walking.has(fn)) return [{ from: this.#sketch.add("call", "again", entry), kind: "sequence" }];
    const outer = this.#jumps;
    const outerTasks = this.#unjoined;
    const jumps: Jumps = { returns: [], throws: [], targets: [] };
    this.#jumps = jumps;
    this.#unjoined = [];
    this.#walking.add(fn);
    const ended = fn.body.type !== "BlockStatement" ? this.#effect(fn.body, entry) : this.#code(fn, fn.body, entry);
    const tasks = this.#unjoined.flatMap((exits) => joined(exits));
    this.#walking.delete(fn);
    this.#jumps = outer;
    this.#unjoined = outerTasks;
    return [...ended, ...jumps.returns, ...jumps.throws.map(thrown), ...tasks];
  }

  /** A generator yields effects; a plain function returns the one that it stands for. */
  #code(fn: FunctionLike, body: BlockStatement, entry: readonly Exit[]): Exit[] {
    if (fn.generator) return this.#statement(body, entry);
    const returned = returnsOf(body).flatMap((argument) => this.#effect(argument, entry));
    return returned.length > 0 ? returned : [...entry];
  }

  // ── statements ──

  #statement(node: Statement | VariableDeclaration, entry: readonly Exit[], labels: readonly string[] = []): Exit[] {
    // Nothing leads there.
    if (entry.length === 0) return [];
    switch (node.type) {
      case "BlockStatement":
        return this.#statements(node.body, entry);
      case "ExpressionStatement":
        return this.#expression(node.expression, entry);
      case "VariableDeclaration":
        return this.#declaration(node, entry);
      case "ReturnStatement":
        this.#jumps.returns.push(...this.#optional(node.argument, entry));
        return [];
      case "ThrowStatement":
        this.#jumps.throws.push(...this.#expression(node.argument, entry));
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
      if (id.type === "Identifier" && task !== undefined && this.#unjoined.length === before + 1)
        this.#locals.set(id.name, { kind: "task", exits: task });
    }
    return exits;
  }

  #if({ test, consequent, alternate }: IfStatement, entry: readonly Exit[]): Exit[] {
    const tested = this.#expression(test, entry);
    if (!flows(consequent) && !flows(alternate)) return tested;
    const from = this.#sketch.add("choice", this.#source.textOf(test), tested);
    return [
      ...this.#statement(consequent, [{ from, kind: "branch", label: "true" }]),
      ...this.#statement(alternate ?? { type: "EmptyStatement", start: 0, end: 0 }, [{ from, kind: "branch", label: "false" }]),
    ];
  }

  #switch({ discriminant, cases }: SwitchStatement, entry: readonly Exit[], labels: readonly string[]): Exit[] {
    const tested = this.#expression(discriminant, entry);
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
    if (node.type === "ForOfStatement" || node.type === "ForInStatement") return this.#expression(node.right, entry);
    if (node.type !== "ForStatement" || !node.init) return [...entry];
    return node.init.type === "VariableDeclaration" ? this.#declaration(node.init, entry) : this.#expression(node.init, entry);
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
    return node ? this.#expression(node, entry) : [...entry];
  }

  /** What an expression yields on the way to its value. */
  #expression(node: AnyNode, entry: readonly Exit[]): Exit[] {
    if (isFunction(node) || node.type === "ClassBody") return [...entry];
    if (node.type === "YieldExpression") {
      if (!node.argument) return [this.#unknown("a yield of nothing", entry)];
      return isAwaited(node)
        ? this.#expression(node.argument, entry)
        : this.#effect(node.argument, this.#yieldsWithin(node.argument, entry));
    }
    if (node.type === "ConditionalExpression" && (flows(node.consequent) || flows(node.alternate))) {
      const from = this.#sketch.add("choice", this.#source.textOf(node.test), this.#expression(node.test, entry));
      return [
        ...this.#expression(node.consequent, [{ from, kind: "branch", label: "true" }]),
        ...this.#expression(node.alternate, [{ from, kind: "branch", label: "false" }]),
      ];
    }
    if (node.type === "LogicalExpression" && flows(node.right)) {
      const from = this.#sketch.add("choice", this.#source.textOf(node.left), this.#expression(node.left, entry));
      const [goes, stays] = ways[node.operator];
      return [...this.#expression(node.right, [{ from, kind: "branch", label: goes }]), { from, kind: "branch", label: stays }];
    }
    if (node.type === "CallExpression") this.#registered(node);
    let exits = [...entry];
    for (const child of childrenOf(node)) exits = this.#expression(child, exits);
    return exits;
  }

  /** `ctx.on(event, handler)`, `ctx.onUpdate(update, handler)`: messages begin what the handler does, beside the rest. */
  #registered(call: CallExpression): void {
    const of = methodOf(call, "on") ?? methodOf(call, "onUpdate");
    const [what, handler] = call.arguments;
    if (of?.object.type !== "Identifier" || !this.#contexts.has(of.object.name) || what === undefined || handler === undefined) return;
    const name = `${methodOf(call, "on") === undefined ? "update" : "on"} ${this.#source.textOf(what)}`;
    const id = this.#sketch.add("event", name, [{ from: "start", kind: "event" }]);
    const fn = handlerIn(handler);
    if (fn?.generator) this.#unjoined.push(this.#inline(fn, [{ from: id, kind: "branch" }]));
  }

  /** Yields in the arguments of what is yielded come first. */
  #yieldsWithin(argument: Expression, entry: readonly Exit[]): Exit[] {
    const effect = bare(argument);
    if (effect.type === "ConditionalExpression" || effect.type === "LogicalExpression") return [...entry];
    return this.#expression(effect, entry);
  }

  // ── effects ──

  /** Draws what is yielded, or what a branch stands for. */
  #effect(node: AnyNode, entry: readonly Exit[]): Exit[] {
    const effect = bare(node as Expression);
    if (isFunction(effect)) return this.#inline(effect, entry);
    switch (effect.type) {
      case "CallExpression":
        return this.#call(effect, entry);
      case "Identifier":
        return this.#named(effect.name, entry);
      case "ConditionalExpression": {
        const from = this.#sketch.add("choice", this.#source.textOf(effect.test), this.#expression(effect.test, entry));
        return [
          ...this.#effect(effect.consequent, [{ from, kind: "branch", label: "true" }]),
          ...this.#effect(effect.alternate, [{ from, kind: "branch", label: "false" }]),
        ];
      }
      case "LogicalExpression": {
        const from = this.#sketch.add("choice", this.#source.textOf(effect.left), this.#expression(effect.left, entry));
        const [goes, stays] = ways[effect.operator];
        return [
          ...this.#effect(effect.left, [{ from, kind: "branch", label: stays }]),
          ...this.#effect(effect.right, [{ from, kind: "branch", label: goes }]),
        ];
      }
      default:
        return [this.#unknown(`computed: ${this.#source.textOf(effect)}`, entry)];
    }
  }

  #named(name: string, entry: readonly Exit[]): Exit[] {
    const local = this.#locals.get(name);
    switch (local?.kind) {
      case "task":
        return this.#join(name, local.exits, entry);
      case "function":
        return this.#inline(local.value, entry);
      case "value":
        if (!flows(local.value)) return this.#looked(() => this.#effect(local.value, entry)) ?? [this.#unknown(`computed: ${name}`, entry)];
        return [this.#unknown(`computed: ${name}`, entry)];
      case undefined:
        return [this.#unknown(`computed: ${name}`, entry)];
    }
  }

  #looked<T>(look: () => T): T | undefined {
    if (this.#lookups >= deepestLookup) return undefined;
    this.#lookups += 1;
    const found = look();
    this.#lookups -= 1;
    return found;
  }

  #join(name: string, task: readonly Exit[], entry: readonly Exit[]): Exit[] {
    this.#unjoined = this.#unjoined.filter((exits) => exits !== task);
    return [{ from: this.#sketch.add("scope", `join ${name}`, [...entry, ...joined(task)]), kind: "sequence" }];
  }

  #call(call: CallExpression, entry: readonly Exit[]): Exit[] {
    const callee = call.callee.type === "CallExpression" ? call.callee : bare(call.callee);
    if (isFunction(callee)) return this.#inline(callee, entry);
    // `f.with(options)(input)`
    if (callee.type === "CallExpression") {
      const of = methodOf(callee, "with");
      return of === undefined
        ? this.#foreign(call, this.#source.textOf(callee), entry)
        : this.#call({ ...call, callee: of.object as Expression }, entry);
    }
    // `f(input).with(options)`, `f(input).compensate(…)`
    const plain = withoutOptions(call);
    if (plain !== call) return this.#call(plain, entry);
    const cancelled = methodOf(call, "cancel")?.object;
    if (cancelled?.type === "Identifier" && this.#locals.get(cancelled.name)?.kind === "task")
      return [{ from: this.#sketch.add("scope", `cancel ${cancelled.name}`, entry), kind: "sequence" }];
    const name = calledName(call);
    if (name === undefined || (callee.type === "MemberExpression" && callee.object.type === "CallExpression"))
      return this.#foreign(call, this.#source.textOf(call), entry);
    const local = callee.type === "Identifier" ? this.#locals.get(name) : undefined;
    if (local?.kind === "function") return this.#helper(name, local.value, entry);
    if (name === "__asyncGenerator") return this.#foreign(call, name, entry);
    return this.#known(name, call, entry) ?? this.#foreign(call, callee.type === "Identifier" ? name : this.#source.textOf(callee), entry);
  }

  /** A generator of the code's own: a node, and what it does behind it. */
  #helper(name: string, fn: FunctionLike, entry: readonly Exit[]): Exit[] {
    const id = this.#sketch.add("call", name, entry);
    return this.#walking.has(fn) ? [{ from: id, kind: "sequence" }] : this.#inline(fn, [{ from: id, kind: "sequence" }]);
  }

  /** One of the SDK's effects. */
  #known(name: string, call: CallExpression, entry: readonly Exit[]): Exit[] | undefined {
    const effect = effectCall(name, call, (node) => this.#source.textOf(node));
    switch (effect?.shape) {
      case "leaf":
        return [{ from: this.#sketch.add(effect.kind, effect.name, entry), kind: "sequence" }];
      case "last":
        this.#jumps.returns.push({ from: this.#sketch.add("end", effect.name, entry), kind: "sequence" });
        return [];
      case "group": {
        const id = this.#sketch.add("branches", effect.name, entry);
        const exits = effect.branches === undefined ? [] : this.#branches(effect.branches, id);
        return exits.length > 0 ? exits : [{ from: id, kind: "sequence" }];
      }
      case "each": {
        const id = this.#sketch.add("branches", effect.name, entry);
        return effect.branch === undefined ? [{ from: id, kind: "sequence" }] : this.#branch(effect.branch, id, "each");
      }
      case "scope": {
        const id = this.#sketch.add("scope", effect.name, entry);
        const exits = effect.branch === undefined ? [] : this.#branch(effect.branch, id);
        if (!effect.detached) return exits.length > 0 ? exits : [{ from: id, kind: "sequence" }];
        this.#unjoined.push(exits);
        return [{ from: id, kind: "sequence" }];
      }
      case undefined:
        return undefined;
    }
  }

  /** A call of something from outside of the code: an activity, a helper that is given the context, or who knows what with generators in it. */
  #foreign(call: CallExpression, name: string, entry: readonly Exit[]): Exit[] {
    const inline = functionsIn(call);
    if (inline.length > 0) {
      if (name === "__asyncGenerator") return this.#inline(inline[inline.length - 1] as FunctionLike, entry);
      const id = this.#sketch.add("call", name, entry);
      return inline.flatMap((fn) => this.#branch(fn as Expression, id));
    }
    const callee = bare(call.callee);
    const chained = callee.type === "MemberExpression" ? callee.object : callee;
    if (chained.type === "CallExpression") return [this.#unknown(`computed: ${this.#source.textOf(call)}`, entry)];
    if (this.#minified && callee.type === "Identifier") return [this.#unknown(`${name}: its name is lost (minified source)`, entry)];
    const helps = call.arguments.some((argument) => argument.type === "Identifier" && this.#contexts.has(argument.name));
    return [{ from: this.#sketch.add(helps ? "call" : "activity", name, entry), kind: "sequence" }];
  }

  #unknown(name: string, entry: readonly Exit[]): Exit {
    return { from: this.#sketch.add("unknown", name, entry), kind: "sequence" };
  }

  // ── branches ──

  /** The branches that an argument says: an array, a record, or a list that is mapped. */
  #branches(node: Expression | SpreadElement, id: string): Exit[] {
    const argument = node.type === "SpreadElement" ? bare(node.argument) : bare(node);
    switch (argument.type) {
      case "ArrayExpression":
        return argument.elements.flatMap((element) => (element === null ? [] : this.#element(element, id)));
      case "ObjectExpression":
        return argument.properties.flatMap((property) =>
          property.type === "SpreadElement"
            ? this.#branches(property, id)
            : this.#branch(property.value, id, propertyName(property.key, property.computed) ?? this.#source.textOf(property.key)),
        );
      case "CallExpression": {
        const list = methodOf(argument, "map")?.object;
        const [each] = argument.arguments;
        if (list !== undefined && each !== undefined) return this.#branch(each, id, `each of ${this.#source.textOf(list)}`);
        break;
      }
      case "Identifier": {
        const local = this.#locals.get(argument.name);
        const found = local?.kind === "value" ? this.#looked(() => this.#branches(local.value, id)) : undefined;
        if (found !== undefined) return found;
        break;
      }
      default:
    }
    return joined([this.#unknown(`computed branches: ${this.#source.textOf(argument)}`, [{ from: id, kind: "branch" }])]);
  }

  #element(element: Expression | SpreadElement, id: string): Exit[] {
    return element.type === "SpreadElement" ? this.#branches(element, id) : this.#branch(element, id);
  }

  #branch(node: Expression | SpreadElement, id: string, label?: string): Exit[] {
    const entry: Exit[] = [{ from: id, kind: "branch", ...(label !== undefined && { label }) }];
    return joined(this.#effect(node.type === "SpreadElement" ? node.argument : node, entry));
  }
}

const thrown = (exit: Exit): Exit => ({ ...exit, label: exit.label === undefined ? "throw" : `${exit.label}, throw` });

const joined = (exits: readonly Exit[]): Exit[] => exits.map(({ from }) => ({ from, kind: "join" }));

const ways = { "&&": ["true", "false"], "||": ["false", "true"], "??": ["missing", "there"] } as const;

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

/** The object of `object.method(…)`. */
function methodOf({ callee }: CallExpression, method: string): MemberExpression | undefined {
  const called = callee.type === "CallExpression" ? callee : bare(callee);
  return called.type === "MemberExpression" && propertyName(called.property, called.computed) === method ? called : undefined;
}

/** The call that `.with(…)` and `.compensate(…)` are chained to. What ts-pattern's `match` begins is no such chain. */
function withoutOptions(call: CallExpression): CallExpression {
  const object = (methodOf(call, "with") ?? methodOf(call, "compensate"))?.object;
  if (object?.type !== "CallExpression") return call;
  const plain = withoutOptions(object);
  return calledName(plain) === "match" ? call : plain;
}

/** Functions that are written as arguments of a call, or of the calls that it is chained to. */
function functionsIn(call: CallExpression): FunctionLike[] {
  const own = call.arguments.flatMap((argument) => {
    const value = argument.type === "SpreadElement" ? argument.argument : bare(argument);
    return isFunction(value) ? [value] : [];
  });
  const { callee } = call;
  const before = callee.type === "MemberExpression" ? callee.object : callee;
  return before.type === "CallExpression" ? [...functionsIn(before), ...own] : own;
}

/** The function of a handler: given itself, or beside its validator. */
function handlerIn(node: Expression | SpreadElement): FunctionLike | undefined {
  const value = node.type === "SpreadElement" ? node.argument : bare(node);
  if (isFunction(value)) return value;
  if (value.type !== "ObjectExpression") return undefined;
  const property = value.properties.find((part) => part.type === "Property" && propertyName(part.key, part.computed) === "handler");
  return property?.type === "Property" && isFunction(property.value) ? property.value : undefined;
}

function returnsOf(node: AnyNode): Expression[] {
  if (isFunction(node)) return [];
  if (node.type === "ReturnStatement") return node.argument ? [node.argument] : [];
  return childrenOf(node).flatMap(returnsOf);
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
