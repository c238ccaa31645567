/**
 * The fakes of one environment, applied.
 *
 * 1. A faked workflow is replaced by one of the same name and version whose only step is the fake's answer: it stays an instance with a history.
 * 2. At most one fake stands for each thing.
 */
import type { ActivityContext, AnyWorkflow } from "@wovyr/sdk";
import { ActivityError } from "@wovyr/sdk";
import { type ActivityDefinition, ActivityEffect, noOptions } from "@wovyr/sdk/internal";
import { refuse, shown } from "../checks.ts";
import { AnyFake, type Fake } from "./fake.ts";

export class Fakes {
  /** What to register: the given workflows, with those that are faked replaced or added. */
  readonly workflows: readonly AnyWorkflow[];
  /** By name of the event. */
  readonly events = new Map<string, AnyFake>();
  readonly #activities = new Map<string, AnyFake>();
  /** Steps of stand-ins, which answer by themselves. */
  readonly #answers = new Set<ActivityDefinition>();

  constructor(fakes: readonly Fake[], workflows: readonly AnyWorkflow[]) {
    const standIns = new Map<string, AnyWorkflow>();
    for (const fake of fakes) {
      if (!(fake instanceof AnyFake)) refuse(`\`fakes\` takes what \`fake(…)\` returned, not ${shown(fake)}`);
      const known = fake.kind === "workflow" ? standIns : fake.kind === "event" ? this.events : this.#activities;
      if (known.has(fake.target))
        refuse(`two fakes stand for ${fake.kind} "${fake.target}": give it one, whose function tells the cases apart`);
      if (fake.kind === "event") this.events.set(fake.target, fake);
      else if (fake.workflow === undefined) this.#activities.set(fake.target, fake);
      else standIns.set(fake.target, this.#standIn(fake, fake.workflow));
    }
    const kept = workflows.map((workflow) => standIns.get(workflow.name) ?? workflow);
    const added = [...standIns.values()].filter((standIn) => !kept.includes(standIn));
    this.workflows = [...kept, ...added];
  }

  /** Who answers for an activity; undefined: it answers itself. */
  answering(definition: ActivityDefinition): AnyFake | undefined {
    return this.#answers.has(definition) ? undefined : this.#activities.get(definition.name);
  }

  /** Whether an activity is itself a fake's answer. */
  isAnswer(definition: ActivityDefinition): boolean {
    return this.#answers.has(definition);
  }

  #standIn(fake: AnyFake, { name, version, definition }: AnyWorkflow): AnyWorkflow {
    const answer: ActivityDefinition = {
      name,
      retry: { maxAttempts: 1 },
      ...(definition.errors !== undefined && { errors: definition.errors }),
      run: (input, ctx) => fake.answer(callOf(input, ctx), ctx),
    };
    this.#answers.add(answer);
    const run = async function* (input: unknown) {
      try {
        return yield* new ActivityEffect<unknown>(answer, input, noOptions);
      } catch (error) {
        throw error instanceof ActivityError && error.cause !== undefined ? error.cause : error;
      }
    };
    return Object.freeze({ name, version, definition: Object.freeze({ ...definition, run }) }) as unknown as AnyWorkflow;
  }
}

export const callOf = (input: unknown, { attempt, instanceId, idempotencyKey }: ActivityContext) => ({
  input,
  attempt,
  instanceId,
  idempotencyKey,
});
