/**
 * Port: watches what workflow code calls while it runs, between a resume and the next yield.
 *
 * Whatever the runtime calls by itself (schemas, the function of a side effect) runs outside of it.
 */
export interface WorkflowGuard {
  /** Runs workflow code; what it leaves behind (microtasks, timers) is watched only as long as `inside` says true. */
  enter<T>(workflow: string, inside: () => boolean, run: () => T): T;
}
