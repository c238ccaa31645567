import { checkBranch } from "./branches.ts";
import { type Branch, type CallSite, captureSite, Effect, type ResultOf } from "./effect.ts";

/** Runs a branch to its end, also when what surrounds it is cancelled meanwhile. */
export class ShieldEffect<out T> extends Effect<T> {
  readonly kind = "shield";
  readonly branch: Branch;

  constructor(branch: Branch, site: CallSite = captureSite(ShieldEffect)) {
    super(site);
    this.branch = branch;
  }
}

/** Runs a branch that is not cancelled with its surroundings: a cancellation waits until it has ended. Only an immediate one and a termination do not. */
export function shield<B extends Branch>(branch: B): ShieldEffect<ResultOf<B>> {
  return new ShieldEffect(checkBranch(branch, "shield: the branch"), captureSite(shield));
}
