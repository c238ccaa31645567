/** An open effect that the outside settles: an activity, a timer, a wait for an event, a child. */
import type { ActivityEffect } from "../effects/activity.ts";
import type { EventEffect } from "../effects/await-event.ts";
import type { ChildEffect } from "../effects/child.ts";
import type { CallSite } from "../effects/effect.ts";
import type { CancelledError } from "../model/errors.ts";
import type { EffectId, TimerPurpose } from "../model/history.ts";
import type { Commands } from "./commands.ts";
import type { Done, Operation, Outcome } from "./operation.ts";
import { rejected } from "./operation.ts";

export type LeafWork =
  | { readonly kind: "activity"; readonly effect: ActivityEffect<unknown> }
  | { readonly kind: "timer"; readonly purpose: TimerPurpose }
  | { readonly kind: "event"; readonly effect: EventEffect<unknown> }
  | {
      readonly kind: "child";
      readonly effect: ChildEffect<unknown>;
      readonly childId: string;
    };

/** The open leaves of one run, by effect id, in the order of their creation. */
export class Leaves {
  readonly #open = new Map<EffectId, Leaf>();
  readonly #commands: Commands;

  constructor(commands: Commands) {
    this.#commands = commands;
  }

  get size(): number {
    return this.#open.size;
  }

  get(id: EffectId): Leaf | undefined {
    return this.#open.get(id);
  }

  values(): IterableIterator<Leaf> {
    return this.#open.values();
  }

  open(id: EffectId, work: LeafWork, site: CallSite | undefined, done: Done): Leaf {
    const leaf = new Leaf(this, id, work, site, done);
    this.#open.set(id, leaf);
    return leaf;
  }

  /** Takes the leaf out; false when it was closed before. */
  close(leaf: Leaf): boolean {
    return this.#open.get(leaf.id) === leaf && this.#open.delete(leaf.id);
  }

  cancelled(leaf: Leaf): void {
    this.#commands.record({ type: "EffectCancelled", effect: leaf.id });
  }
}

export class Leaf implements Operation {
  readonly id: EffectId;
  readonly work: LeafWork;
  readonly site: CallSite | undefined;
  readonly #leaves: Leaves;
  readonly #done: Done;

  constructor(leaves: Leaves, id: EffectId, work: LeafWork, site: CallSite | undefined, done: Done) {
    this.#leaves = leaves;
    this.id = id;
    this.work = work;
    this.site = site;
    this.#done = done;
  }

  settle(outcome: Outcome): void {
    if (this.#leaves.close(this)) this.#done(outcome);
  }

  cancel(reason: CancelledError): void {
    if (!this.#leaves.close(this)) return;
    this.#leaves.cancelled(this);
    this.#done(rejected(reason));
  }

  abandon(): void {
    if (this.#leaves.close(this)) this.#leaves.cancelled(this);
  }
}
