/** The time limits of a workflow's runs. */
import { type Duration, milliseconds } from "./duration.ts";
import { checkOptions } from "./option.ts";

/** A duration alone is that of the execution. */
export type WorkflowTimeout =
  | Duration
  | {
      /** For one run. */
      readonly run?: Duration | undefined;
      /** For all runs of one start: those that continue as new, and those that are tried again. */
      readonly execution?: Duration | undefined;
    };

/** In milliseconds; what is absent does not end. */
export type RunTimeouts = { readonly run?: number; readonly execution?: number };

/** Throws INVALID_OPTION or INVALID_DURATION, which names the option `what`. */
export function resolveRunTimeouts(given: WorkflowTimeout, what: string): RunTimeouts {
  if (typeof given !== "object" || given === null) return Object.freeze({ execution: milliseconds(given, what) });
  checkOptions(given, ["run", "execution"], what);
  const { run, execution } = given;
  return Object.freeze({
    ...(run !== undefined && { run: milliseconds(run, `${what}.run`) }),
    ...(execution !== undefined && { execution: milliseconds(execution, `${what}.execution`) }),
  });
}
