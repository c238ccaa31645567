/**
 * Notes what no program should cause: rejections that nobody handles, and warnings of the process.
 *
 * 1. The process is listened to once, however many look on.
 * 2. A rejection is told to the one whose activity or call caused it, and to nobody when that one is gone; where that cannot be known, to all.
 */
import { inspect } from "node:util";
import { type Attempts, callingAttempt, type RunningAttempt } from "./attempts.ts";

const onlookers = new Set<ProcessTrouble>();
/** Errors with which calls of an environment were rejected. */
const claimed = new WeakMap<object, ProcessTrouble>();

const rejected = (reason: unknown) => {
  const attempt = callingAttempt();
  const owner = ownerOf(reason, attempt);
  const where =
    attempt === undefined ? "" : ` in activity "${attempt.activity}" (attempt ${attempt.attempt}, instance ${attempt.instanceId})`;
  const text = `unhandled rejection${where}: ${reason instanceof Error ? (reason.stack ?? String(reason)) : inspect(reason)}`;
  if (owner === undefined) for (const onlooker of onlookers) onlooker.note(text);
  else if (onlookers.has(owner)) owner.note(text);
  else process.stderr.write(`after its test environment was disposed: ${text}\n`);
};
const warned = (warning: Error) => {
  // The second tells what was noted as a rejection already.
  if (warning.name === "ExperimentalWarning" || warning.name === "PromiseRejectionHandledWarning") return;
  for (const onlooker of onlookers) onlooker.note(`warning: ${warning.name}: ${warning.message}`);
};

function ownerOf(reason: unknown, attempt: RunningAttempt | undefined): ProcessTrouble | undefined {
  if (attempt !== undefined) return owners.get(attempt.owner);
  return typeof reason === "object" && reason !== null ? claimed.get(reason) : undefined;
}

const owners = new WeakMap<Attempts, ProcessTrouble>();

export class ProcessTrouble {
  readonly #seen: string[] = [];
  readonly #noted: (text: string) => boolean;
  #told = 0;

  /** `noted` hears of each at once; true when somebody has learned of it by that. */
  constructor(attempts: Attempts, noted: (text: string) => boolean) {
    this.#noted = noted;
    owners.set(attempts, this);
    if (onlookers.size === 0) {
      process.on("unhandledRejection", rejected);
      process.on("warning", warned);
    }
    onlookers.add(this);
  }

  note(text: string): void {
    this.#seen.push(text);
    if (this.#noted(text)) this.#told = this.#seen.length;
  }

  /** Takes an error for its own, should nobody handle it. */
  claim<T>(error: T): T {
    if (typeof error === "object" && error !== null) claimed.set(error, this);
    return error;
  }

  /** Everything so far; who reads it is told of it. */
  get seen(): readonly string[] {
    this.#told = this.#seen.length;
    return this.#seen;
  }

  /** What nobody was told of yet. */
  get untold(): readonly string[] {
    return this.#seen.slice(this.#told);
  }

  stop(): void {
    onlookers.delete(this);
    if (onlookers.size > 0) return;
    process.off("unhandledRejection", rejected);
    process.off("warning", warned);
  }
}
