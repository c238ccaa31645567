/** Moments that a test names. */
import { checkDate, refuse, shown } from "../checks.ts";

/** Milliseconds since the epoch that a Date can hold at most. */
export const farthest = 8.64e15;
const zoned = /(?:Z|[+-]\d\d:?\d\d)$/i;

/** The moment that a Date or a text with its zone means. */
export function momentIn(at: Date | string): number {
  if (typeof at === "string") {
    const time = new Date(at).getTime();
    if (Number.isNaN(time)) refuse(`advanceTo() takes a Date or its text ("2026-03-01T09:00:00Z"), not ${shown(at)}`);
    if (!zoned.test(at.trim())) refuse(`advanceTo() needs the zone of ${shown(at)}: "2026-03-01T09:00:00Z", or "…+01:00"`);
    return time;
  }
  checkDate(at ?? null, "what advanceTo() is given");
  return at.getTime();
}
