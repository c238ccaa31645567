/**
 * Run ids: `YYMMDD` + time of day (6 characters of base 36, milliseconds) + 10 random characters of base 36.
 * They sort by creation, so that rows written together lie together and a day's history can be retired as a whole.
 */
import type { Random } from "./ports/random.ts";

const randomLength = 10;
const alphabet = "0123456789abcdefghijklmnopqrstuvwxyz";
const dayMilliseconds = 86_400_000;

export function newRunId(now: number, random: Random): string {
  return prefixAt(now) + randomCharacters(random);
}

export const isRunId = (text: string): boolean => /^\d{6}[0-9a-z]{16}$/.test(text);

/** A run id that sorts after another one: a run that goes on from it is newer, also within a millisecond. */
export function runIdAfter(run: string, now: number, random: Random): string {
  const fresh = newRunId(now, random);
  return fresh > run ? fresh : successor(run);
}

function successor(run: string): string {
  const last = run.search(/[^z]z*$/);
  const next = alphabet.charAt(alphabet.indexOf(run.charAt(last)) + 1);
  return run.slice(0, last) + next + "0".repeat(run.length - last - 1);
}

let lastNow = Number.NaN;
let lastPrefix = "";

/** Many runs are made in one millisecond. */
function prefixAt(now: number): string {
  if (now !== lastNow) {
    lastPrefix = runIdPrefix(now);
    lastNow = now;
  }
  return lastPrefix;
}

/** The first characters of every run id made at `now`: a bound for searches by time. */
export function runIdPrefix(now: number): string {
  const day = new Date(now).toISOString();
  const time = (((now % dayMilliseconds) + dayMilliseconds) % dayMilliseconds).toString(36).padStart(6, "0");
  return day.slice(2, 4) + day.slice(5, 7) + day.slice(8, 10) + time;
}

function randomCharacters(random: Random): string {
  let text = "";
  while (text.length < randomLength) {
    // 252 = 7 × 36: bytes above it would favour the first characters.
    for (const byte of random.bytes(randomLength + 2)) if (byte < 252 && text.length < randomLength) text += alphabet.charAt(byte % 36);
  }
  return text;
}

const hexOfByte = Array.from({ length: 256 }, (_, byte) => byte.toString(16).padStart(2, "0"));

/** The seed of a run: 128 bits as hexadecimal digits. */
export function newSeed(random: Random): string {
  let text = "";
  for (const byte of random.bytes(16)) text += hexOfByte[byte];
  return text;
}
