import { branchList } from "./branches.ts";
import { CombinatorEffect } from "./combinator.ts";
import { type Branches, captureSite, type ResultOf, type Settled } from "./effect.ts";

/** Waits for every branch and never fails: each result says whether it is a value or a reason. */
export function settled<const B extends Branches>(branches: B): CombinatorEffect<{ -readonly [K in keyof B]: Settled<ResultOf<B[K]>> }> {
  return new CombinatorEffect("settled", branchList(branches, "settled"), captureSite(settled));
}
