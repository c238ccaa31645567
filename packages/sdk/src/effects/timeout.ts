import { type Duration, milliseconds } from "../model/duration.ts";
import { checkBranch } from "./branches.ts";
import { type Branch, type CallSite, captureSite, Effect, type ResultOf } from "./effect.ts";

/** Runs a branch for a limited time. */
export class TimeoutEffect<out T> extends Effect<T> {
  readonly kind = "timeout";
  readonly branch: Branch;
  /** Milliseconds. */
  readonly after: number;

  constructor(branch: Branch, after: number, site: CallSite = captureSite(TimeoutEffect)) {
    super(site);
    this.branch = branch;
    this.after = after;
  }
}

/** Runs a branch; when `after` passes first, the branch is cancelled and `TimeoutError` thrown. */
export function timeout<B extends Branch>(branch: B, after: Duration): TimeoutEffect<ResultOf<B>> {
  return new TimeoutEffect(checkBranch(branch, "timeout: the branch"), milliseconds(after, "timeout"), captureSite(timeout));
}
