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

const letterPrefix = "d1.";

type LetterPlace = { readonly at: number; readonly run: string; readonly effect: string };

export const cursorAfterLetter = ({ at, run, effect }: LetterPlace): string =>
  letterPrefix + Buffer.from(JSON.stringify([at, run, effect])).toString("base64url");

/** Throws INVALID_CURSOR. */
export function letterOfCursor(cursor: string): LetterPlace {
  const place = cursor.startsWith(letterPrefix)
    ? parsed(Buffer.from(cursor.slice(letterPrefix.length), "base64url").toString())
    : undefined;
  if (Array.isArray(place) && place.length === 3) {
    const [at, run, effect] = place as unknown[];
    if (Number.isSafeInteger(at) && typeof run === "string" && typeof effect === "string") return { at: at as number, run, effect };
  }
  throw new ApiError("This cursor was not made by this list. Leave it out to begin at the start.", { code: "INVALID_CURSOR" });
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}
