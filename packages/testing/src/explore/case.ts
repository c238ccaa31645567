/**
 * One way in which a run can go, as text: `1:crash-after-commit-3:evict:order-2.0+1`.
 *
 * 1. Seed of the environment, then at most one fault, then whether every turn is replayed, then the choices of what happens next; where they end, the
 *    first thing on offer is taken.
 * 2. A `+` after a choice: the next one follows before anything has moved.
 */
import { WovyrError } from "@wovyr/sdk";
import { shown } from "../checks.ts";

/** What goes wrong, in the flush or the attempt with this number (from 1). */
export type FaultKind = (typeof commitFaults)[number] | (typeof activityFaults)[number];
export type Fault = { readonly kind: FaultKind; readonly number: number };

/** In order: the process dies before, or after the commit; the store refuses the connection; it commits and its answer is lost; it does not take the turns; the process is stopped and another takes over. */
export const commitFaults = [
  "crash-before-commit",
  "crash-after-commit",
  "fail-commit",
  "lose-answer-of-commit",
  "refuse-commit",
  "freeze-at-commit",
] as const;
/** The process dies when the attempt begins, or when it has ended and nobody knows. */
export const activityFaults = ["crash-before-activity", "crash-after-activity"] as const;

export type Choice = { readonly index: number; readonly together: boolean };

export type Case = {
  readonly seed: number;
  readonly fault?: Fault;
  readonly evict: boolean;
  readonly choices: readonly Choice[];
};

export const plainCase = (seed: number): Case => ({ seed, evict: false, choices: [] });

export function caseText({ seed, fault, evict, choices }: Case): string {
  return [
    String(seed),
    ...(fault === undefined ? [] : [`${fault.kind}-${fault.number}`]),
    ...(evict ? ["evict"] : []),
    ...(choices.length === 0 ? [] : [`order-${choices.map(({ index, together }) => `${index}${together ? "+" : ""}`).join(".")}`]),
  ].join(":");
}

/** Throws INVALID_OPTION for a text that is no case. */
export function parseCase(text: string): Case {
  if (typeof text !== "string") throw noCase(shown(text));
  const [seed = "", ...parts] = text.split(":");
  if (!/^\d+$/.test(seed) || !Number.isSafeInteger(Number(seed))) throw noCase(text);
  let found = plainCase(Number(seed));
  for (const part of parts) {
    const order = /^order-((?:\d+\+?\.)*\d+\+?)$/.exec(part)?.[1];
    const fault = /^([a-z-]+)-(\d+)$/.exec(part);
    if (part === "evict") found = { ...found, evict: true };
    else if (order !== undefined) found = { ...found, choices: order.split(".").map(parseChoice) };
    else if (fault !== null && isFault(fault[1]) && Number(fault[2]) > 0)
      found = { ...found, fault: { kind: fault[1], number: Number(fault[2]) } };
    else throw noCase(text);
  }
  return found;
}

const parseChoice = (text: string): Choice => ({ index: Number.parseInt(text, 10), together: text.endsWith("+") });
const isFault = (text: string | undefined): text is FaultKind => ([...commitFaults, ...activityFaults] as unknown[]).includes(text);
const noCase = (text: string) =>
  new WovyrError(`"${text}" is no case of an exploration: pass the seed as it was printed`, { code: "INVALID_OPTION" });
