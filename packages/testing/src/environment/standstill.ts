/** Tells why a run, or a whole environment, will never go on: what it waits for, and at which lines. */
import { type AnyWorkflow, WovyrError } from "@wovyr/sdk";
import { type ErrorCode, type InstanceState, keyText, type OpenActivity } from "@wovyr/sdk/internal";

export function neverEnds(id: string, state: InstanceState, lines: readonly string[], workflows: readonly AnyWorkflow[]): WovyrError {
  const at = lines.length === 0 ? "" : ` at ${lines.join(", ")}`;
  if (state.parked !== undefined) {
    const { message, code } = state.parked;
    return new WovyrError(`${message} (${id} is parked, and waits for other code${at})`, {
      code: (code ?? "TIMED_OUT") as ErrorCode,
    });
  }
  if (state.paused !== undefined) {
    const why = state.paused.reason === undefined ? "" : ` (${state.paused.reason})`;
    return new WovyrError(`${id} will not end for now: it is paused${why}, and takes no step before \`resume()\`${at}.`, {
      code: "TIMED_OUT",
    });
  }
  const waits = openWaits(state, workflows).join(", ") || "nothing that is recorded";
  return new WovyrError(`${id} will never end: no timer is open, nothing is running, and it waits for ${waits}${at}.`, {
    code: "TIMED_OUT",
  });
}

function activityText({ name, state, lastFailure }: Readonly<OpenActivity>): string {
  if (state !== "Paused") return `activity "${name}"`;
  return `a decision on activity "${name}", which failed (${lastFailure?.message}) and is paused: retry, resolve or fail its dead letter`;
}

/** What is open in a run that nothing can move. */
export function openWaits(state: InstanceState, workflows: readonly AnyWorkflow[]): string[] {
  const unknown = (name: string) =>
    workflows.some((workflow) => workflow.name === name)
      ? ""
      : `, whose workflow "${name}" is not registered: add it to \`workflows\`, or fake it`;
  return [
    ...(state.paused === undefined ? [] : ["resume(), for it is paused"]),
    ...(state.parked === undefined ? [] : [`other code, for it is parked (${state.parked.message})`]),
    ...[...state.waits.values()].map(({ name, key }) => `event "${name}"${keyText(key)}`),
    ...[...state.children.values()].map((child) => `child "${child.id}"${unknown(child.workflow)}`),
    ...(state.conditions.size > 0 ? ["a condition"] : []),
    ...[...state.compensations].flatMap(([effect, { name, state, failure }]) =>
      state === "stuck"
        ? [`a decision on compensation ${effect} of "${name}", which failed (${failure?.message}): retryCompensation, skip or resolve it`]
        : [],
    ),
    ...[...state.activities.values()].map(activityText),
    ...(state.tail === 0 ? ["its start has not been applied"] : []),
  ];
}
