import { branchList } from "./branches.ts";
import { CombinatorEffect } from "./combinator.ts";
import { type Branches, captureSite, type Results } from "./effect.ts";

/** Waits for every branch; the first failure cancels the others and is thrown. */
export function all<const B extends Branches>(branches: B): CombinatorEffect<Results<B>> {
  return new CombinatorEffect("all", branchList(branches, "all"), captureSite(all));
}
