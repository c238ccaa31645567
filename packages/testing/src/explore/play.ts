/**
 * Plays one case: from the start of the run to the end of everything that it started.
 *
 * 1. Between two things that happen outside, the engine comes to rest; unless the case lets them happen together.
 * 2. Whoever calls the engine calls again until it has an answer, as a client with an idempotency key does.
 * 3. What holds for every case: it ends; the checks of `checkEndOfCase`; history is exactly what the store said is durable; no completed activity ran again.
 */

import type { AnyWorkflow, Workflow } from "@wovyr/sdk";
import type { Handle } from "@wovyr/sdk/client";
import {
  type ClosedStatus,
  decodePayload,
  type FailureView,
  type HistoryEvent,
  type InstanceState,
  viewOfFailure,
} from "@wovyr/sdk/internal";
import { memoryStore, openStatuses } from "@wovyr/server/internal";
import { checkEndOfCase } from "../assertions/end-of-case.ts";
import { allRows } from "../environment/all-rows.ts";
import type { ConductedAttempt } from "../environment/conductor.ts";
import { TestEnvironment } from "../environment/environment.ts";
import type { TestLimits } from "../environment/environment-options.ts";
import { type Speaker, speaks } from "../environment/last-words.ts";
import type { SeededRandom } from "../environment/seeded-random.ts";
import type { Fake } from "../fakes/fake.ts";
import { type Case, type Choice, caseText } from "./case.ts";
import type { ExploredEvent } from "./publication.ts";
import { Stage } from "./stage.ts";

export type Scene = {
  readonly workflow: Workflow<never, unknown>;
  readonly input: unknown;
  readonly workflows: readonly AnyWorkflow[];
  readonly fakes: () => readonly Fake[];
  /** Sent to the run, or published, at some time. */
  readonly events: readonly ExploredEvent[];
  readonly cancel: boolean;
  readonly limits: TestLimits;
  readonly clock: Date | undefined;
  readonly unfaked: "run" | "refuse";
  /** Steps of a case at most. */
  readonly maxSteps: number;
  /** Milliseconds of real time that one attempt may take. */
  readonly patience: number;
};

/** How a run of an exploration went. */
export type ExploredRun<O> = {
  /** Its case, for `explore.replay`. */
  readonly seed: string;
  readonly history: readonly HistoryEvent[];
  /** The workflow's variables at the end. */
  readonly variables: unknown;
  /** Attempts that ran, in the order in which they began; what a crash lost is among them. */
  readonly attempts: readonly ConductedAttempt[];
} & (
  | { readonly status: "Completed"; readonly output: O; readonly failure?: undefined }
  | { readonly status: Exclude<ClosedStatus, "Completed">; readonly output?: undefined; readonly failure: FailureView }
);

export type Played = {
  readonly run: ExploredRun<unknown> | undefined;
  /** What happened, in order. */
  readonly steps: readonly string[];
  /** The choices that were made. */
  readonly choices: readonly Choice[];
  readonly commits: number;
  readonly problems: readonly string[];
  readonly history: readonly HistoryEvent[];
  /** Whether the case's fault has struck. */
  readonly struck: boolean;
};

const id = "explored";
const cancellation = "the run is cancelled";
const plainest: Choice = { index: 0, together: false };

export async function play(scene: Scene, played: Case, random: SeededRandom | undefined): Promise<Played> {
  const stage = new Stage(played.fault);
  const env = new TestEnvironment(
    {
      workflows: scene.workflows,
      fakes: scene.fakes(),
      seed: played.seed,
      store: stage.around(memoryStore()),
      limits: scene.limits,
      unfaked: scene.unfaked,
      patience: scene.patience,
      evictAlways: played.evict,
      autoSkip: false,
      ...(scene.clock !== undefined && { clock: scene.clock }),
    },
    stage,
  );
  await env.restart();
  stage.engines = env;
  const player = new Player(env, stage, scene, played, random);
  const late: string[] = [];
  let outcome: Played;
  try {
    outcome = await player.play();
  } finally {
    player.over = true;
    await env[Symbol.asyncDispose]().catch((error: Error) => late.push(error.message));
  }
  return late.length === 0 ? outcome : { ...outcome, problems: [...outcome.problems, ...late] };
}

class Player implements Speaker {
  readonly problems: string[] = [];
  /** Nothing that happens from now on counts. */
  over = false;
  readonly #env: TestEnvironment;
  readonly #stage: Stage;
  readonly #scene: Scene;
  readonly #case: Case;
  readonly #random: SeededRandom | undefined;
  readonly #steps: string[] = [];
  readonly #choices: Choice[] = [];
  /** Steps that were chosen, or that a fault made. */
  #taken = 0;
  #sent = 0;
  #cancelled = false;
  #handle: Handle<unknown> | undefined;

  constructor(env: TestEnvironment, stage: Stage, scene: Scene, played: Case, random: SeededRandom | undefined) {
    this.#env = env;
    this.#stage = stage;
    this.#scene = scene;
    this.#case = played;
    this.#random = random;
    stage.began = (attempt) => this.#steps.push(`${attempt} begins`);
  }

  async play(): Promise<Played> {
    const { workflow, input } = this.#scene;
    this.#call(async () => {
      // A start that was lost is made again with the same run id and seed: what the workflow draws from them is the same then.
      if (this.#stage.written.length === 0) this.#env.random.restart();
      this.#handle = await this.#env.start(workflow, input as never, { id, idempotencyKey: id });
    });
    try {
      while (await this.#step());
    } catch (error) {
      this.problems.push(error instanceof Error ? error.message : String(error));
    }
    const state = this.#handle === undefined ? undefined : await this.#env.state(id);
    const history = state === undefined ? [] : await this.#env.history(id);
    if (this.problems.length === 0) await this.#check();
    return {
      run: state?.closed === true ? this.#ended(state, history) : undefined,
      steps: this.#steps,
      choices: this.#choices,
      commits: this.#stage.commits,
      problems: [...this.#stage.problems, ...this.problems],
      history,
      struck: this.#stage.struck,
    };
  }

  /** Lets the next thing happen; false when all is over. */
  async #step(): Promise<boolean> {
    await this.#rest();
    if (this.problems.length > 0) return false;
    if (this.#handle !== undefined && (await this.#over())) return false;
    const { maxSteps } = this.#scene;
    if (this.#taken >= maxSteps) {
      this.problems.push(
        `the run has not ended after ${maxSteps.toLocaleString("en")} steps: a workflow without an end is not explored as it is. Let an input, a fake or \`cancel\` end it here, or raise \`maxSteps\``,
      );
      return false;
    }
    const offered = await this.#offered();
    const choice = this.#choose(offered.length);
    const happening = offered[choice.index];
    // The plainest order cancels nothing: a run that only a cancellation could end stands still.
    if (happening === undefined || (happening.label === cancellation && choice === plainest)) {
      this.problems.push(await this.#standstill());
      return false;
    }
    this.#choices.push(choice);
    this.#note(happening.label);
    happening.happen();
    // The next one follows at once where the case says so.
    return choice.together ? this.#atOnce() : true;
  }

  /** Lets another thing happen before the engine has moved. */
  async #atOnce(): Promise<boolean> {
    const offered = this.#stage.held;
    const choice = this.#choose(offered.length);
    const happening = offered[choice.index];
    if (happening === undefined) return true;
    this.#choices.push({ ...choice, together: false });
    this.#note(`${happening.label}, at once`);
    this.#stage.take(happening);
    return true;
  }

  #note(step: string): void {
    this.#taken += 1;
    this.#steps.push(step);
  }

  get lastWords(): string {
    return `explore waits, in the case ${caseText({ ...this.#case, choices: this.#choices })} of workflow "${this.#scene.workflow.name}": ${this.#stage.running.join(", ")} is running, and nothing in this process can end it.`;
  }

  /** Waits until no attempt's body is running. */
  async #bodiesEnded(): Promise<void> {
    const { patience } = this.#scene;
    speaks(this, true);
    await this.#stage.bodiesEnded(patience);
    speaks(this, false);
    const { running } = this.#stage;
    if (running.length > 0)
      throw new Error(
        `${running.join(", ")} has been running for more than ${patience} ms of real time (\`patience\`), and holds everything up: fake it with something that ends`,
      );
  }

  /** Waits until nothing moves, with an engine that lives. */
  async #rest(): Promise<void> {
    for (;;) {
      await this.#env.settle();
      if (!this.#env.running) {
        const { frozen } = this.#stage;
        this.#note(frozen === undefined ? "the process dies; another starts" : "the process is stopped; another takes over");
        await this.#env.restart();
        await frozen?.thaw();
        this.#stage.frozen = undefined;
        continue;
      }
      await this.#bodiesEnded();
      await this.#env.settle();
      if (this.#env.running) return;
    }
  }

  /** Whether nothing is open any more. */
  async #over(): Promise<boolean> {
    const open = await this.#env.bareStore.listInstances("default", { statuses: openStatuses }, { limit: 1 });
    if (open.length === 0) return true;
    return (await this.#env.state(id)).closed && (await this.#offered()).length === 0;
  }

  async #offered(): Promise<{ readonly label: string; readonly happen: () => void }[]> {
    const { events, cancel } = this.#scene;
    const next = events[this.#sent];
    const due = await this.#env.nextDue();
    return [
      ...this.#stage.held.map((happening) => ({ label: happening.label, happen: () => this.#stage.take(happening) })),
      ...(next === undefined || this.#handle === undefined
        ? []
        : [{ label: `event ${next.name} is ${next.published === undefined ? "sent" : "published"}`, happen: () => this.#say(next) }]),
      ...(due === undefined ? [] : [{ label: "time passes", happen: () => this.#env.clock.advanceTo(due) }]),
      ...(cancel && !this.#cancelled && this.#handle !== undefined ? [{ label: cancellation, happen: () => this.#cancel() }] : []),
    ];
  }

  #choose(offered: number): Choice {
    const given = this.#case.choices[this.#choices.length];
    if (offered === 0) return plainest;
    if (given !== undefined) return { ...given, index: given.index % offered };
    if (this.#random === undefined || this.#taken >= this.#scene.maxSteps / 2) return plainest;
    return { index: this.#random.below(offered), together: this.#random.below(4) === 0 };
  }

  #say({ name, payload, idempotencyKey = `sent-${this.#sent}`, published }: ExploredEvent): void {
    this.#sent += 1;
    const event = { name } as never;
    const { client } = this.#env;
    this.#call(async () => {
      if (published === undefined) await client.handle(id).send(event, payload as never, { idempotencyKey } as never);
      else await client.publish(event, payload as never, { ...published, idempotencyKey } as never);
    });
  }

  #cancel(): void {
    this.#cancelled = true;
    this.#call(() => this.#env.client.handle(id).cancel());
  }

  /** Calls until there is an answer. A run that has closed takes nothing more, and that is no fault. */
  #call(call: () => Promise<void>): void {
    this.#env.insist(call).catch((error: Error & { code?: string }) => {
      if (error.code !== "INSTANCE_CLOSED" && !this.over) this.problems.push(`a call was refused: ${error.message}`);
    });
  }

  async #standstill(): Promise<string> {
    if (this.#handle === undefined) return "the start was never answered, and nothing can happen any more";
    this.#env.autoSkip = true;
    return this.#handle.result().then(
      () => "the run ended although nothing could happen",
      (error: Error) => error.message,
    );
  }

  async #check(): Promise<void> {
    this.problems.push(...(await this.#unwritten()));
    await checkEndOfCase(this.#env).catch((error: Error) => this.problems.push(error.message));
  }

  /** Whether every history is what the store said it is. */
  async #unwritten(): Promise<string[]> {
    const problems: string[] = [];
    const byRun = new Map<string, string[]>();
    for (const { run, events } of this.#stage.written) byRun.set(run, [...(byRun.get(run) ?? []), events]);
    for (const [run, events] of byRun) {
      const rows = await this.#env.bareStore.readHistory({ tenant: "default", run }, 1, allRows);
      if (rows.length !== events.length || rows.some((row, index) => row.events !== events[index]))
        problems.push(`the history of ${run} is not what was said to be durable: ${rows.length} turns instead of ${events.length}`);
    }
    return problems;
  }

  #ended(state: InstanceState, history: readonly HistoryEvent[]): ExploredRun<unknown> | undefined {
    const { outcome, variables } = state;
    if (outcome === undefined || outcome.status === "ContinuedAsNew") return undefined;
    const about = {
      seed: caseText({ ...this.#case, choices: this.#choices }),
      history,
      variables: variables === undefined ? undefined : decodePayload(variables),
      attempts: this.#stage.attempts,
    };
    return outcome.status === "Completed"
      ? { ...about, status: outcome.status, output: decodePayload(outcome.output) }
      : ({ ...about, status: outcome.status, failure: viewOfFailure(outcome.failure) } as ExploredRun<unknown>);
  }
}
