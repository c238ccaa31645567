/**
 * Lengths of time as users write them, and points in time.
 *
 * 1. What leaves this file is a finite whole number of milliseconds, never negative, at most `maxDuration`.
 * 2. A text means the same on every machine: no months or years (their length varies), no local times (their zone is the machine's).
 */
import { WovyrError } from "./errors.ts";

type Unit =
  | "ms"
  | "s"
  | "m"
  | "h"
  | "d"
  | "w"
  | "second"
  | "seconds"
  | "minute"
  | "minutes"
  | "hour"
  | "hours"
  | "day"
  | "days"
  | "week"
  | "weeks";

/** Milliseconds, `"30s"`, `"3 days"`, `"1h30m"` or ISO 8601 (`"P1DT2H"`). A computed text goes through `duration(text)`. */
export type Duration =
  | number
  | `${number}${Unit}`
  | `${number} ${Unit}`
  | `${number}h${number}m`
  | `${number}d${number}h`
  | `${number}m${number}s`
  | `P${string}`;

/** 100 years, in milliseconds. */
export const maxDuration = 36_525 * 86_400_000;

const accepted = 'milliseconds (5000), a text such as "90s", "3 days" or "1h30m", or ISO 8601 such as "P1DT2H"';

/** Checks a computed text and returns it as a `Duration`; throws INVALID_DURATION. */
export function duration(text: string): Duration {
  milliseconds(text as Duration, "duration");
  return text as Duration;
}

/** Milliseconds of a `Duration`, fractions rounded up; throws INVALID_DURATION, which names the option `what`. */
export function milliseconds(value: Duration, what = "duration"): number {
  const exact = typeof value === "number" ? value : typeof value === "string" ? parse(value, what) : Number.NaN;
  if (exact >= 0 && exact <= maxDuration) return Math.ceil(exact) + 0; // not −0
  if (exact > maxDuration) refuse(what, value, "is more than 100 years");
  if (exact < 0) refuse(what, value, "is negative");
  return refuse(what, value, "is no duration");
}

/** The same between two bounds; throws INVALID_OPTION beyond them. */
export function millisecondsWithin(value: Duration, [least, most]: readonly [least: Duration, most: Duration], what: string): number {
  const exact = milliseconds(value, what);
  if (exact >= milliseconds(least) && exact <= milliseconds(most)) return exact;
  throw new WovyrError(`${what} must be from ${least} to ${most}, not ${shown(value)}`, { code: "INVALID_OPTION" });
}

const longestText = 64;
const perUnit: Readonly<Record<string, number>> = {
  ms: 1,
  s: 1_000,
  m: 60_000,
  h: 3_600_000,
  d: 86_400_000,
  w: 604_800_000,
};
const amountWithUnit = /(\d+(?:\.\d+)?|\.\d+) ?(milliseconds?|seconds?|minutes?|hours?|days?|weeks?|ms|[smhdw])/y;
const iso = /^P(?:(\d+(?:\.\d+)?)W)?(?:(\d+(?:\.\d+)?)D)?(?:T(?:(\d+(?:\.\d+)?)H)?(?:(\d+(?:\.\d+)?)M)?(?:(\d+(?:\.\d+)?)S)?)?$/;

function parse(text: string, what: string): number {
  if (text.length > longestText) refuse(what, text, "is too long for a duration");
  return text.startsWith("P") ? parseIso(text, what) : parseUnits(text, what);
}

function parseIso(text: string, what: string): number {
  const match = iso.exec(text);
  if (match !== null && !text.endsWith("T") && text !== "P") {
    const [weeks = 0, days = 0, hours = 0, minutes = 0, seconds = 0] = match.slice(1).map((amount) => Number(amount ?? 0));
    return weeks * 604_800_000 + days * 86_400_000 + hours * 3_600_000 + minutes * 60_000 + seconds * 1_000;
  }
  if (/^P[^T]*[YM]/.test(text)) refuse(what, text, "counts in months or years, whose length varies: write days or weeks");
  return refuse(what, text, "is no ISO 8601 duration");
}

function parseUnits(text: string, what: string): number {
  let total = 0;
  let smallest = Number.POSITIVE_INFINITY;
  let at = 0;
  while (at < text.length) {
    if (at > 0 && text[at] === " ") at++;
    amountWithUnit.lastIndex = at;
    const match = amountWithUnit.exec(text);
    if (match === null) return refuse(what, text, /^[+-]?[\d.]+$/.test(text) ? "has no unit" : "is no duration");
    const unit = match[2] as string;
    const size = perUnit[unit.startsWith("mi") && unit.includes("sec") ? "ms" : unit === "ms" ? "ms" : (unit[0] as string)] as number;
    if (size >= smallest) refuse(what, text, "does not name its units from large to small");
    smallest = size;
    total += Number(match[1]) * size;
    at = amountWithUnit.lastIndex;
  }
  return at === 0 ? refuse(what, text, "is no duration") : total;
}

function refuse(what: string, value: unknown, why: string): never {
  throw new WovyrError(`${what}: ${shown(value)} ${why}; give ${accepted}`, {
    code: "INVALID_DURATION",
  });
}

function shown(value: unknown): string {
  if (typeof value === "string")
    return value.length > longestText ? `${JSON.stringify(value.slice(0, longestText))}…` : JSON.stringify(value);
  if (typeof value === "number" || value === null || value === undefined) return String(value);
  return `a value of type ${typeof value}`;
}

const timestamp = /^(\d{4}-\d\d-\d\d)(?:[Tt ]\d\d:\d\d(?::\d\d(?:\.\d+)?)?(?:[Zz]|[+-]\d\d:?\d\d))?$/;
const lastInstant = Date.UTC(9999, 11, 31, 23, 59, 59, 999);
const firstInstant = -62_135_596_800_000; // 0001-01-01

/** Milliseconds since the epoch of a `Date` or of RFC 3339 text (a date alone is midnight UTC); throws INVALID_DURATION, which names the option `what`. */
export function instant(at: Date | string, what: string): number {
  const time = typeof at === "string" ? textTime(at) : dateTime(at);
  if (time >= firstInstant && time <= lastInstant) return time;
  throw new WovyrError(
    `${what}: ${typeof at === "string" ? shown(at) : "the date"} is no point in time between the years 1 and 9999; give a Date or RFC 3339 text with its zone, such as "2030-01-31T09:00:00Z"`,
    { code: "INVALID_DURATION" },
  );
}

/** The same of a text that says its zone: over a network nobody knows which one a day was meant in. */
export function zonedInstant(at: string, what: string): number {
  const time = instant(at, what);
  if (!timestamp.test(at) || /\d\d:\d\d/.test(at)) return time;
  throw new WovyrError(`${what}: ${shown(at)} says no time and no zone; give RFC 3339 text with its zone, such as "2030-01-31T09:00:00Z"`, {
    code: "INVALID_DURATION",
  });
}

function textTime(text: string): number {
  const day = timestamp.exec(text)?.[1];
  if (day === undefined) return Number.NaN;
  const midnight = Date.parse(day);
  const exists = midnight >= firstInstant && new Date(midnight).toISOString().startsWith(day); // 31 February would be 3 March
  return exists ? Date.parse(text) : Number.NaN;
}

function dateTime(value: unknown): number {
  try {
    return Date.prototype.getTime.call(value);
  } catch {
    return Number.NaN;
  }
}
