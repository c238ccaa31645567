/**
 * Run ids: `YYMMDD` + time of day (6 characters of base 36, milliseconds) + 10 random characters of base 36.
 * They sort by creation, so that rows written together lie together and a day's history can be retired as a whole.
 *
 * 1. No id is made twice, by whichever engine: also one that is to sort after another is drawn, and not counted from that.
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
  return fresh > run ? fresh : beyond(run, fresh);
}

const tails = alphabet.length ** randomLength;
/** Characters of an id that say how far another one lies beyond it: enough room for millions in one millisecond. */
const stepLength = 6;

/** As much further on than `run` as the last characters of `drawn` say: what else is made after it, here or by another engine, is somewhere else. */
function beyond(run: string, drawn: string): string {
  const [time, tail] = [run.slice(0, -randomLength), run.slice(-randomLength)];
  const step = Number.parseInt(drawn.slice(-stepLength), alphabet.length) + 1;
  const next = Number.parseInt(tail, alphabet.length) + step;
  const characters = (next % tails).toString(alphabet.length).padStart(randomLength, "0");
  return (next < tails ? time : successor(time)) + characters;
}

function successor(text: string): string {
  const last = text.search(/[^z]z*$/);
  const next = alphabet.charAt(alphabet.indexOf(text.charAt(last)) + 1);
  return text.slice(0, last) + next + "0".repeat(text.length - last - 1);
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
