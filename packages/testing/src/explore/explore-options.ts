/** What may be said to `explore`: checked before the first case is played. */
import { checkOptions, milliseconds } from "@wovyr/sdk/internal";
import { checkDate, checkFlag, checkFunction, checkOneOf, checkWhole, checkWorkflow, checkWorkflows, refuse, shown } from "../checks.ts";
import { checkLimits } from "../environment/environment-options.ts";
import type { ExploreOptions } from "./explore.ts";

/** How much is explored. */
export type Settings = {
  readonly crashes: "everywhere" | "none";
  readonly interleavings: number;
  readonly seed: number;
  readonly maxCases: number;
  readonly maxSteps: number;
  /** Milliseconds. */
  readonly patience: number;
};

const known: readonly (keyof ExploreOptions<unknown>)[] = [
  "workflows",
  "fakes",
  "events",
  "cancel",
  "crashes",
  "interleavings",
  "seed",
  "invariant",
  "maxCases",
  "maxSteps",
  "patience",
  "unfaked",
  "limits",
  "clock",
];
const mostCases = 100_000;
const mostSteps = 1_000_000;

export function settingsOf<O>(options: ExploreOptions<O>): Settings {
  const { crashes = "everywhere", interleavings = 50, seed = 1, maxCases = 2_000, maxSteps = 1_000, patience = "1m" } = options;
  return { crashes, interleavings, seed, maxCases, maxSteps, patience: milliseconds(patience, "`patience` of explore") };
}

export function checkExploreOptions<O>(workflow: unknown, options: ExploreOptions<O>): void {
  checkWorkflow(workflow, "what explore is given first");
  checkOptions(options, known, "explore");
  if (options.workflows !== undefined) checkWorkflows(options.workflows, "`workflows` of explore");
  const { fakes, events, patience } = options;
  if (fakes !== undefined && typeof fakes !== "function" && !Array.isArray(fakes))
    refuse(`\`fakes\` of explore must be a list of fakes, or a function that makes it, not ${shown(fakes)}`);
  if (events !== undefined && !Array.isArray(events))
    refuse(`\`events\` of explore must be a list: [delivery(Paid, { amount: 5 })], not ${shown(events)}`);
  for (const event of events ?? [])
    if (typeof event?.name !== "string" || "schema" in event || Object.isFrozen(event))
      refuse("each of the `events` of explore is made by delivery(event, payload) or publication(event, payload, { key })");
  checkFlag(options.cancel, "`cancel` of explore");
  checkOneOf(options.crashes, ["everywhere", "none"], "`crashes` of explore");
  checkOneOf(options.unfaked, ["run", "refuse"], "`unfaked` of explore");
  checkWhole(options.interleavings, 0, mostCases, "`interleavings` of explore");
  checkWhole(options.seed, 0, Number.MAX_SAFE_INTEGER, "`seed` of explore");
  checkWhole(options.maxCases, 1, mostCases, "`maxCases` of explore");
  checkWhole(options.maxSteps, 1, mostSteps, "`maxSteps` of explore");
  checkFunction(options.invariant, "`invariant` of explore");
  checkLimits(options.limits, "`limits` of explore");
  checkDate(options.clock, "`clock` of explore");
  if (patience !== undefined && milliseconds(patience, "`patience` of explore") < 1) refuse("`patience` of explore must be at least 1 ms");
}
