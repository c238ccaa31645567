import { type Duration, milliseconds } from "./duration.ts";
import { checkOptions } from "./option.ts";

export type ActivityTimeouts = {
  /** For one attempt. */
  readonly startToClose?: Duration | undefined;
  /** For all attempts and the waits between them. */
  readonly scheduleToClose?: Duration | undefined;
};

/** In milliseconds; what is absent does not end. */
export type ResolvedTimeouts = {
  readonly startToClose?: number;
  readonly scheduleToClose?: number;
};

/** Merges timeouts, later ones over earlier ones; throws INVALID_OPTION or INVALID_DURATION. */
export function resolveTimeouts(...timeouts: readonly (ActivityTimeouts | undefined)[]): ResolvedTimeouts {
  const resolved: { startToClose?: number; scheduleToClose?: number } = {};
  for (const given of timeouts) {
    if (given === undefined) continue;
    checkOptions(given, ["startToClose", "scheduleToClose"], "timeout");
    if (given.startToClose !== undefined) resolved.startToClose = milliseconds(given.startToClose, "timeout.startToClose");
    if (given.scheduleToClose !== undefined) resolved.scheduleToClose = milliseconds(given.scheduleToClose, "timeout.scheduleToClose");
  }
  return Object.freeze(resolved);
}
