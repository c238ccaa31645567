/**
 * Two sequences of effects beside each other, as a unified diff: `  ` in both, `- ` only in history, `+ ` only in what the code asks for now.
 *
 * 1. Cancellations and taken events are left out, unless they tell where the code stopped.
 * 2. What history holds beyond the point that the code's run came to is no difference: it is told as the rest of history.
 * 3. Bounded in lines.
 */
import { diffArrays } from "diff";
import { differingPath, type Step } from "./effect-sequence.ts";
import type { FreeSteps } from "./free-run.ts";

const context = 3;
const maxLines = 40;

type Line = { readonly sign: " " | "-" | "+"; readonly step: Step };

/** `past` is what both agree on, `recorded` what history holds from turn number `turn` on, `free` what the code asks for from there on. */
export function sequenceDiff(past: readonly Step[], recorded: readonly Step[], free: FreeSteps, turn: number): string {
  const plain = linesOf(past.filter(isAsked), recorded.filter(isAsked), free.steps.filter(isAsked));
  const lines = isTelling(plain) ? plain : linesOf(past, recorded, free.steps);
  const reached = Math.max(turn, free.lastTurn);
  const end = free.closed ? lines.length : reachedEnd(lines, reached);
  const rest = lines.slice(end).filter(({ sign }) => sign === "-");
  const shown = [...lines.slice(0, end), ...lines.slice(end).filter(({ sign }) => sign !== "-")];
  return [...hunks(shown), ...restOf(rest.map(({ step }) => step)), ...guessNote(free.guessed)].join("\n");
}

/** Whether something else differs than that history goes on where the code stops. */
function isTelling(lines: readonly Line[]): boolean {
  const first = lines.findIndex(isChange);
  return first >= 0 && lines.slice(first).some(({ sign }) => sign !== "-");
}

const isAsked = (step: Step) => !step.derived;
const isChange = ({ sign }: Line) => sign !== " ";

function linesOf(past: readonly Step[], recorded: readonly Step[], made: readonly Step[]): Line[] {
  const lines: Line[] = past.map((step) => ({ sign: " ", step }));
  for (const part of diffArrays([...recorded], [...made], { comparator: (a, b) => a.key === b.key }))
    for (const step of part.value) lines.push({ sign: part.added ? "+" : part.removed ? "-" : " ", step });
  return lines;
}

/** Where the trailing steps begin that the code's run never came to. */
function reachedEnd(lines: readonly Line[], reached: number): number {
  let end = lines.length;
  for (let at = lines.length - 1; at >= 0; at--) {
    const { sign, step } = lines[at] as Line;
    if (sign === " " || (sign === "-" && step.turn <= reached)) break;
    if (sign === "-") end = at;
  }
  return end;
}

function hunks(lines: readonly Line[]): string[] {
  const near = new Set<number>();
  for (const [at, line] of lines.entries())
    if (isChange(line)) for (let beside = at - context; beside <= at + context; beside++) near.add(beside);
  const texts: string[] = [];
  let left = 0;
  const leave = () => {
    if (left > 0) texts.push(`  … ${left} more`);
    left = 0;
  };
  const changed = near.size > 0;
  for (const [at, line] of lines.entries()) {
    if (texts.length >= maxLines || (changed ? !near.has(at) : at < lines.length - 2 * context)) {
      left += 1;
      continue;
    }
    leave();
    texts.push(`${line.sign} ${line.step.label}${line.sign === "+" ? inputNote(line.step, lines) : ""}`);
  }
  leave();
  if (!changed && texts.length > 0) texts.push("  (the same effects: only when they are asked for, or what cancels them, differs)");
  return texts;
}

/** Tells a step of the same place and name from the recorded one. */
function inputNote(step: Step, lines: readonly Line[]): string {
  const twin = lines.find(({ sign, step: other }) => sign === "-" && other.label === step.label && other.effect === step.effect);
  if (twin?.step.input === undefined || step.input === undefined) return "";
  const path = differingPath(twin.step.input, step.input);
  return `  (another input${path === undefined || path === "" ? "" : ` at ${path}`})`;
}

function restOf(steps: readonly Step[]): string[] {
  if (steps.length === 0) return [];
  const names = steps.slice(0, 3).map(({ label }) => label);
  return [`  … history goes on with ${names.join(", ")}${steps.length > names.length ? ` and ${steps.length - names.length} more` : ""}`];
}

function guessNote(guessed: readonly string[]): string[] {
  return guessed.length === 0 ? [] : [`  (as if done, for history holds no outcome: ${guessed.join(", ")})`];
}
