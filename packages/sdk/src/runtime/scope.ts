/**
 * A scope of compensations: the run, or a saga in it.
 *
 * 1. What completes in it with something that undoes it is registered in it, in the order of completion.
 * 2. When it is over, what it still holds belongs to the scope around it, and so does whatever completes later.
 */
import type { Compensation } from "../effects/compensation.ts";
import type { CompensationPolicy } from "../model/compensation-policy.ts";
import type { EffectId } from "../model/history.ts";

/** Something that can be undone. */
export type Registered = {
  /** Counts what was registered in the run. */
  readonly number: number;
  readonly undoes: EffectId;
  readonly name: string;
  readonly undo: Compensation["undo"];
  /** What the effect came to; undefined as long as it is not known. */
  value: unknown;
  /** It was started and has not settled. */
  open: boolean;
  /** How often it was tried to undo it. */
  tries: number;
};

export class Scope {
  readonly policy: CompensationPolicy;
  /** What runs in it undoes something: nothing undoes that, unless it is in a saga of its own. */
  readonly undoing: boolean;
  readonly #around: Scope | undefined;
  #registered: Registered[] = [];
  #over = false;

  constructor(policy: CompensationPolicy, around: Scope | undefined, undoing = around?.undoing ?? false) {
    this.policy = policy;
    this.undoing = undoing;
    this.#around = around;
  }

  add(registered: Registered): void {
    if (this.#over) this.#around?.add(registered);
    else if (!this.undoing || this.#around !== undefined) this.#registered.push(registered);
  }

  /** Whether there is something to undo. */
  get empty(): boolean {
    return this.#registered.length === 0;
  }

  /** Of what there is to undo, in the order in which it was registered. */
  get names(): readonly string[] {
    return this.#registered.map(({ name }) => `"${name}"`);
  }

  /** Takes out what can be undone, the latest first. What has not settled stays, unless nothing is at work any more. */
  take(all: boolean): Registered[] {
    const taken = this.#registered.filter(({ open }) => all || !open).sort((a, b) => b.number - a.number);
    this.#registered = all ? [] : this.#registered.filter(({ open }) => open);
    return taken;
  }

  leave(): void {
    this.#over = true;
    const left = this.#registered;
    this.#registered = [];
    for (const registered of left) this.#around?.add(registered);
  }
}
