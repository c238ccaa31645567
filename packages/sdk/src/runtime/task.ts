/**
 * A branch that runs on its own: started by `spawn`, joined as often as wanted, cancelled by hand or when the generator that spawned it ends.
 */
import type { CallSite } from "../effects/effect.ts";
import { CancelledError } from "../model/errors.ts";
import type { EffectId } from "../model/history.ts";
import { closedOperation, type Done, type Operation, type Outcome } from "./operation.ts";

export class TaskState {
  readonly id: EffectId;
  /** Where it was spawned. */
  readonly site: CallSite | undefined;
  outcome: Outcome | undefined;
  operation: Operation = closedOperation;
  #joined = false;
  #joiners = new Set<Done>();
  #onClosed: (() => void)[] | undefined;

  constructor(id: EffectId, site?: CallSite) {
    this.id = id;
    this.site = site;
  }

  get closed(): boolean {
    return this.outcome !== undefined;
  }

  get failedUnseen(): boolean {
    return this.outcome !== undefined && !this.outcome.ok && !this.#joined && !(this.outcome.error instanceof CancelledError);
  }

  settle(outcome: Outcome): void {
    this.outcome = outcome;
    const joiners = [...this.#joiners];
    this.#joiners.clear();
    for (const join of joiners) join(outcome);
    const closed = this.#onClosed ?? [];
    this.#onClosed = undefined;
    for (const tell of closed) tell();
  }

  whenClosed(tell: () => void): void {
    if (this.closed) tell();
    else {
      this.#onClosed ??= [];
      this.#onClosed.push(tell);
    }
  }

  join(done: Done): Operation {
    this.#joined = true;
    if (this.outcome !== undefined) {
      done(this.outcome);
      return closedOperation;
    }
    this.#joiners.add(done);
    return new Join(this.#joiners, done);
  }
}

/** Waiting for a task; giving up the wait leaves the task alone. */
class Join implements Operation {
  readonly #joiners: Set<Done>;
  readonly #done: Done;
  constructor(joiners: Set<Done>, done: Done) {
    this.#joiners = joiners;
    this.#done = done;
  }
  cancel(reason: CancelledError): void {
    if (this.#joiners.delete(this.#done)) this.#done({ ok: false, error: reason });
  }
  abandon(): void {
    this.#joiners.delete(this.#done);
  }
}
