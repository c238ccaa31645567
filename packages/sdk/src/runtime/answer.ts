/** What functions of the workflow's code answered that say something at once: a condition, a `match`, a validator, a handler. */
import { isFlow } from "../effects/branches.ts";
import { Effect } from "../effects/effect.ts";
import { AuthoringError } from "../model/errors.ts";
import { described } from "../model/unrun-effect.ts";

/** Whether it is a promise, whose rejection then harms nobody. */
export function isPromise(value: unknown): boolean {
  if (typeof value !== "object" || value === null || value instanceof Effect || !("then" in value) || typeof value.then !== "function")
    return false;
  Promise.resolve(value as PromiseLike<unknown>).catch(() => {});
  return true;
}

/** Throws when an answer is something that would have to run first. `whose` says who answered. */
export function checkAnswer(answer: unknown, whose: () => string): void {
  if (typeof answer !== "object" || answer === null) return;
  if (answer instanceof Effect) {
    const { what, at, write } = answer[described]();
    throw new AuthoringError(
      `${whose()} answered with an effect: ${what}${at === undefined ? "" : `, made at ${at}`}. Nothing of it has run. Write \`${write}\` in the workflow itself, and let the function look at the result.`,
      "EFFECT_NOT_YIELDED",
    );
  }
  if (isFlow(answer))
    throw new AuthoringError(
      `${whose()} answered with a generator, which was not run. Write \`yield*\` before it in the workflow itself, and let the function look at the result.`,
      "EFFECT_NOT_YIELDED",
    );
  if (isPromise(answer))
    throw new AuthoringError(
      `${whose()} answered with a promise. It is asked for an answer at once: put what waits into an activity, and look at its result.`,
      "FOREIGN_AWAIT",
    );
}

/** Yes or no. Throws when the answer would have to run first. */
export function yesOrNo(answer: unknown, whose: () => string): boolean {
  checkAnswer(answer, whose);
  return Boolean(answer);
}
