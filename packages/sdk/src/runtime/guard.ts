/**
 * Port: watches what workflow code calls while it runs, between a resume and the next yield, and wherever else a replay calls it.
 *
 * Whatever the runtime calls by itself (schemas, the function of a side effect), and what no replay calls (queries, validators of updates), runs outside
 * of it.
 */
import type { Effect } from "../effects/effect.ts";

export interface WorkflowGuard {
  /** Runs workflow code; what it leaves behind (microtasks, timers) is watched only as long as `inside` says true. */
  enter<T>(workflow: string, inside: () => boolean, run: () => T): T;
}

/** Whoever lets workflow code run under the guard of its run. */
export interface Guarding {
  /** Calls what is over when it returns; the effects that it makes go to `made`. */
  guarded<T>(run: () => T, made?: Effect<unknown>[]): T;
}
