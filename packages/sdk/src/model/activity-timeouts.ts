/** The time limits of an activity. */
import { type Duration, milliseconds } from "./duration.ts";
import { checkOptions } from "./option.ts";

export type ActivityTimeouts = {
  /** From when an attempt is due until it begins: how long it may wait for a place, or for a circuit to close. */
  readonly scheduleToStart?: Duration | undefined;
  /** For one attempt. */
  readonly startToClose?: Duration | undefined;
  /** For all attempts and the waits between them. */
  readonly scheduleToClose?: Duration | undefined;
  /** Between two calls of `ctx.heartbeat()`, and from the beginning of an attempt to the first. */
  readonly heartbeat?: Duration | undefined;
};

/** In milliseconds; what is absent does not end. */
export type ResolvedTimeouts = { -readonly [Key in keyof ActivityTimeouts]?: number };

const known = ["scheduleToStart", "startToClose", "scheduleToClose", "heartbeat"] as const;

/** Merges timeouts, later ones over earlier ones; throws INVALID_OPTION or INVALID_DURATION. */
export function resolveTimeouts(...timeouts: readonly (ActivityTimeouts | undefined)[]): Readonly<ResolvedTimeouts> {
  const resolved: ResolvedTimeouts = {};
  for (const given of timeouts) {
    if (given === undefined) continue;
    checkOptions(given, known, "timeout");
    for (const name of known) if (given[name] !== undefined) resolved[name] = milliseconds(given[name], `timeout.${name}`);
  }
  return Object.freeze(resolved);
}
