/**
 * Conditions that a run waits for.
 *
 * 1. They are asked in the order in which they were opened, when everything that came in together has been handled; that one held is recorded, so that a
 *    replay goes on at the same place.
 */
import type { CallSite } from "../effects/effect.ts";
import type { CancelledError } from "../model/errors.ts";
import type { EffectId } from "../model/history.ts";
import { yesOrNo } from "./answer.ts";
import { lineOf } from "./call-site.ts";
import type { Commands } from "./commands.ts";
import type { Guarding } from "./guard.ts";
import { type Done, fulfilled, type Operation, type Outcome, rejected } from "./operation.ts";

export class Conditions {
  readonly #commands: Commands;
  readonly #owner: Guarding;
  #open: Map<EffectId, Condition> | undefined;

  constructor(commands: Commands, owner: Guarding) {
    this.#commands = commands;
    this.#owner = owner;
  }

  get size(): number {
    return this.#open?.size ?? 0;
  }

  /** Where they are waited for. */
  sites(): (CallSite | undefined)[] {
    return this.#all().map(({ site }) => site);
  }

  open(id: EffectId, until: () => boolean, site: CallSite | undefined, done: Done): Condition {
    const condition = new Condition(this, id, until, site, done);
    this.#open ??= new Map();
    this.#open.set(id, condition);
    return condition;
  }

  /** Takes it out; false when it was closed before. */
  close(condition: Condition): boolean {
    return this.#open?.get(condition.id) === condition && this.#open.delete(condition.id);
  }

  cancelled(condition: Condition): void {
    this.#commands.record({ type: "EffectCancelled", effect: condition.id });
  }

  /** Settles those that hold; false when none does. */
  settle(): boolean {
    if (this.size === 0) return false;
    let settled = false;
    for (const condition of this.#all()) {
      const outcome = this.ask(condition.until, condition.site);
      if (outcome === undefined || !this.close(condition)) continue;
      settled = true;
      this.#commands.record({ type: "ConditionMet", effect: condition.id }, condition.site);
      condition.done(outcome);
    }
    return settled;
  }

  /** What a wait comes to now; undefined when it has to go on. */
  ask(until: () => boolean, site: CallSite | undefined): Outcome | undefined {
    try {
      const answer: unknown = this.#owner.guarded(until);
      return yesOrNo(answer, () => nameOf(site)) ? fulfilled(undefined) : undefined;
    } catch (error) {
      return rejected(error);
    }
  }

  abandonAll(): void {
    for (const condition of this.#all()) condition.abandon();
  }

  #all(): Condition[] {
    return this.#open === undefined ? [] : [...this.#open.values()];
  }
}

function nameOf(site: CallSite | undefined): string {
  const line = site && lineOf(site);
  return `The question of condition()${line === undefined ? "" : ` at ${line}`}`;
}

export class Condition implements Operation {
  readonly id: EffectId;
  readonly until: () => boolean;
  readonly site: CallSite | undefined;
  readonly done: Done;
  readonly #conditions: Conditions;

  constructor(conditions: Conditions, id: EffectId, until: () => boolean, site: CallSite | undefined, done: Done) {
    this.#conditions = conditions;
    this.id = id;
    this.until = until;
    this.site = site;
    this.done = done;
  }

  cancel(reason: CancelledError): void {
    if (!this.#conditions.close(this)) return;
    this.#conditions.cancelled(this);
    this.done(rejected(reason));
  }

  abandon(): void {
    if (this.#conditions.close(this)) this.#conditions.cancelled(this);
  }
}
