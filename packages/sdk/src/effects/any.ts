import { branchList } from "./branches.ts";
import { CombinatorEffect } from "./combinator.ts";
import { type Branches, captureSite, type Winner } from "./effect.ts";

/** Waits for the first branch that succeeds and cancels the others; throws an `AggregateError` when all fail. */
export function any<const B extends Branches>(branches: B): CombinatorEffect<Winner<B>> {
  return new CombinatorEffect("any", branchList(branches, "any"), captureSite(any));
}
