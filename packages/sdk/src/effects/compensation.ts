/** How an effect is undone. */
import { functionKind } from "../define/function-kind.ts";
import { WovyrError } from "../model/errors.ts";
import { checkOptions } from "../model/option.ts";
import type { Branch } from "./effect.ts";

/** From when on there is something to undo: once it has completed, or as soon as it has been started. */
export type CompensateWhen = "completed" | "started";

export type CompensateOptions<W extends CompensateWhen = CompensateWhen> = {
  /** Default `completed`. With `started` what did not complete is undone as well: it may have had its effect, and its value is not known. */
  readonly when?: W | undefined;
};

/** What the function that undoes is given. */
export type Undone<T, W extends CompensateWhen> = W extends "started" ? T | undefined : T;

export type Compensation = {
  readonly undo: (value: never) => Branch;
  readonly when: CompensateWhen;
};

const whens: readonly unknown[] = ["completed", "started"] satisfies CompensateWhen[];

/** Throws INVALID_OPTION when it cannot undo anything. */
export function compensationOf(undo: unknown, options: CompensateOptions, what: string): Compensation {
  checkOptions(options, ["when"], `compensate of ${what}`);
  const { when = "completed" } = options;
  const kind = functionKind(undo);
  if (kind !== "function" && kind !== "async function*") {
    const wrong = kind === "async function" ? "not an async function: effects are yielded, not awaited" : "not anything else";
    throw new WovyrError(
      `compensate of ${what} takes a function that returns what undoes it, an effect or a generator of effects, ${wrong}: \`.compensate((value) => undo(value))\``,
      { code: "INVALID_OPTION" },
    );
  }
  if (!whens.includes(when))
    throw new WovyrError(`\`when\` of compensate of ${what} must be one of ${whens.join(", ")}`, { code: "INVALID_OPTION" });
  return Object.freeze({ undo: undo as Compensation["undo"], when });
}
