/**
 * Undoes what one scope holds.
 *
 * 1. Each compensation is a fiber of its own, `~n` for what was registered as number n, `~n#1` when it is tried again. What it yields is neither cancelled
 *    with what is undone nor bounded by the time for clean-up.
 * 2. One after another, what completed last first; or at once, at most `parallelCompensations` of them.
 * 3. One that fails is stuck until somebody decides, or is left behind, by the policy. The others are undone all the same.
 * 4. What is recorded says what is undone and how: a replay follows it, whatever the policy says by then.
 */
import { isFlow } from "../effects/branches.ts";
import { type CallSite, Effect } from "../effects/effect.ts";
import type { CompensationFailurePolicy, CompensationOrder } from "../model/compensation-policy.ts";
import { AuthoringError } from "../model/errors.ts";
import { failureOf } from "../model/failure.ts";
import type { CompensationDecision, EffectId } from "../model/history.ts";
import { widthOf } from "../model/open-compensation.ts";
import type { Commands } from "./commands.ts";
import type { Logger } from "./log-line.ts";
import type { Done, Operation, Outcome } from "./operation.ts";
import type { Registered, Scope } from "./scope.ts";
import { withoutEffect } from "./unrun.ts";

export interface UnwindingOwner extends Logger {
  newFiber(path: EffectId, generator: AsyncGenerator<unknown, unknown, unknown>, done: Done, scope: Scope): Operation;
}

export type UnwindingPlan = {
  /** What it belongs to: a saga, a `compensateNow`, or the run. */
  readonly effect: EffectId;
  readonly registered: readonly Registered[];
  readonly order: CompensationOrder;
  readonly onFailure: CompensationFailurePolicy;
  /** Why; undefined where the code asked for it. */
  readonly cause: { readonly error: unknown } | undefined;
  readonly site: CallSite | undefined;
};

/** What was not undone. */
export type LeftBehind = { readonly registered: Registered; readonly outcome: "failed" | "skipped"; readonly error: unknown };

type Undoing = { readonly registered: Registered; operation: Operation | undefined; error: unknown; stuck: boolean };

export const idOf = ({ number }: Registered): EffectId => `~${number}`;

export class Unwinding implements Operation {
  readonly #owner: UnwindingOwner;
  readonly #commands: Commands;
  readonly #scope: Scope;
  readonly #plan: UnwindingPlan;
  readonly #done: (left: readonly LeftBehind[]) => void;
  readonly #open = new Map<EffectId, Undoing>();
  readonly #left: LeftBehind[] = [];
  #order: CompensationOrder;
  #onFailure: CompensationFailurePolicy;
  #next = 0;
  #over = false;

  /** `scope` is the one that compensations run in. */
  constructor(owner: UnwindingOwner, commands: Commands, scope: Scope, plan: UnwindingPlan, done: (left: readonly LeftBehind[]) => void) {
    this.#owner = owner;
    this.#commands = commands;
    this.#scope = scope;
    this.#plan = plan;
    this.#done = done;
    this.#order = plan.order;
    this.#onFailure = plan.onFailure;
  }

  start(): void {
    const { effect, registered, order, onFailure, cause, site } = this.#plan;
    const recorded = this.#commands.record(
      {
        type: "CompensationStarted",
        effect,
        order,
        onFailure,
        compensations: registered.map((each) => ({ effect: idOf(each), undoes: each.undoes, name: each.name })),
        ...(cause !== undefined && { failure: failureOf(withoutEffect(cause.error)) }),
      },
      site,
    );
    this.#order = recorded.order;
    this.#onFailure = recorded.onFailure;
    this.#fill();
  }

  /** What undoes is not cancelled. */
  cancel(): void {}

  abandon(): void {
    this.#over = true;
    for (const { operation } of this.#open.values()) operation?.abandon();
  }

  undoing(): boolean {
    return !this.#over;
  }

  /** What has not been undone, and was not left behind. */
  get unsettled(): Registered[] {
    return [...[...this.#open.values()].map(({ registered }) => registered), ...this.#plan.registered.slice(this.#next)];
  }

  /** Whether it waits for somebody to decide on this compensation. */
  waitsFor(effect: EffectId): boolean {
    return this.#open.get(effect)?.stuck === true;
  }

  decide(effect: EffectId, decision: CompensationDecision): void {
    const undoing = this.#open.get(effect);
    if (undoing?.stuck !== true) return;
    undoing.stuck = false;
    if (decision === "retry") {
      this.#begin(undoing);
      return;
    }
    this.#open.delete(effect);
    if (decision === "skip") this.#left.push({ registered: undoing.registered, outcome: "skipped", error: undoing.error });
    this.#fill();
  }

  #fill(): void {
    const { registered } = this.#plan;
    while (this.#next < registered.length && this.#open.size < widthOf(this.#order)) {
      const next = registered[this.#next++] as Registered;
      const undoing: Undoing = { registered: next, operation: undefined, error: undefined, stuck: false };
      this.#open.set(idOf(next), undoing);
      this.#begin(undoing);
    }
    if (this.#over || this.#open.size > 0) return;
    this.#over = true;
    this.#done(this.#left);
  }

  #begin(undoing: Undoing): void {
    const { registered } = undoing;
    const again = registered.tries++;
    const path = again === 0 ? idOf(registered) : `${idOf(registered)}#${again}`;
    undoing.operation = this.#owner.newFiber(path, undo(registered), (outcome) => this.#ended(undoing, outcome), this.#scope);
  }

  #ended(undoing: Undoing, outcome: Outcome): void {
    const { registered } = undoing;
    const effect = idOf(registered);
    if (outcome.ok) {
      this.#commands.record({ type: "CompensationCompleted", effect });
      this.#open.delete(effect);
      this.#fill();
      return;
    }
    undoing.error = withoutEffect(outcome.error);
    const failure = failureOf(undoing.error);
    const about = { compensation: effect, undoes: registered.undoes, error: undoing.error };
    const what = `what "${registered.name}" (effect ${registered.undoes}) did could not be undone`;
    if (this.#onFailure === "pause") {
      undoing.stuck = true;
      this.#commands.record({ type: "CompensationStuck", effect, failure });
      this.#owner.log("error", `${what}, and compensation ${effect} waits to be retried, skipped or resolved: ${failure.message}`, about);
      return;
    }
    this.#commands.record({ type: "CompensationFailed", effect, failure });
    this.#owner.log("error", `${what}: ${failure.message}`, about);
    this.#left.push({ registered, outcome: "failed", error: undoing.error });
    this.#open.delete(effect);
    this.#fill();
  }
}

/** Calls the author's function in the first step of the fiber, so that it is judged like any workflow code. */
async function* undo({ undo: call, value, undoes }: Registered): AsyncGenerator<unknown, unknown, unknown> {
  const given: unknown = call(value as never);
  const branch: unknown = typeof given === "function" ? given() : given;
  if (branch instanceof Effect) return yield branch;
  if (isFlow(branch)) return yield* branch;
  throw new AuthoringError(
    `What undoes effect ${undoes} returned neither an effect nor an async generator. Write \`.compensate((value) => undo(value))\` or \`.compensate(async function* (value) { … })\`.`,
    "FOREIGN_YIELD",
  );
}
