/**
 * Notes what no program should cause: rejections that nobody handles, and warnings of the process.
 *
 * 1. The process is listened to once, however many look on.
 * 2. A rejection is told to the one whose activity caused it; where that cannot be known, to all.
 */
import { inspect } from "node:util";
import { callingAttempt, type RunningAttempt } from "./attempts.ts";

const onlookers = new Set<ProcessTrouble>();

const rejected = (reason: unknown) => {
  const attempt = callingAttempt();
  const owners = [...onlookers].filter((onlooker) => attempt !== undefined && onlooker.owns(attempt));
  const where =
    attempt === undefined ? "" : ` in activity "${attempt.activity}" (attempt ${attempt.attempt}, instance ${attempt.instanceId})`;
  const text = `unhandled rejection${where}: ${reason instanceof Error ? (reason.stack ?? String(reason)) : inspect(reason)}`;
  for (const onlooker of owners.length > 0 ? owners : onlookers) onlooker.note(text);
};
const warned = (warning: Error) => {
  if (warning.name === "ExperimentalWarning") return;
  for (const onlooker of onlookers) onlooker.note(`warning: ${warning.name}: ${warning.message}`);
};

export class ProcessTrouble {
  readonly #seen: string[] = [];
  readonly owns: (attempt: RunningAttempt) => boolean;
  readonly #noted: (text: string) => boolean;
  #told = 0;

  /** `noted` hears of each at once; true when somebody has learned of it by that. */
  constructor(owns: (attempt: RunningAttempt) => boolean, noted: (text: string) => boolean) {
    this.owns = owns;
    this.#noted = noted;
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
