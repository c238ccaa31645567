/** The RECORD: one line per real execution of an activity, appended by whichever process ran it. */
import { appendFileSync, existsSync, readFileSync } from "node:fs";
import { join } from "node:path";

export type Execution = {
  /** `<run>/<effect>`. */
  readonly key: string;
  readonly name: string;
  readonly attempt: number;
  readonly pid: number;
  /** What the activity was told to remember. */
  readonly note: string;
};

const fileOf = (directory: string) => join(directory, "record.jsonl");

export function record(directory: string, execution: Omit<Execution, "pid">): void {
  appendFileSync(fileOf(directory), `${JSON.stringify({ ...execution, pid: process.pid })}\n`);
}

export function executions(directory: string): Execution[] {
  const file = fileOf(directory);
  if (!existsSync(file)) return [];
  return readFileSync(file, "utf8")
    .split("\n")
    .filter((line) => line !== "")
    .map((line) => JSON.parse(line) as Execution);
}

export function countBy<T>(items: Iterable<T>, keyOf: (item: T) => string): Map<string, number> {
  const counts = new Map<string, number>();
  for (const item of items) counts.set(keyOf(item), (counts.get(keyOf(item)) ?? 0) + 1);
  return counts;
}
