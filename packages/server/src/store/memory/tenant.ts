/**
 * What one tenant owns: runs by id, by key and in order of their names, and its inboxes.
 *
 * 1. At most one open run has a given id.
 */
import { compareText } from "../text-order.ts";
import type { Letter } from "./inbox-log.ts";
import type { RunRecord } from "./run-record.ts";

export type StartKey = {
  readonly run: string;
  readonly digest: string;
  readonly at: number;
};

export class Tenant {
  readonly runs = new Map<string, RunRecord>();
  /** By workflow and key, joined by U+001F, which neither can hold. */
  readonly startKeys = new Map<string, StartKey>();
  /** Messages by run and message; the run may be unknown. */
  readonly inboxes = new Map<string, Map<string, Letter>>();
  readonly #open = new Map<string, RunRecord>();
  readonly #newestClosed = new Map<string, RunRecord>();
  #byRun: RunRecord[] = [];
  #sorted = true;

  isOpen(id: string): boolean {
    return this.#open.has(id);
  }

  find(id: string): RunRecord | undefined {
    return this.#open.get(id) ?? this.#newestClosed.get(id);
  }

  add(record: RunRecord): void {
    this.runs.set(record.run, record);
    this.#open.set(record.instance.id, record);
    const last = this.#byRun.at(-1);
    if (last !== undefined && compareText(last.run, record.run) > 0) this.#sorted = false;
    this.#byRun.push(record);
  }

  close(record: RunRecord): void {
    const { id } = record.instance;
    this.#open.delete(id);
    const newest = this.#newestClosed.get(id);
    if (newest === undefined || compareText(newest.run, record.run) < 0) this.#newestClosed.set(id, record);
  }

  /** Runs from the newest on, those before `after` only. */
  *newestFirst(after: string | undefined): Generator<RunRecord> {
    if (!this.#sorted) {
      this.#byRun.sort((a, b) => compareText(a.run, b.run));
      this.#sorted = true;
    }
    const runs = this.#byRun;
    for (let at = after === undefined ? runs.length - 1 : this.#countBefore(after) - 1; at >= 0; at -= 1) yield runs[at] as RunRecord;
  }

  #countBefore(run: string): number {
    let low = 0;
    let high = this.#byRun.length;
    while (low < high) {
      const middle = (low + high) >> 1;
      if (compareText((this.#byRun[middle] as RunRecord).run, run) < 0) low = middle + 1;
      else high = middle;
    }
    return low;
  }
}
