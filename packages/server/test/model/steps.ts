/**
 * What can happen next to the runs of a case, and what of it happens.
 *
 * 1. Drawn from what the models say is open, never from the engine: a step is three numbers, which mean something whatever is open.
 * 2. The least numbers end what is open first, well: a case whose numbers are used up comes to its end.
 * 3. Nobody waits for what is far away: what undoes and waits for itself in a circle is given more time again and again, and is ended from outside.
 */
import fc from "fast-check";
import { type Ending, isBlocked } from "./activities.ts";
import type { ModelledRun } from "./history.ts";
import type { EventName } from "./program.ts";

/** `together`: the next step is taken before anything has come of this one. */
export type Choice = { readonly pick: number; readonly how: number; readonly together: boolean };

export type Step =
  | { readonly kind: "activity"; readonly run: ModelledRun; readonly effect: string; readonly ending: Ending }
  | { readonly kind: "event"; readonly run: ModelledRun; readonly event: EventName; readonly n: number }
  | { readonly kind: "time"; readonly at: number }
  | { readonly kind: "cancel"; readonly run: ModelledRun; readonly mode: "graceful" | "immediate" | "compensate" }
  | { readonly kind: "terminate"; readonly run: ModelledRun }
  | { readonly kind: "pause" | "resume"; readonly run: ModelledRun; readonly before: number };

export const choice: fc.Arbitrary<Choice> = fc.record({
  pick: fc.nat(999),
  how: fc.nat(19),
  together: fc.boolean(),
});
export const firstChoice: Choice = { pick: 0, how: 0, together: false };

const endings: readonly Ending[] = ["done", "done", "done", "failed", "failed for good"];
const modes = ["graceful", "compensate", "immediate", undefined, "graceful", "compensate"] as const;
/** Milliseconds that time is moved on at most. */
const patience = 600_000;
/** One pick in so many is an end from outside. */
const endsEvery = 40;
/** One pick in so many is a pause, or its end. */
const pausesEvery = 10;

/** What happens; undefined when nothing can. `sent` counts events: each carries a number of its own. */
export function draw({ pick, how }: Choice, runs: readonly ModelledRun[], sent: number): Step | undefined {
  const open = openOf(runs);
  if (open.length === 0) return undefined;
  if (pick % endsEvery === endsEvery - 1) return endOf(open[how % open.length] as ModelledRun, pick);
  if (pick % pausesEvery === pausesEvery - 2) return pauseOf(open[how % open.length] as ModelledRun);
  const steps = [...open.flatMap((run) => stepsOf(run, how, sent)), ...times(open)];
  if (steps.length === 0) return undefined;
  if (sent < 4) steps.push({ kind: "event", run: open[0] as ModelledRun, event: how % 4 < 2 ? "red" : "blue", n: numberOf(sent, how) });
  return steps[pick % steps.length];
}

/** How runs that wait for each other, for themselves, or for what never comes are ended; one whose wait is shielded by force. */
export function breakUp(runs: readonly ModelledRun[]): Step | undefined {
  const open = openOf(runs);
  const [run] = [...open.filter(({ model }) => !model.asked), ...open];
  if (run === undefined) return undefined;
  const paused = open.find(({ model }) => model.paused);
  if (paused !== undefined) return pauseOf(paused);
  return run.model.asked ? { kind: "terminate", run } : { kind: "cancel", run, mode: "graceful" };
}

const openOf = (runs: readonly ModelledRun[]) => runs.filter((run) => run.open);

/** Different for each event, and even or odd. */
const numberOf = (sent: number, how: number) => sent * 2 + (how % 2);

function endOf(run: ModelledRun, pick: number): Step {
  const mode = modes[Math.floor(pick / endsEvery) % modes.length];
  return mode === undefined ? { kind: "terminate", run } : { kind: "cancel", run, mode };
}

/** `before`: how many came before it. */
function pauseOf(run: ModelledRun): Step {
  const kind = run.model.paused ? "resume" : "pause";
  return { kind, run, before: run.said[kind] };
}

function stepsOf(run: ModelledRun, how: number, sent: number): Step[] {
  const steps: Step[] = run.model.paused ? [pauseOf(run)] : [];
  for (const [effect, entry] of run.model.open) {
    if (entry.kind === "activity" && isBlocked(run.run, effect))
      steps.push({ kind: "activity", run, effect, ending: endings[how % endings.length] as Ending });
    if (entry.kind === "wait") steps.push({ kind: "event", run, event: entry.event, n: numberOf(sent, how) });
  }
  return steps;
}

/** The next times at which something is due: with a later one, several timers fire at once. */
function times(open: readonly ModelledRun[]): Step[] {
  const due = new Set<number>();
  for (const run of open.filter(({ model }) => !model.paused))
    for (const entry of run.model.open.values()) {
      if (entry.kind === "timer" && entry.due <= run.model.now + patience) due.add(entry.due);
      if (entry.kind === "activity" && entry.retryAt !== undefined) due.add(entry.retryAt);
    }
  return [...due]
    .sort((a, b) => a - b)
    .slice(0, 2)
    .map((at) => ({ kind: "time", at }));
}

export function stepText(step: Step): string {
  switch (step.kind) {
    case "activity":
      return `activity ${step.run.id} ${step.effect} ${step.ending}`;
    case "event":
      return `event ${step.event} ${step.n} to ${step.run.id}`;
    case "time":
      return `time ${step.at}`;
    default:
      return `${step.kind === "cancel" ? `cancel (${step.mode})` : step.kind} ${step.run.id}`;
  }
}
