import { checkSaga, type SagaOptions } from "../model/compensation-policy.ts";
import { checkBranch } from "./branches.ts";
import { type Branch, type CallSite, captureSite, Effect, type ResultOf } from "./effect.ts";

/** Runs a branch that is undone when it does not complete. */
export class SagaEffect<out T> extends Effect<T> {
  readonly kind = "saga";
  readonly branch: Branch;
  readonly options: SagaOptions;

  constructor(branch: Branch, options: SagaOptions, site: CallSite = captureSite(SagaEffect)) {
    super(site);
    this.branch = branch;
    this.options = options;
  }
}

/**
 * A scope of compensations: when its branch does not complete, what the branch registered is undone before the error goes on. When it completes, that is
 * for the scope around it to undo. What the options leave out the workflow says.
 */
export function saga<B extends Branch>(branch: B, options: SagaOptions = {}): SagaEffect<ResultOf<B>> {
  checkSaga(options, "saga");
  return new SagaEffect(checkBranch(branch, "saga: the branch"), Object.freeze({ ...options }), captureSite(saga));
}
