/** What a start says of its run, and another start in its place says otherwise. */
import type { Payload } from "./history.ts";
import type { Priority } from "./priority.ts";
import type { RunTimeouts } from "./run-timeouts.ts";

export type StartDetails = {
  readonly input: Payload;
  readonly memo?: Payload;
  readonly attributes?: Payload;
  /** Absent when it is `normal`. */
  readonly priority?: Priority;
  readonly timeout?: RunTimeouts;
};

/** That part of what says more. */
export function startDetails({ input, memo, attributes, priority, timeout }: StartDetails): StartDetails {
  return {
    input,
    ...(memo !== undefined && { memo }),
    ...(attributes !== undefined && { attributes }),
    ...(priority !== undefined && { priority }),
    ...(timeout !== undefined && { timeout }),
  };
}

/** What a start is when a later one has taken its place: of what the first said of its run, nothing is left. */
export function restated<S extends StartDetails>(first: S, later: StartDetails): S {
  const { input: _input, memo: _memo, attributes: _attributes, priority: _priority, timeout: _timeout, ...name } = first;
  return { ...name, ...startDetails(later) } as S;
}
