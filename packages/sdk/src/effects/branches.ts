import { WovyrError } from "../model/errors.ts";
import { type Branch, type Branches, Effect } from "./effect.ts";

/** How many branches one effect may have; the runtime refuses more when it is yielded. */
export const maxBranches = 10_000;

export type BranchList = {
  readonly branches: readonly Branch[];
  /** The names of a record of branches; undefined for an array or tuple. */
  readonly keys: readonly string[] | undefined;
};

/** Lists what a combinator was given; throws INVALID_OPTION where something is no branch. */
export function branchList(given: Branches, what: string): BranchList {
  if (Array.isArray(given)) {
    for (let index = 0; index < given.length; index++) checkBranch(given[index], `${what}: branch ${index}`);
    return { branches: Object.freeze([...given]), keys: undefined };
  }
  if (typeof given !== "object" || given === null || isBranch(given)) {
    throw new WovyrError(`${what} takes an array or a record of branches, not ${describe(given)}`, { code: "INVALID_OPTION" });
  }
  const keys = Object.keys(given);
  const branches = keys.map((key) => checkBranch((given as Readonly<Record<string, unknown>>)[key], `${what}: branch ${key}`));
  return { branches: Object.freeze(branches), keys: Object.freeze(keys) };
}

/** Returns `value` when it is an effect, a generator of effects, or a function (which must return one of the two); else INVALID_OPTION. */
export function checkBranch(value: unknown, what: string): Branch {
  if (isBranch(value)) return value;
  throw new WovyrError(`${what} is ${describe(value)}; a branch is an effect, a generator of effects or a function that returns one`, {
    code: "INVALID_OPTION",
  });
}

function isBranch(value: unknown): value is Branch {
  return value instanceof Effect || typeof value === "function" || isFlow(value);
}

/** Whether `value` is a generator object. */
export function isFlow(value: unknown): value is AsyncGenerator<unknown, unknown, unknown> {
  return (
    typeof value === "object" && value !== null && Symbol.asyncIterator in value && typeof (value as { next?: unknown }).next === "function"
  );
}

function describe(value: unknown): string {
  if (value === null || value === undefined) return String(value);
  if (value instanceof Effect) return "a single effect";
  if (typeof value !== "object") return `a ${typeof value}`;
  if (Array.isArray(value)) return "an array";
  if (typeof (value as { then?: unknown }).then === "function") return "a promise (run it in an activity or in `step(name, fn)`)";
  if (isFlow(value)) return "a generator";
  return "an object";
}
