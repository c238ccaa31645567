/** The place in a list after which to go on: opaque to callers, checked when it comes back. */
import { ApiError } from "@wovyr/sdk";

const prefix = "r1.";
const shape = /^r1\.([A-Za-z0-9_.:~@-]{1,255})$/;

export const cursorAfter = (run: string): string => `${prefix}${run}`;

/** Throws INVALID_CURSOR. */
export function runOfCursor(cursor: string): string {
  const run = shape.exec(cursor)?.[1];
  if (run === undefined)
    throw new ApiError("This cursor was not made by this list. Leave it out to begin at the start.", { code: "INVALID_CURSOR" });
  return run;
}
