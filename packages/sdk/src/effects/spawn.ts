import { checkBranch } from "./branches.ts";
import { type Branch, type CallSite, captureSite, Effect, type ResultOf } from "./effect.ts";
import type { Task } from "./task.ts";

/** Starts a branch and goes on; its result is the task. */
export class SpawnEffect<out T> extends Effect<Task<T>> {
  readonly kind = "spawn";
  readonly branch: Branch;

  constructor(branch: Branch, site: CallSite = captureSite(SpawnEffect)) {
    super(site);
    this.branch = branch;
  }
}

/** Starts a branch beside this one; a task that nobody joins is cancelled when its generator ends. */
export function spawn<B extends Branch>(branch: B): SpawnEffect<ResultOf<B>> {
  return new SpawnEffect(checkBranch(branch, "spawn: the branch"), captureSite(spawn));
}
