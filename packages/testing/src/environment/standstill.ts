/** Tells why a run, or a whole environment, will never go on: what it waits for, and at which lines. */
import { WovyrError } from "@wovyr/sdk";
import type { InstanceState } from "@wovyr/sdk/internal";

export function neverEnds(id: string, state: InstanceState, lines: readonly string[]): WovyrError {
  const waits = openWaits(state).join(", ") || "nothing that is recorded";
  const at = lines.length === 0 ? "" : ` at ${lines.join(", ")}`;
  return new WovyrError(`${id} will never end: no timer is open, nothing is running, and it waits for ${waits}${at}.`, {
    code: "TIMED_OUT",
  });
}

/** What is open in a run that nothing can move. */
export function openWaits(state: InstanceState): string[] {
  return [
    ...(state.parked === undefined ? [] : [`it is parked (${state.parked.message})`]),
    ...[...state.waits.values()].map((wait) => `event "${wait.name}"`),
    ...[...state.children.values()].map((child) => `child "${child.id}"`),
    ...(state.conditions.size > 0 ? ["a condition"] : []),
    ...[...state.activities.values()].map((activity) => `activity "${activity.name}"`),
    ...(state.tail === 0 ? ["its start has not been applied"] : []),
  ];
}
