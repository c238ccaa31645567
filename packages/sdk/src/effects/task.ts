import { type CallSite, captureSite, Effect } from "./effect.ts";

/** A branch that runs beside its parent: `yield* task` joins it, as often as wanted. Made by `spawn`. */
export class Task<out T> extends Effect<T> {
  readonly kind = "task";
  readonly id: string;
  /** The run that it belongs to. */
  readonly owner: object;

  constructor(id: string, owner: object, site: CallSite = captureSite(Task)) {
    super(site);
    this.id = id;
    this.owner = owner;
  }

  /** Cancels the task; whoever joins it gets the `CancelledError`. */
  cancel(reason?: string): CancelTaskEffect {
    return new CancelTaskEffect(this, reason, captureSite(this.cancel));
  }
}

/** Cancels a task and waits until it has settled. */
export class CancelTaskEffect extends Effect<void> {
  readonly kind = "cancelTask";
  readonly task: Task<unknown>;
  readonly reason: string | undefined;

  constructor(task: Task<unknown>, reason: string | undefined, site: CallSite = captureSite(CancelTaskEffect)) {
    super(site);
    this.task = task;
    this.reason = reason;
  }
}
