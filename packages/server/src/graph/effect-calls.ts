/**
 * What a call means, by the name that is called.
 *
 * 1. The names are those under which the SDK exports its effects; a bundler's number behind one (`sleep2`) is not read.
 * 2. Nothing is resolved: who gives another function the name of an effect gets the picture of that effect.
 */

import type { NodeKind } from "@wovyr/sdk/internal";
import type { CallExpression, Expression, SpreadElement } from "acorn";

type Argument = Expression | SpreadElement;

export type EffectCall =
  | { readonly shape: "leaf"; readonly kind: NodeKind; readonly name: string }
  | { readonly shape: "group"; readonly name: string; readonly branches: Argument | undefined }
  | { readonly shape: "each"; readonly name: string; readonly branch: Argument | undefined }
  | { readonly shape: "scope"; readonly name: string; readonly branch: Argument | undefined; readonly detached: boolean }
  /** The run ends there. */
  | { readonly shape: "last"; readonly name: string };

/** The effect that a call of this name makes; undefined when it is none of the SDK's. */
export function effectCall(
  called: string,
  { arguments: args }: Pick<CallExpression, "arguments">,
  textOf: (node: Argument) => string,
): EffectCall | undefined {
  const [first, second] = args;
  const of = (argument: Argument | undefined) => (argument === undefined ? "" : ` ${worded(argument, textOf)}`);
  const leaf = (kind: NodeKind, name: string): EffectCall => ({ shape: "leaf", kind, name: name.trim() });
  const name = names.has(called) ? called : called.replace(/\d+$/, "");
  switch (name) {
    case "sleep":
      return leaf("timer", `sleep${of(first)}`);
    case "sleepUntil":
      return leaf("timer", `sleep until${of(first)}`);
    case "awaitEvent":
      return leaf("event", of(first));
    case "condition":
      return leaf("event", `condition${of(first)}`);
    case "human":
      return leaf("event", `human${of(first)}`);
    case "child":
      return leaf("child", of(first));
    case "sideEffect":
      return leaf("sideEffect", "side effect");
    case "patched":
      return leaf("sideEffect", `patched${of(first)}`);
    case "step":
      return leaf("activity", of(first));
    case "send":
      return leaf("activity", `send${of(second)}`);
    case "publish":
      return leaf("activity", `publish${of(first)}`);
    case "all":
    case "any":
    case "race":
    case "settled":
    case "select":
      return { shape: "group", name, branches: first };
    case "map":
      return { shape: "each", name: `map${of(first)}`, branch: second };
    case "spawn":
      return { shape: "scope", name, branch: first, detached: true };
    case "timeout":
      return { shape: "scope", name: `timeout${of(second)}`, branch: first, detached: false };
    case "shield":
    case "saga":
      return { shape: "scope", name, branch: first, detached: false };
    case "compensateNow":
      return leaf("compensation", "compensate now");
    case "continueAsNew":
      return { shape: "last", name: "continue as new" };
    default:
      return undefined;
  }
}

const names: ReadonlySet<string> = new Set([
  "sleep",
  "sleepUntil",
  "awaitEvent",
  "condition",
  "human",
  "child",
  "sideEffect",
  "patched",
  "step",
  "send",
  "publish",
  "all",
  "any",
  "race",
  "settled",
  "select",
  "map",
  "spawn",
  "timeout",
  "shield",
  "saga",
  "compensateNow",
  "continueAsNew",
]);

/** An argument in words: a text without its quotes, `duration(x)` as `x`, anything else as it is written. */
function worded(argument: Argument, textOf: (node: Argument) => string): string {
  if (argument.type === "Literal" && typeof argument.value === "string") return argument.value;
  if (argument.type === "CallExpression" && argument.callee.type === "Identifier" && argument.callee.name === "duration") {
    const [text] = argument.arguments;
    if (text !== undefined) return worded(text, textOf);
  }
  return textOf(argument);
}
