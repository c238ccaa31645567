/**
 * What a run undoes when it, or a saga in it, does not come to its end.
 *
 * 1. Registering records nothing: a replay registers the same.
 * 2. Whether a scope is unwound is asked of its policy once; from then on history says so, whatever the policy says by then.
 * 3. A run that ends badly and left something behind says so, wherever in it that was.
 */
import type { Compensation } from "../effects/compensation.ts";
import type { CallSite } from "../effects/effect.ts";
import { type CompensationPolicy, type SagaOptions, withCompensation } from "../model/compensation-policy.ts";
import { CancelledError, CompensationError } from "../model/errors.ts";
import type { CompensationDecision, EffectId } from "../model/history.ts";
import { ofRun } from "../model/open-compensation.ts";
import type { Commands } from "./commands.ts";
import { closedOperation, type Done, fulfilled, type Operation, rejected } from "./operation.ts";
import { type Registered, Scope } from "./scope.ts";
import { idOf, type LeftBehind, Unwinding, type UnwindingOwner, type UnwindingPlan } from "./unwinding.ts";

/** How something ended without coming to its end: it failed, the run was cancelled, or it belonged to what was cancelled within the run. */
type Ending = "failure" | "cancel" | "closed";

export interface CompensationsOwner extends UnwindingOwner {
  /** Set while the run is being cancelled; true when what it did is to be undone whatever its policy says. */
  readonly cancelling: { readonly compensate: boolean } | undefined;
}

export class Compensations {
  readonly run: Scope;
  readonly #owner: CompensationsOwner;
  readonly #commands: Commands;
  /** What undoes runs in it: nothing undoes that. */
  readonly #undoing: Scope;
  readonly #unwindings = new Set<Unwinding>();
  readonly #left: LeftBehind[] = [];
  #count = 0;

  constructor(policy: CompensationPolicy, owner: CompensationsOwner, commands: Commands) {
    this.#owner = owner;
    this.#commands = commands;
    this.run = new Scope(policy, undefined);
    this.#undoing = new Scope(policy, undefined, true);
  }

  /** Registers an effect when there is something to undo; returns whom to tell what it came to. */
  watch({ undo, when }: Compensation, undoes: EffectId, name: string, scope: Scope = this.run, done: Done): Done {
    const register = (value: unknown, open: boolean): Registered => {
      const registered = { number: this.#count++, undoes, name, undo, value, open, tries: 0 };
      scope.add(registered);
      return registered;
    };
    if (when === "completed")
      return (outcome) => {
        if (outcome.ok) register(outcome.value, false);
        done(outcome);
      };
    const registered = register(undefined, true);
    return (outcome) => {
      registered.open = false;
      if (outcome.ok) registered.value = outcome.value;
      done(outcome);
    };
  }

  /** A saga; `begin` starts its branch in the scope that it is given. */
  saga(
    effect: EffectId,
    options: SagaOptions,
    around: Scope = this.run,
    site: CallSite | undefined,
    begin: BeginBranch,
    done: Done,
  ): Operation {
    const scope = new Scope(withCompensation(around.policy, options), around);
    let at = begin(scope, (outcome) => {
      if (outcome.ok || !this.#wants(scope, effect, outcome.error)) {
        scope.leave();
        done(outcome);
        return;
      }
      const { error } = outcome;
      at = this.#unwind(scope, { effect, registered: scope.take(true), site, cause: { error } }, (left) => {
        scope.leave();
        done(left.length === 0 ? outcome : rejected(notUndone(left, error)));
      });
    });
    return {
      cancel: (reason) => at.cancel(reason),
      abandon: () => {
        at.abandon();
        scope.leave();
      },
      undoing: () => at.undoing?.() === true,
    };
  }

  /** Undoes what a scope holds, because the code says so. */
  now(effect: EffectId, scope: Scope = this.run, site: CallSite | undefined, done: Done): Operation {
    const wanted = this.#commands.replaying ? this.#commands.replaysNext("CompensationStarted", effect) : scope.policy.on !== "never";
    const registered = wanted ? scope.take(false) : [];
    if (registered.length === 0) {
      done(fulfilled(undefined));
      return closedOperation;
    }
    return this.#unwind(scope, { effect, registered, site, cause: undefined, onFailure: "fail" }, (left) =>
      done(left.length === 0 ? fulfilled(undefined) : rejected(notUndone(left))),
    );
  }

  /** Undoes what the run did, when it is to; undefined when it is not. */
  rollback(error: unknown, done: () => void): Operation | undefined {
    if (!this.#wants(this.run, ofRun, error)) return undefined;
    return this.#unwind(this.run, { effect: ofRun, registered: this.run.take(true), site: undefined, cause: { error } }, done);
  }

  decide(effect: EffectId, decision: CompensationDecision): void {
    for (const unwinding of this.#unwindings)
      if (unwinding.waitsFor(effect)) {
        unwinding.decide(effect, decision);
        return;
      }
  }

  /** What was not undone in the whole run; undefined when there is nothing. */
  get notUndone(): CompensationError | undefined {
    return this.#left.length === 0 ? undefined : notUndone(this.#left);
  }

  /** Says what the run leaves behind that another run would have to undo, and cannot. */
  warnOfForgotten(): void {
    const { policy, names } = this.run;
    if (names.length === 0 || policy.on === "never") return;
    const listed = `${names.slice(0, listedNames).join(", ")}${names.length > listedNames ? ` and ${names.length - listedNames} more` : ""}`;
    this.#owner.log(
      "warn",
      `the run continues as new, and what undoes its effects ends with it: nobody undoes ${listed} any more. Undo it before (compensateNow), or hand on with the input what is to be undone`,
      { compensations: names.length },
    );
  }

  #unwind(
    scope: Scope,
    plan: Omit<UnwindingPlan, "order" | "onFailure"> & Partial<Pick<UnwindingPlan, "onFailure">>,
    done: (left: readonly LeftBehind[]) => void,
  ): Operation {
    const { order, onFailure } = scope.policy;
    const unwinding = new Unwinding(this.#owner, this.#commands, this.#undoing, { order, onFailure, ...plan }, (left) => {
      this.#unwindings.delete(unwinding);
      this.#left.push(...left);
      done(left);
    });
    this.#unwindings.add(unwinding);
    unwinding.start();
    return {
      cancel: () => {},
      abandon: () => {
        unwinding.abandon();
        this.#unwindings.delete(unwinding);
        for (const registered of unwinding.unsettled) scope.add(registered);
      },
      undoing: () => unwinding.undoing(),
    };
  }

  /** Whether a scope that ended with this error is unwound. */
  #wants(scope: Scope, effect: EffectId, error: unknown): boolean {
    if (scope.empty) return false;
    if (this.#commands.replaying) return this.#commands.replaysNext("CompensationStarted", effect);
    const { on } = scope.policy;
    const { cancelling } = this.#owner;
    const ending: Ending = !(error instanceof CancelledError) ? "failure" : cancelling === undefined ? "closed" : "cancel";
    if (ending === "cancel" && cancelling?.compensate === true) return on !== "never";
    if (typeof on === "function") return this.#asked(on, error);
    return on === "always" || on === ending || (ending === "closed" && (on === "failure" || on === "cancel"));
  }

  #asked(on: (error: unknown) => boolean, error: unknown): boolean {
    try {
      return on(error);
    } catch (thrown) {
      this.#owner.log("error", "`on` of the compensation threw; what was done is undone", { error: thrown });
      return true;
    }
  }
}

/** Compensations that a warning names. */
const listedNames = 10;

type BeginBranch = (scope: Scope, done: Done) => Operation;

/** Failures that an error holds. */
const maxFailures = 50;

function notUndone(left: readonly LeftBehind[], cause?: unknown): CompensationError {
  const shown = left.slice(0, maxFailures);
  const reason = (error: unknown) => (error instanceof Error ? error.message : String(error));
  const list = shown.map(
    ({ registered: { name, undoes }, outcome, error }) =>
      `"${name}" (effect ${undoes}) ${outcome === "failed" ? `failed: ${reason(error)}` : "was skipped"}`,
  );
  const more = left.length > shown.length ? `, and ${left.length - shown.length} more` : "";
  return new CompensationError(`not everything was undone: the compensation of ${list.join("; of ")}${more}`, {
    failures: shown.map(({ registered, outcome }) => ({
      effect: idOf(registered),
      undoes: registered.undoes,
      name: registered.name,
      outcome,
    })),
    errors: shown.map(({ error }) => error),
    ...(cause !== undefined && { cause }),
  });
}
