import type { EffectKey } from "../engine/ports/store.ts";

type SettledTask = Pick<EffectKey, "effect"> & { readonly attempt: number; readonly details?: string | undefined };

/** The name of the inbox message by which the outcome of a task reaches its run. */
export const settledMessage = ({ effect, attempt }: SettledTask): string => `outcome:${effect}:${attempt}`;

/** The outcome of a task as its run is told; `wovyr.settle_tasks_1` writes the same. */
export function settledFact(fact: string, { effect, attempt, details }: SettledTask): string {
  const told = details === undefined ? "" : `"heartbeat":${JSON.stringify(details)},`;
  return `{"effect":${JSON.stringify(effect)},"attempt":${attempt},${told}${fact.slice(1)}`;
}
