/**
 * Runs a workflow in every way that it can go: with a fault at each commit and each attempt, and with what happens outside in random orders.
 *
 * 1. Every case must end, be replay-clean, leave nothing open, and keep what was durable (explore-run.ts).
 * 2. Without an `invariant` a fault must not change the outcome, but for the times and the generated ids in it. With one, it says what is allowed: of
 *    faults, and of orders.
 * 3. The same options and seed play the same cases. A case that fails is made smaller as long as it fails, and its text plays it again.
 */
import type { AnyWorkflow, Duration, Workflow } from "@wovyr/sdk";
import { refuse, shown } from "../checks.ts";
import type { TestLimits } from "../environment/environment-options.ts";
import { SeededRandom } from "../environment/seeded-random.ts";
import type { Fake } from "../fakes/fake.ts";
import { AnyFake } from "../fakes/fake.ts";
import { historyText } from "../history/history-text.ts";
import { activityFaults, type Case, caseText, commitFaults, type Fault, parseCase, plainCase } from "./case.ts";
import { checkExploreOptions, type Settings, settingsOf } from "./explore-options.ts";
import { outcomeDifference } from "./outcome.ts";
import { type ExploredRun, type Played, play, type Scene } from "./play.ts";
import type { ExploredEvent } from "./publication.ts";

export type { ExploredRun } from "./play.ts";

export type ExploreOptions<O> = {
  /** Workflows beside the explored one: its children. */
  readonly workflows?: readonly AnyWorkflow[];
  /** Stand-ins; they are reset before each case. A function makes them anew, and may reset what they write to. */
  readonly fakes?: readonly Fake[] | (() => readonly Fake[]);
  /** Events that are sent to the run (`delivery`) or published (`publication`), in this order, at times that the case chooses. */
  readonly events?: readonly ExploredEvent[];
  /** Whether orders may cancel the run. Default false. */
  readonly cancel?: boolean;
  /** `everywhere` (default): every kind of fault at every commit and attempt. */
  readonly crashes?: "everywhere" | "none";
  /** Random orders of what happens outside, a third of them with a fault or with a replay before every turn; default 50. */
  readonly interleavings?: number;
  /** Default 1. */
  readonly seed?: number;
  /** Throws, or answers with false, when a run is not what it may be. It may be asynchronous. */
  readonly invariant?: (run: ExploredRun<O>) => unknown;
  /** Cases at most, 1 to 100,000, default 2,000: where there are more faults, a sample of them is taken. */
  readonly maxCases?: number;
  /** Steps of one case at most, default 1,000: what has not ended then is taken as endless. */
  readonly maxSteps?: number;
  /** Real time that one attempt of an activity may take; default "1m". */
  readonly patience?: Duration;
  /** What happens to activities without a fake: `run` (default) or `refuse`. */
  readonly unfaked?: "run" | "refuse";
  readonly limits?: TestLimits;
  readonly clock?: Date;
};

/** What was explored. */
export type Exploration = {
  readonly cases: number;
  /** Commits and attempts of the undisturbed run. */
  readonly commits: number;
  readonly attempts: number;
  /** Whether only a sample of the faults was taken. */
  readonly sampled: boolean;
};

/** A case that failed: `seed` plays it again. */
export class ExplorationError extends Error {
  override readonly name = "ExplorationError";
  readonly seed: string;
  readonly problems: readonly string[];

  constructor(workflow: string, seed: string, problems: readonly string[], { steps, history }: Played) {
    const list = (lines: readonly string[]) => lines.map((line) => `\n  ${line.replaceAll("\n", "\n  ")}`).join("");
    super(
      `workflow "${workflow}" does not stand this case: ${seed}${list(problems)}\n\nWhat happened:${list(steps)}\n\nHistory:\n${historyText(history)}\n\nPlay it again with: await explore.replay("${seed}", ${workflow}, …)`,
    );
    this.seed = seed;
    this.problems = problems;
  }
}

/** Plays every case; rejects with an `ExplorationError` at the first that fails. */
async function exploreAll<I, O>(workflow: Workflow<I, O>, input: NoInfer<I>, options: ExploreOptions<O> = {}): Promise<Exploration> {
  const explorer = new Explorer(workflow, input, options);
  return explorer.explore();
}

/** Plays one case again, by the text that was printed for it. */
async function replayCase<I, O>(seed: string, workflow: Workflow<I, O>, input: NoInfer<I>, options: ExploreOptions<O> = {}): Promise<void> {
  const played = parseCase(seed);
  await new Explorer(workflow, input, options).again(played);
}

export const explore = Object.assign(exploreAll, { replay: replayCase });

const shrinkTries = 200;

class Explorer<I, O> {
  readonly #workflow: Workflow<I, O>;
  readonly #options: ExploreOptions<O>;
  readonly #scene: Scene;
  readonly #settings: Settings;
  #undisturbed: Played | undefined;

  constructor(workflow: Workflow<I, O>, input: I, options: ExploreOptions<O>) {
    checkExploreOptions(workflow, options);
    const settings = settingsOf(options);
    this.#settings = settings;
    this.#workflow = workflow;
    this.#options = options;
    this.#scene = {
      workflow: workflow as Workflow<never, unknown>,
      input,
      workflows: [workflow as AnyWorkflow, ...(options.workflows ?? []).filter((other) => other !== (workflow as AnyWorkflow))],
      fakes: () => fakesOf(options),
      events: options.events ?? [],
      cancel: options.cancel ?? false,
      limits: options.limits ?? {},
      clock: options.clock,
      unfaked: options.unfaked ?? "run",
      maxSteps: settings.maxSteps,
      patience: settings.patience,
    };
  }

  async explore(): Promise<Exploration> {
    const { crashes, interleavings, maxCases: most } = this.#settings;
    const plain = await this.#undisturbedRun();
    const { commits } = plain;
    const attempts = plain.run?.attempts.length ?? 0;
    const faults = crashes === "none" ? [] : everyFault(commits, attempts);
    const chosen = sample(faults, Math.max(1, most - 1 - interleavings), this.#settings.seed);
    for (const fault of chosen) await this.#mustStand({ ...plainCase(this.#settings.seed), fault });
    const orders = Math.min(interleavings, most - 1 - chosen.length);
    for (let order = 0; order < orders; order++) await this.#mustStandOrder(order, faults);
    return { cases: 1 + chosen.length + orders, commits, attempts, sampled: chosen.length < faults.length };
  }

  async again(played: Case): Promise<void> {
    await this.#undisturbedRun();
    const outcome = await play(this.#scene, played, undefined);
    const problems = await this.#problems(outcome, played);
    if (problems.length > 0) throw new ExplorationError(this.#workflow.name, caseText(played), problems, outcome);
    const { fault } = played;
    if (fault === undefined || outcome.struck) return;
    const [count, what] = isOfCommits(fault) ? [outcome.commits, "commit"] : [outcome.run?.attempts.length ?? 0, "attempt"];
    refuse(`the fault of the case "${caseText(played)}" never struck: this run has only ${count} ${what}${count === 1 ? "" : "s"}`);
  }

  /** The run as it goes when nothing goes wrong, and everything happens in the plainest order. */
  async #undisturbedRun(): Promise<Played> {
    const plain = plainCase(this.#settings.seed);
    const played = await play(this.#scene, plain, undefined);
    const problems = await this.#problems(played, plain);
    if (problems.length > 0) throw new ExplorationError(this.#workflow.name, caseText(plain), problems, played);
    this.#undisturbed = played;
    return played;
  }

  async #mustStand(played: Case): Promise<void> {
    const outcome = await play(this.#scene, played, undefined);
    if ((await this.#problems(outcome, played)).length > 0) await this.#fail(played);
  }

  async #mustStandOrder(order: number, faults: readonly Fault[]): Promise<void> {
    const random = new SeededRandom(this.#settings.seed * 65_537 + order);
    const fault = faults.length > 0 && random.below(3) === 0 ? random.pick(faults) : undefined;
    const drawn: Case = { ...plainCase(this.#settings.seed), evict: random.below(3) === 0, ...(fault !== undefined && { fault }) };
    const outcome = await play(this.#scene, drawn, random);
    const played = { ...drawn, choices: outcome.choices };
    if ((await this.#problems(outcome, played)).length > 0) await this.#fail(played);
  }

  async #problems({ problems, run }: Played, played: Case): Promise<string[]> {
    if (problems.length > 0 || run === undefined) return problems.length > 0 ? [...problems] : ["the run has no outcome"];
    const { invariant } = this.#options;
    if (invariant !== undefined) {
      try {
        return (await invariant(run as ExploredRun<O>)) === false ? ["the invariant does not hold: it answered with false"] : [];
      } catch (error) {
        return [`the invariant does not hold: ${error instanceof Error ? error.message : String(error)}`];
      }
    }
    const first = this.#undisturbed?.run;
    const difference = first === undefined || played.choices.length > 0 ? undefined : outcomeDifference(first, run);
    if (difference === undefined) return [];
    const cause = played.fault === undefined ? "the outcome is not the same every time: it changes" : "the fault changes the outcome";
    return [`${cause} ${difference}; when the workflow allows that, say so with an \`invariant\``];
  }

  /** Makes a failing case as small as it gets, and throws it. */
  async #fail(failing: Case): Promise<never> {
    let smallest = failing;
    let tries = 0;
    const fails = async (candidate: Case) => {
      tries += 1;
      const outcome = await play(this.#scene, candidate, undefined);
      return (await this.#problems(outcome, candidate)).length > 0;
    };
    for (let smaller = true; smaller && tries < shrinkTries; ) {
      smaller = false;
      for (const candidate of smallerCases(smallest)) {
        if (tries >= shrinkTries) break;
        if (!(await fails(candidate))) continue;
        smallest = candidate;
        smaller = true;
        break;
      }
    }
    const outcome = await play(this.#scene, smallest, undefined);
    const seed = caseText({ ...smallest, choices: outcome.choices.slice(0, smallest.choices.length) });
    throw new ExplorationError(this.#workflow.name, seed, await this.#problems(outcome, smallest), outcome);
  }
}

function fakesOf<O>({ fakes = [] }: ExploreOptions<O>): readonly Fake[] {
  const made = typeof fakes === "function" ? fakes() : fakes;
  if (!Array.isArray(made)) refuse(`\`fakes\` of explore must make a list of fakes, not ${shown(made)}`);
  for (const fake of made) if (fake instanceof AnyFake) fake.reset();
  return made;
}

function everyFault(commits: number, attempts: number): Fault[] {
  const numbered = (kinds: readonly Fault["kind"][], count: number) =>
    Array.from({ length: count }, (_, index) => kinds.map((kind) => ({ kind, number: index + 1 }))).flat();
  return [...numbered(commitFaults, commits), ...numbered(activityFaults, attempts)];
}

/** All of them, or so many, in their order. */
function sample<T>(all: readonly T[], size: number, seed: number): readonly T[] {
  if (all.length <= size) return all;
  const random = new SeededRandom(seed);
  const left = all.map((item, index) => ({ item, index }));
  const taken = Array.from({ length: size }, () => left.splice(random.below(left.length), 1)[0] as (typeof left)[number]);
  return taken.sort((a, b) => a.index - b.index).map(({ item }) => item);
}

/** Simpler cases, the simplest first: without the fault, without eviction, with fewer and plainer choices. */
function* smallerCases({ seed, fault, evict, choices }: Case): Generator<Case> {
  const kept = { seed, evict, choices, ...(fault !== undefined && { fault }) };
  if (fault !== undefined) yield { seed, evict, choices };
  if (evict) yield { ...kept, evict: false };
  for (let keep = 0; keep < choices.length; keep = keep === 0 ? 1 : keep * 2) yield { ...kept, choices: choices.slice(0, keep) };
  for (const at of choices.keys()) yield { ...kept, choices: choices.filter((_, other) => other !== at) };
  for (const [at, { index, together }] of choices.entries()) {
    const changed = (choice: Case["choices"][number]) => ({ ...kept, choices: choices.map((old, other) => (other === at ? choice : old)) });
    if (together) yield changed({ index, together: false });
    if (index > 0) yield changed({ index: 0, together });
  }
}

const isOfCommits = ({ kind }: Fault) => (commitFaults as readonly string[]).includes(kind);
