/**
 * One history against the code of today.
 *
 * 1. It is compared as the engine compares it, lines remembered; nothing is executed and nothing recorded.
 * 2. Where they part, the code is run once more from there, freely, to show what it asks for instead.
 */
import { DeterminismError } from "@wovyr/sdk";
import type { Execution, ExecutionLimits, Turn, WorkflowDefinition } from "@wovyr/sdk/internal";
import { EffectSequence } from "./effect-sequence.ts";
import { freeRun } from "./free-run.ts";
import type { RecordedHistory } from "./recorded-history.ts";
import { ReplayBench } from "./replay-bench.ts";
import type { Divergence, ReplayProblem } from "./replay-report.ts";
import { sequenceDiff } from "./sequence-diff.ts";

/** Recorded steps that a diff looks at. */
const maxRecorded = 400;

export type ReplayRunOptions = { readonly limits: ExecutionLimits; readonly run: string };

/** Where the code parts from this history, or what else stops it; empty when it replays. */
export async function replayRun(
  definition: WorkflowDefinition,
  { turns }: RecordedHistory,
  options: ReplayRunOptions,
): Promise<{ readonly divergence?: Divergence; readonly problem?: ReplayProblem }> {
  const lastYield = new LastYield();
  const bench = new ReplayBench(definition, turns, { ...options, lines: true });
  const { instance, failure } = await bench.replay(turns, ({ execution }) => execution && lastYield.follow(execution));
  if (failure === undefined) return {};
  if (!(failure instanceof DeterminismError) || failure.seq === undefined) {
    const at = failure instanceof DeterminismError ? failure.site : undefined;
    return { problem: { message: failure.message, ...(at !== undefined && { at }) } };
  }
  const { seq, expected = "", got = "" } = failure;
  const at = failure.site ?? instance.execution?.waitingAt()[0] ?? lastYield.line;
  const index = turns.findIndex((turn) => turn.seq > instance.state.tail);
  const { diff, thrown } = await diffFrom(definition, turns, index, options);
  const last = turns.reduce((sum, turn) => sum + turn.events.length, 0);
  const note = seq > last ? cutOff : failure.patches;
  return {
    divergence: {
      seq,
      expected,
      got: got.endsWith("(failed)") && thrown !== undefined ? `${got} with ${thrown}` : got,
      ...(at !== undefined && { at, asked: failure.site !== undefined }),
      diff,
      ...(note !== undefined && { note }),
    },
  };
}

const cutOff =
  "This is beyond the last recorded event: either the code asks for more than it did, or this history ends in the middle of a turn, cut off when it was saved.";

type Instead = { readonly diff: string; readonly thrown?: string };

/** What the code asks for instead of what history holds from turn `index` on, and what it throws where it ends so. */
async function diffFrom(
  definition: WorkflowDefinition,
  turns: readonly Turn[],
  index: number,
  options: ReplayRunOptions,
): Promise<Instead> {
  const past = turns.slice(0, index);
  const future = turns.slice(index);
  const bench = new ReplayBench(definition, turns, { ...options, lines: true });
  const { instance, failure } = await bench.replay(past);
  if (failure !== undefined || instance.execution === undefined) return { diff: "" };
  const free = await freeRun(instance.execution, future, past, bench.turns);
  const sequence = new EffectSequence();
  const add = (turn: Turn) => {
    for (const fact of turn.events) sequence.add(fact, turn.seq);
  };
  past.forEach(add);
  const { length } = sequence.steps;
  for (const turn of future) if (sequence.steps.length < length + maxRecorded) add(turn);
  const thrown = free.steps.findLast((step) => step.failure !== undefined)?.failure;
  const diff = sequenceDiff(sequence.steps.slice(0, length), sequence.steps.slice(length), free, future[0]?.seq ?? 0);
  return { diff, ...(thrown !== undefined && { thrown }) };
}

/** The line that made the effect which was begun last. */
class LastYield {
  #execution: Execution | undefined;
  #site: { stack?: string } | undefined;

  follow(execution: Execution): void {
    const { interpreter } = execution;
    const begin: (typeof interpreter)["begin"] = interpreter.begin.bind(interpreter);
    interpreter.begin = (effect, ...rest) => {
      this.#site = effect.site;
      return begin(effect, ...rest);
    };
    this.#execution = execution;
  }

  get line(): string | undefined {
    return this.#execution?.siteText(this.#site, "at").replace(/^ at (.*)\.$/, "$1") || undefined;
  }
}
