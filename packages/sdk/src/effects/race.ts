import { branchList } from "./branches.ts";
import { CombinatorEffect } from "./combinator.ts";
import { type Branches, captureSite, type Winner } from "./effect.ts";

/** Waits for the first branch that ends, well or badly, and cancels the others. */
export function race<const B extends Branches>(branches: B): CombinatorEffect<Winner<B>> {
  return new CombinatorEffect("race", branchList(branches, "race"), captureSite(race));
}
