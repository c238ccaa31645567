/**
 * Which effects a fiber made and never yielded: forgotten `yield*`.
 *
 * 1. What is made while a fiber steps is the fiber's. Only one fiber steps at a time in a process. What a plain handler makes is the workflow's own.
 * 2. An effect is used when it was yielded, by whichever fiber, or is part of one that was (a branch, a task to select from), or another was derived
 *    from it. The same on every replay, whether lines are remembered or not.
 * 3. A fiber that fails or is cancelled is not judged: it may not have come to the yield.
 * 4. One that was awaited and never used fails the fiber. Any other may be kept for a path that was not taken, so it is only told, once for each line.
 */
import { collectEffects, type Effect, markUsed } from "../effects/effect.ts";
import { AuthoringError } from "../model/errors.ts";
import { type Described, described, describedEffect } from "../model/unrun-effect.ts";
import type { Logger } from "./log-line.ts";
import { type Outcome, rejected } from "./operation.ts";

/** Effects that a fiber remembers as unused; what it makes beyond is not judged. */
const maxKept = 256;
/** Lines of one workflow that are told. */
const maxTold = 100;

const made: Effect<unknown>[] = [];

export function beginStep(): void {
  // Cheaper than a new length, which gives up the array's memory.
  while (made.length > 0) made.pop();
  collectEffects(made);
}

export function endStep(): void {
  collectEffects(undefined);
}

/** Calls workflow code that is over when it returns, within a step or between two: what it makes is not the stepping fiber's. */
export function collecting<T>(run: () => T, into: Effect<unknown>[] = []): T {
  const before = collectEffects(into);
  try {
    return run();
  } finally {
    collectEffects(before);
  }
}

/** After a step that ended with this value: those of `kept` and of the step that are unused, perhaps with some that were used since. */
export function keepUnrun(kept: Effect<unknown>[] | undefined, value: unknown): Effect<unknown>[] | undefined {
  const { length } = made;
  if (length === 1 && made[0] === value && partsOf(value as Parts) === undefined) return kept;
  if (typeof value === "object" && value !== null && described in value) markRun(value as Effect<unknown>);
  return withUnused(kept, made);
}

/** `kept`, with those of `more` that are unused. */
export function withUnused(kept: Effect<unknown>[] | undefined, more: readonly Effect<unknown>[]): Effect<unknown>[] | undefined {
  let list = kept;
  for (const effect of more) {
    if (effect.site.used === true) continue;
    list = list !== undefined && list.length >= maxKept ? unused(list) : (list ?? []);
    if (list.length < maxKept) list.push(effect);
  }
  return list;
}

/** What a fiber that came to its end comes to, given what it made and may not have used; without a `log` (on replay) nothing is told. */
export function judgeUnrun(kept: readonly Effect<unknown>[], outcome: Outcome, workflow: object, log: Logger | undefined): Outcome {
  const left = unused(kept);
  const awaited = left.find((effect) => effect.site.awaited === true);
  if (awaited !== undefined) {
    const { what, at, write } = awaited[described]();
    return rejected(
      new AuthoringError(
        `${what}${at === undefined ? "" : ` at ${at}`} was awaited (or returned by an async function) and never yielded, so nothing of it has run. Write \`${write}\` instead of \`await\`.`,
        "EFFECT_NOT_YIELDED",
      ),
    );
  }
  if (log !== undefined) for (const effect of left) tell(effect, workflow, log);
  return outcome;
}

/** What was thrown; an error instead of an effect. */
export function withoutEffect(thrown: unknown): unknown {
  let effect: Described | undefined;
  try {
    effect = describedEffect(thrown);
  } catch {
    // a proxy or a getter threw
  }
  if (effect === undefined) return thrown;
  const { what, at, write } = effect;
  return new AuthoringError(
    `An effect was thrown: ${what}${at === undefined ? "" : `, made at ${at}`}. Nothing of it has run. Throw an error; write \`${write}\` to run it.`,
    "EFFECT_NOT_YIELDED",
  );
}

type Parts = { readonly branches?: readonly unknown[]; readonly tasks?: readonly unknown[]; readonly branch?: unknown };

function partsOf(effect: Parts): readonly unknown[] | undefined {
  return effect.branches ?? effect.tasks ?? (effect.branch === undefined ? undefined : [effect.branch]);
}

/** The effect runs, with all that is part of it. */
export function markRun(effect: Effect<unknown>): void {
  markUsed(effect);
  for (const part of partsOf(effect as Parts) ?? [])
    if (typeof part === "object" && part !== null && described in part) markRun(part as Effect<unknown>);
}

const unused = (effects: readonly Effect<unknown>[]) => effects.filter((effect) => effect.site.used !== true);

const told = new WeakMap<object, Set<string>>();

function tell(effect: Effect<unknown>, workflow: object, log: Logger): void {
  const { what, at, write } = effect[described]();
  let lines = told.get(workflow);
  if (lines === undefined) {
    lines = new Set();
    told.set(workflow, lines);
  }
  const line = `${what} ${at}`;
  if (lines.has(line) || lines.size >= maxTold) return;
  lines.add(line);
  log.log(
    "warn",
    `${what} was made${at === undefined ? "" : ` at ${at}`} and never yielded, so nothing of it has run. If its \`yield*\` was forgotten, write \`${write}\`.`,
    { code: "EFFECT_NOT_YIELDED", ...(at !== undefined && { at }) },
  );
}
