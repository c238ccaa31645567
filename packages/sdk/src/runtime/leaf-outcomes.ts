/** What came of the effects that wait for the outside: facts of activities, children and timers, as the code hears of them. */
import type { WorkflowDefinition } from "../define/workflow-definition.ts";
import { ActivityError, WorkflowError, type WorkflowOutcome } from "../model/errors.ts";
import { errorOf } from "../model/failure.ts";
import { kindOf } from "../model/failure-kind.ts";
import type { EffectId, Incoming, Payload } from "../model/history.ts";
import { decodePayload } from "../model/payload.ts";
import type { Leaf, Leaves } from "./leaf.ts";
import { fulfilled, type Outcome, rejected } from "./operation.ts";

type Fact<T extends Incoming["type"]> = Extract<Incoming, { type: T }>;

export type OutcomeFact = Fact<
  "ActivityCompleted" | "ActivityFailed" | "ActivityDecided" | "ChildCompleted" | "ChildFailed" | "ChildRejected" | "TimerFired"
>;

export class LeafOutcomes {
  readonly #definition: WorkflowDefinition;
  readonly #leaves: Leaves;

  constructor(definition: WorkflowDefinition, leaves: Leaves) {
    this.#definition = definition;
    this.#leaves = leaves;
  }

  hear(fact: OutcomeFact): void {
    switch (fact.type) {
      case "ActivityCompleted":
      case "ChildCompleted":
        this.#leaf(fact)?.settle(decoded(fact.output));
        return;
      case "ActivityFailed":
        if (fact.paused === true) this.#paused(fact);
        else if (fact.retryAt === undefined) this.#activityFailed(fact);
        return;
      case "ActivityDecided":
        this.#activityDecided(fact);
        return;
      case "ChildFailed":
        this.#childFailed(fact);
        return;
      case "ChildRejected":
        this.#leaf(fact)?.settle(rejected(errorOf(fact.failure)));
        return;
      case "TimerFired":
        this.#leaf(fact)?.settle(fulfilled(undefined));
    }
  }

  #leaf({ effect }: { readonly effect: EffectId }): Leaf | undefined {
    return this.#leaves.get(effect);
  }

  #activityFailed(fact: Fact<"ActivityFailed">): void {
    const leaf = this.#leaf(fact);
    if (leaf?.work.kind !== "activity") return;
    const { definition } = leaf.work.effect;
    const cause = errorOf(fact.failure, [...(definition.errors ?? []), ...(this.#definition.errors ?? [])]);
    const attempts = fact.attempt === 1 ? "1 attempt" : `${fact.attempt} attempts`;
    const isOverBudget = fact.noRetry === "retryBudget";
    const why = isOverBudget ? " (the run's retry budget is used up)" : "";
    leaf.settle(
      rejected(
        new ActivityError(`activity "${definition.name}" failed after ${attempts}${why}: ${fact.failure.message}`, {
          activity: definition.name,
          attempts: fact.attempt,
          kind: fact.failure.kind ?? kindOf(cause),
          cause,
          ...(isOverBudget && { code: "RETRY_BUDGET_EXHAUSTED" }),
        }),
      ),
    );
  }

  /** Somebody decides what becomes of it. */
  #paused(fact: Fact<"ActivityFailed">): void {
    const leaf = this.#leaf(fact);
    if (leaf !== undefined) leaf.paused = fact;
  }

  #activityDecided(fact: Fact<"ActivityDecided">): void {
    const leaf = this.#leaf(fact);
    const failed = leaf?.paused;
    if (leaf === undefined || failed === undefined) return;
    leaf.paused = undefined;
    const { decision, output } = fact;
    if (decision === "fail") this.#activityFailed(failed);
    else if (decision === "resolve") leaf.settle(output === undefined ? fulfilled(undefined) : decoded(output));
  }

  #childFailed(fact: Fact<"ChildFailed">): void {
    const leaf = this.#leaf(fact);
    if (leaf?.work.kind !== "child") return;
    const { workflow } = leaf.work.effect;
    const { status, failure, compensation } = fact;
    const cause = errorOf(failure, [...(workflow.errors ?? []), ...(this.#definition.errors ?? [])]);
    leaf.settle(
      rejected(
        new WorkflowError(`child workflow "${workflow.name}" (${leaf.work.childId}) ended as ${status}: ${failure.message}`, {
          instanceId: leaf.work.childId,
          workflow: workflow.name,
          status: status as WorkflowOutcome,
          cause,
          ...(compensation !== undefined && { compensation: errorOf(compensation) }),
        }),
      ),
    );
  }
}

function decoded(payload: Payload): Outcome {
  try {
    return fulfilled(decodePayload(payload));
  } catch (error) {
    return rejected(error);
  }
}
