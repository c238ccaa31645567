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
  /** By id, each list by run. */
  readonly #closed = new Map<string, RunRecord[]>();
  #byRun: RunRecord[] = [];
  #sorted = true;

  isOpen(id: string): boolean {
    return this.#open.has(id);
  }

  find(id: string): RunRecord | undefined {
    return this.#open.get(id) ?? this.#closed.get(id)?.at(-1);
  }

  add(record: RunRecord): void {
    this.runs.set(record.run, record);
    if (record.closedAt === undefined) this.#open.set(record.instance.id, record);
    else this.close(record);
    const last = this.#byRun.at(-1);
    if (last !== undefined && compareText(last.run, record.run) > 0) this.#sorted = false;
    this.#byRun.push(record);
  }

  /** An open run closes, or a closed one is put in. */
  close(record: RunRecord): void {
    const { id } = record.instance;
    if (this.#open.get(id) === record) this.#open.delete(id);
    const closed = this.#closed.get(id);
    if (closed === undefined) this.#closed.set(id, [record]);
    else closed.splice(countBefore(closed, record.run), 0, record);
  }

  /** Removes closed runs. */
  remove(records: ReadonlySet<RunRecord>): void {
    for (const { run, instance } of records) {
      this.runs.delete(run);
      const closed = this.#closed.get(instance.id)?.filter((each) => each.run !== run) ?? [];
      if (closed.length === 0) this.#closed.delete(instance.id);
      else this.#closed.set(instance.id, closed);
    }
    this.#byRun = this.#byRun.filter((each) => !records.has(each));
  }

  /** Runs from the newest on, those before `after` only. */
  *newestFirst(after: string | undefined): Generator<RunRecord> {
    const runs = this.#inOrder();
    for (let at = after === undefined ? runs.length - 1 : countBefore(runs, after) - 1; at >= 0; at -= 1) yield runs[at] as RunRecord;
  }

  /** Runs from the oldest on, those after `after` and before `before` only. */
  *oldestFirst(after: string, before: string): Generator<RunRecord> {
    const runs = this.#inOrder();
    const end = countBefore(runs, before);
    for (let at = countBefore(runs, after); at < end; at += 1) {
      const record = runs[at] as RunRecord;
      if (record.run !== after) yield record;
    }
  }

  #inOrder(): readonly RunRecord[] {
    if (!this.#sorted) this.#byRun.sort((a, b) => compareText(a.run, b.run));
    this.#sorted = true;
    return this.#byRun;
  }
}

function countBefore(runs: readonly RunRecord[], run: string): number {
  let low = 0;
  let high = runs.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (compareText((runs[middle] as RunRecord).run, run) < 0) low = middle + 1;
    else high = middle;
  }
  return low;
}
