/**
 * Where an effect stands, read from its id.
 *
 * 1. `2` is a step of the root, `2.1` a branch of `2`, `2.1/0` a step in that branch, `2!timeout` a timer that belongs to `2`.
 * 2. `@name` was chosen by the author: the id does not say where it stands, and nothing in it is read.
 * 3. `~2` undoes something, and `~2#1` is its second try: the steps of that follow those of the first.
 * 4. `on:name/3` is the handler of an event, `u:2` that of an update: they were begun from outside of the root's sequence, and their steps are read as above.
 *    So is every id of a sort that is not known.
 */
import type { EffectId } from "../model/history.ts";

export type EffectPlace =
  /** A step of the generator `path`; the root is an empty text. */
  | { readonly kind: "step"; readonly path: EffectId; readonly index: number }
  | { readonly kind: "branch"; readonly of: EffectId; readonly index: number }
  /** A timer of the runtime's own, beside what `of` stands for. */
  | { readonly kind: "beside"; readonly of: EffectId; readonly what: string }
  /** Another try of what `of` undoes. */
  | { readonly kind: "again"; readonly of: EffectId }
  | { readonly kind: "chosen" }
  | { readonly kind: "outside" };

const parts = /^(.*)([/.])(\d{1,9})$/s;
const handler = /^(?:on:[^/]*\/\d{1,9}|u:\d{1,9})$/;
const again = /^(~\d{1,9})#\d{1,9}$/;
const beside = /^([^!]*)!(\w+)$/s;

/** Deeper than this an id is not taken apart. */
const deepest = 1_000;

export function placeOf(id: EffectId): EffectPlace {
  if (handler.test(id)) return { kind: "outside" };
  if (id.startsWith("@")) return { kind: "chosen" };
  if (id.length > deepest) return { kind: "outside" };
  if (/^\d{1,9}$/.test(id)) return { kind: "step", path: "", index: Number(id) };
  const tried = again.exec(id);
  if (tried !== null) return { kind: "again", of: tried[1] as string };
  const timer = beside.exec(id);
  if (timer !== null) return { kind: "beside", of: timer[1] as string, what: timer[2] as string };
  const [, head = "", mark, index] = parts.exec(id) ?? [];
  if (head === "" || index === undefined) return { kind: "outside" };
  return mark === "/" ? { kind: "step", path: head, index: Number(index) } : { kind: "branch", of: head, index: Number(index) };
}
