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
  #asked = false;

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

  /** Whether something is being undone in it. Tasks may wait for each other in a circle. */
  undoing(): boolean {
    if (this.#asked) return false;
    this.#asked = true;
    const undoing = this.operation.undoing?.() === true;
    this.#asked = false;
    return undoing;
  }

  join(done: Done): Operation {
    this.#joined = true;
    if (this.outcome !== undefined) {
      done(this.outcome);
      return closedOperation;
    }
    this.#joiners.add(done);
    return new Join(this, this.#joiners, done);
  }
}

/** The tasks of a generator, which end with it. */
export class OwnedTasks {
  readonly #tasks: TaskState[] = [];

  add(task: TaskState): void {
    this.#tasks.push(task);
  }

  get all(): readonly TaskState[] {
    return this.#tasks;
  }

  /** Cancels those that are open, and those that come meanwhile; tells when none is left. */
  close(reason: CancelledError, closed: () => void): void {
    const open = this.#tasks.filter((task) => !task.closed);
    if (open.length === 0) {
      closed();
      return;
    }
    let left = open.length;
    for (const task of open) {
      task.whenClosed(() => {
        left -= 1;
        if (left === 0) this.close(reason, closed);
      });
    }
    for (const task of open) task.operation.cancel(reason);
  }

  abandon(reason: CancelledError): void {
    for (const task of this.#tasks) {
      task.operation.abandon();
      // Others may have joined it.
      if (!task.closed) task.settle({ ok: false, error: reason });
    }
  }
}

/** Waiting for a task; giving up the wait leaves the task alone. */
class Join implements Operation {
  readonly #task: TaskState;
  readonly #joiners: Set<Done>;
  readonly #done: Done;
  constructor(task: TaskState, joiners: Set<Done>, done: Done) {
    this.#task = task;
    this.#joiners = joiners;
    this.#done = done;
  }
  cancel(reason: CancelledError): void {
    if (this.#joiners.delete(this.#done)) this.#done({ ok: false, error: reason });
  }
  abandon(): void {
    this.#joiners.delete(this.#done);
  }
  undoing(): boolean {
    return this.#task.undoing();
  }
}
