/**
 * Whether two runs of one case came to the same end.
 *
 * 1. Ids that were generated are the same when they are the same ids within their run; moments of the run are the same whenever it was: a fault costs time.
 */
import { isDeepStrictEqual } from "node:util";
import type { HistoryEvent } from "@wovyr/sdk/internal";
import { Labels } from "../history/history-text-labels.ts";
import { timeOf } from "../history/history-text-time.ts";
import { valueText } from "../history/history-text-value.ts";
import type { ExploredRun } from "./play.ts";

/** How the end of `run` differs from that of `first`; undefined when it does not. */
export function outcomeDifference(first: ExploredRun<unknown>, run: ExploredRun<unknown>): string | undefined {
  const [a, b] = [endOf(first), endOf(run)];
  const same = first.status === run.status && (isDeepStrictEqual(a, b) || plain(a, first.history) === plain(b, run.history));
  if (same) return undefined;
  const path = first.status === "Completed" && run.status === "Completed" ? differsAt(a, b, [first.history, run.history], "") : undefined;
  const where = path === undefined ? "" : ` (they differ at ${path})`;
  return `from ${outcomeText(first)} to ${outcomeText(run)}${where}`;
}

const endOf = (run: ExploredRun<unknown>): unknown => (run.status === "Completed" ? run.output : run.failure.message);

const outcomeText = (run: ExploredRun<unknown>) =>
  run.status === "Completed" ? `Completed with ${valueText(run.output)}` : `${run.status} (${run.failure.message})`;

const timestamp = /\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d+)?Z/g;
/** Numbers below it are no times of today in milliseconds. */
const leastTime = 1e12;

/** A value as text, without what differs between two runs of the same workflow. */
function plain(value: unknown, history: readonly HistoryEvent[]): string {
  const labels = new Labels();
  const [began, ended] = [timeOf(history[0]?.at), timeOf(history[history.length - 1]?.at)];
  const within = (time: number) => time >= began && time <= ended;
  return valueText(value, {
    bound: Number.POSITIVE_INFINITY,
    text: (text) => labels.in(text).replace(timestamp, (time) => (within(timeOf(time)) ? "<time>" : time)),
    date: (date) => (within(date.getTime()) ? "<time>" : undefined),
    number: (number) => (number >= leastTime && within(number) ? "<time>" : undefined),
  });
}

type Histories = readonly [readonly HistoryEvent[], readonly HistoryEvent[]];

/** Where two values differ first: `.items[2].price`. */
function differsAt(a: unknown, b: unknown, histories: Histories, path: string): string | undefined {
  if (plain(a, histories[0]) === plain(b, histories[1])) return undefined;
  if (!isRecord(a) || !isRecord(b) || Array.isArray(a) !== Array.isArray(b)) return path === "" ? undefined : path;
  for (const key of new Set([...Object.keys(a), ...Object.keys(b)])) {
    const found = differsAt(a[key], b[key], histories, `${path}${Array.isArray(a) ? `[${key}]` : `.${key}`}`);
    if (found !== undefined) return found;
  }
  return path === "" ? undefined : path;
}

const isRecord = (value: unknown): value is Record<string, unknown> =>
  typeof value === "object" && value !== null && (Array.isArray(value) || Object.getPrototypeOf(value) === Object.prototype);
