/**
 * What is yielded, as nodes.
 *
 * 1. A call is known by its name (effect-calls.ts), a name by what the code declares (locals.ts).
 * 2. Where an expression does not say what is yielded, the node says that.
 */
import type { AnyNode, CallExpression, Expression, SpreadElement } from "acorn";
import { effectCall } from "./effect-calls.ts";
import type { Locals } from "./locals.ts";
import { type Exit, joined, type Sketch } from "./sketch.ts";
import type { Source } from "./source.ts";
import {
  bare,
  calledName,
  compensationIn,
  type FunctionLike,
  flows,
  functionsIn,
  isFunction,
  methodOf,
  propertyName,
  withoutOptions,
} from "./syntax.ts";

/** The code that effects stand in. */
export interface Code {
  /** Walks a function's code where it is called. */
  inline(fn: FunctionLike, entry: readonly Exit[]): Exit[];
  /** What an expression yields on the way to its value. */
  expression(node: AnyNode, entry: readonly Exit[]): Exit[];
  /** Whether the function is being walked. */
  walks(fn: FunctionLike): boolean;
  /** The run ends there. */
  ended(exit: Exit): void;
  /** A task goes on by itself, up to these. */
  detached(exits: readonly Exit[]): void;
  /** A task was waited for. */
  joined(task: readonly Exit[]): void;
}

/** How deep names are looked up behind names. */
const deepestLookup = 20;

export class EffectDrawing {
  readonly #sketch: Sketch;
  readonly #source: Source;
  readonly #locals: Locals;
  readonly #code: Code;
  #lookups = 0;

  constructor(sketch: Sketch, source: Source, locals: Locals, code: Code) {
    this.#sketch = sketch;
    this.#source = source;
    this.#locals = locals;
    this.#code = code;
  }

  /** Draws what is yielded, or what a branch stands for. */
  draw(node: AnyNode, entry: readonly Exit[]): Exit[] {
    const effect = bare(node as Expression);
    if (isFunction(effect)) return this.#code.inline(effect, entry);
    switch (effect.type) {
      case "CallExpression":
        return this.#call(effect, entry);
      case "Identifier":
        return this.#named(effect.name, entry);
      case "ConditionalExpression": {
        const from = this.#sketch.add("choice", this.#source.textOf(effect.test), this.#code.expression(effect.test, entry));
        return [
          ...this.draw(effect.consequent, [{ from, kind: "branch", label: "true" }]),
          ...this.draw(effect.alternate, [{ from, kind: "branch", label: "false" }]),
        ];
      }
      case "LogicalExpression": {
        const from = this.#sketch.add("choice", this.#source.textOf(effect.left), this.#code.expression(effect.left, entry));
        const [goes, stays] = ways[effect.operator];
        return [
          ...this.draw(effect.left, [{ from, kind: "branch", label: stays }]),
          ...this.draw(effect.right, [{ from, kind: "branch", label: goes }]),
        ];
      }
      default:
        return [this.unknown(`computed: ${this.#source.textOf(effect)}`, entry)];
    }
  }

  /** What undoes an effect is shown beside it: it leads nowhere, as nobody knows when it runs. */
  #undone(undo: Expression | SpreadElement | undefined, done: Exit[]): Exit[] {
    if (undo === undefined) return done;
    const fn = undo.type === "SpreadElement" ? undo : bare(undo);
    const of: Exit[] = done.map(({ from }) => ({ from, kind: "compensation" }));
    const inline = isFunction(fn);
    const from = this.#sketch.add("compensation", inline ? "undo" : `undo ${this.#source.textOf(fn)}`, of);
    if (inline) this.#code.inline(fn, [{ from, kind: "branch" }]);
    return done;
  }

  #named(name: string, entry: readonly Exit[]): Exit[] {
    const local = this.#locals.get(name);
    switch (local?.kind) {
      case "task":
        return this.#join(name, local.exits, entry);
      case "function":
        return this.#code.inline(local.value, entry);
      case "value":
        if (!flows(local.value)) return this.#looked(() => this.draw(local.value, entry)) ?? [this.unknown(`computed: ${name}`, entry)];
        return [this.unknown(`computed: ${name}`, entry)];
      case undefined:
        return [this.unknown(`computed: ${name}`, entry)];
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
    this.#code.joined(task);
    return [{ from: this.#sketch.add("scope", `join ${name}`, [...entry, ...joined(task)]), kind: "sequence" }];
  }

  #call(call: CallExpression, entry: readonly Exit[]): Exit[] {
    const callee = call.callee.type === "CallExpression" ? call.callee : bare(call.callee);
    if (isFunction(callee)) return this.#code.inline(callee, entry);
    // `f.with(options)(input)`
    if (callee.type === "CallExpression") {
      const of = methodOf(callee, "with");
      return of === undefined
        ? this.#foreign(call, this.#source.textOf(callee), entry)
        : this.#call({ ...call, callee: of.object as Expression }, entry);
    }
    // `f(input).with(options)`, `f(input).compensate(…)`
    const plain = withoutOptions(call);
    if (plain !== call) return this.#undone(compensationIn(call), this.#call(plain, entry));
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
    return this.#code.walks(fn) ? [{ from: id, kind: "sequence" }] : this.#code.inline(fn, [{ from: id, kind: "sequence" }]);
  }

  /** One of the SDK's effects. */
  #known(name: string, call: CallExpression, entry: readonly Exit[]): Exit[] | undefined {
    const effect = effectCall(name, call, (node) => this.#source.textOf(node));
    switch (effect?.shape) {
      case "leaf":
        return [{ from: this.#sketch.add(effect.kind, effect.name, entry), kind: "sequence" }];
      case "last":
        this.#code.ended({ from: this.#sketch.add("end", effect.name, entry), kind: "sequence" });
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
        this.#code.detached(exits);
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
      if (name === "__asyncGenerator") return this.#code.inline(inline[inline.length - 1] as FunctionLike, entry);
      const id = this.#sketch.add("call", name, entry);
      return inline.flatMap((fn) => this.#branch(fn as Expression, id));
    }
    const callee = bare(call.callee);
    const chained = callee.type === "MemberExpression" ? callee.object : callee;
    if (chained.type === "CallExpression") return [this.unknown(`computed: ${this.#source.textOf(call)}`, entry)];
    if (this.#locals.minified && callee.type === "Identifier") return [this.unknown(`${name}: its name is lost (minified source)`, entry)];
    const helps = call.arguments.some((argument) => argument.type === "Identifier" && this.#locals.contexts.has(argument.name));
    return [{ from: this.#sketch.add(helps ? "call" : "activity", name, entry), kind: "sequence" }];
  }

  unknown(name: string, entry: readonly Exit[]): Exit {
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
    return joined([this.unknown(`computed branches: ${this.#source.textOf(argument)}`, [{ from: id, kind: "branch" }])]);
  }

  #element(element: Expression | SpreadElement, id: string): Exit[] {
    return element.type === "SpreadElement" ? this.#branches(element, id) : this.#branch(element, id);
  }

  #branch(node: Expression | SpreadElement, id: string, label?: string): Exit[] {
    const entry: Exit[] = [{ from: id, kind: "branch", ...(label !== undefined && { label }) }];
    return joined(this.draw(node.type === "SpreadElement" ? node.argument : node, entry));
  }
}

/** The labels of the ways of a logical operator: to its right side, and past it. */
export const ways = { "&&": ["true", "false"], "||": ["false", "true"], "??": ["missing", "there"] } as const;
