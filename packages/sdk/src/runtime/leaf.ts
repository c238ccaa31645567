/** An open effect that the outside settles: an activity, a timer, a wait for an event, a child. */
import type { ActivityEffect } from "../effects/activity.ts";
import type { EventEffect } from "../effects/await-event.ts";
import type { ChildEffect } from "../effects/child.ts";
import type { CallSite } from "../effects/effect.ts";
import type { CancelledError } from "../model/errors.ts";
import type { EffectId, Incoming, TimerPurpose } from "../model/history.ts";
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
  /** Children that the run no longer wants are told to undo what they did, and are waited for. */
  childrenCompensate = false;

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

  /** Asks a child to undo what it did; false when the leaf is none, or one that is left alone. */
  compensates({ id, work }: Leaf, reason: CancelledError): boolean {
    if (!this.childrenCompensate || work.kind !== "child" || work.effect.onParentClose === "abandon") return false;
    this.#commands.record({ type: "ChildCancelRequested", effect: id, reason: reason.message });
    return true;
  }

  cancelled(leaf: Leaf): void {
    this.#commands.record({ type: "EffectCancelled", effect: leaf.id });
  }
}

export class Leaf implements Operation {
  readonly id: EffectId;
  #work: LeafWork;
  readonly site: CallSite | undefined;
  /** The failure of an activity that waits for somebody to decide. */
  paused: Extract<Incoming, { type: "ActivityFailed" }> | undefined;
  readonly #leaves: Leaves;
  readonly #done: Done;
  /** Why the child was asked to undo what it did. */
  #asked: CancelledError | undefined;

  constructor(leaves: Leaves, id: EffectId, work: LeafWork, site: CallSite | undefined, done: Done) {
    this.#leaves = leaves;
    this.id = id;
    this.#work = work;
    this.site = site;
    this.#done = done;
  }

  get work(): LeafWork {
    return this.#work;
  }

  /** Another child, of this id, does the work. */
  restart(childId: string): void {
    if (this.#work.kind === "child") this.#work = { ...this.#work, childId };
  }

  settle(outcome: Outcome): void {
    if (!this.#leaves.close(this)) return;
    this.#done(this.#asked === undefined || outcome.ok ? outcome : rejected(this.#asked));
  }

  cancel(reason: CancelledError): void {
    if (this.#asked !== undefined) return;
    if (this.#leaves.get(this.id) === this && this.#leaves.compensates(this, reason)) {
      this.#asked = reason;
      return;
    }
    if (!this.#leaves.close(this)) return;
    this.#leaves.cancelled(this);
    this.#done(rejected(reason));
  }

  abandon(): void {
    if (this.#leaves.close(this)) this.#leaves.cancelled(this);
  }
}
