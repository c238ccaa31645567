/**
 * What a run has to undo, as its history tells it.
 *
 * 1. Of one unwinding as many are running as its width allows; what is stuck keeps its place until somebody decides.
 * 2. Those of a run stay, so that it can be seen what was undone; those of a saga are forgotten when all of them are over.
 */
import type { Failure } from "./failure.ts";
import type { CompensationDecision, EffectId, PlannedCompensation } from "./history.ts";

export type CompensationState = "pending" | "running" | "stuck" | "done" | "failed" | "skipped" | "resolved";

export type OpenCompensation = {
  readonly undoes: EffectId;
  readonly name: string;
  state: CompensationState;
  /** How often it was tried. */
  tries: number;
  failure?: Failure;
  note?: string;
};

/** The id of a run's own unwinding. */
export const ofRun = "~";
/** Whether an effect belongs to what undoes something. */
export const isUndoing = (effect: EffectId): boolean => effect.startsWith(ofRun);
/** Compensations of one unwinding that are at work at once, where they are in parallel. */
export const parallelCompensations = 100;

export const widthOf = (order: "reverse" | "parallel"): number => (order === "parallel" ? parallelCompensations : 1);

type Unwinding = { readonly width: number; readonly left: Set<EffectId>; readonly all: readonly EffectId[] };

const decided = { retry: "running", skip: "skipped", resolve: "resolved" } as const satisfies Record<
  CompensationDecision,
  CompensationState
>;

export class OpenCompensations {
  readonly byEffect = new Map<EffectId, OpenCompensation>();
  readonly #unwindings = new Map<EffectId, Unwinding>();

  started(unwinding: EffectId, order: "reverse" | "parallel", planned: readonly PlannedCompensation[]): void {
    const all = planned.map(({ effect }) => effect);
    for (const { effect, undoes, name } of planned) {
      // One that was given up before it was over is begun anew.
      const tries = this.byEffect.get(effect)?.tries ?? 0;
      for (const { left } of this.#unwindings.values()) left.delete(effect);
      this.byEffect.set(effect, { undoes, name, state: "pending", tries });
    }
    this.#unwindings.set(unwinding, { width: widthOf(order), left: new Set(all), all });
    this.#begin(unwinding);
  }

  ended(effect: EffectId, state: "done" | "failed" | "stuck", failure?: Failure): void {
    this.#move(effect, state, failure === undefined ? {} : { failure });
  }

  decided(effect: EffectId, decision: CompensationDecision, note: string | undefined): void {
    const tries = decision === "retry" ? { tries: (this.byEffect.get(effect)?.tries ?? 0) + 1 } : {};
    this.#move(effect, decided[decision], { ...tries, ...(note !== undefined && { note }) });
  }

  #move(effect: EffectId, state: CompensationState, more: Partial<OpenCompensation>): void {
    const compensation = this.byEffect.get(effect);
    if (compensation === undefined) return;
    Object.assign(compensation, { state, ...more });
    if (state === "stuck" || state === "running") return;
    for (const [id, { left }] of this.#unwindings) if (left.delete(effect)) this.#begin(id);
  }

  #begin(id: EffectId): void {
    const unwinding = this.#unwindings.get(id);
    if (unwinding === undefined) return;
    let free = unwinding.width;
    for (const effect of unwinding.left) {
      if (free === 0) break;
      free -= 1;
      const compensation = this.byEffect.get(effect);
      if (compensation?.state === "pending") Object.assign(compensation, { state: "running", tries: compensation.tries + 1 });
    }
    if (unwinding.left.size > 0) return;
    this.#unwindings.delete(id);
    if (id !== ofRun) for (const effect of unwinding.all) this.byEffect.delete(effect);
  }
}
