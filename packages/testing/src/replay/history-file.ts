/**
 * Histories in files.
 *
 * 1. What `saveHistory` writes is read back with its types: dates, maps, undefined.
 * 2. A file is JSON (an array of events, or a page as the API gives it) or, named `.jsonl`, one event a line; each text is plain or Wovyr's typed form.
 */
import { mkdir, readdir, readFile, stat, writeFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import type { Handle } from "@wovyr/sdk/client";
import { checkOptions, decodePayload, encodePayload, type HistoryEvent } from "@wovyr/sdk/internal";
import { refuse, shown } from "../checks.ts";
import { type HistoryInFile, historyIn } from "./recorded-history.ts";

export type SaveHistoryOptions = {
  /** Of the run whose events are given; `ctx.runId` is this on a replay. A handle knows it. */
  readonly runId?: string;
};

/** Writes a history as a file that `replay` reads; makes the folders on the way. */
export async function saveHistory(
  path: string,
  history: readonly HistoryEvent[] | Pick<Handle<unknown>, "describe" | "history">,
  options: SaveHistoryOptions = {},
): Promise<void> {
  if (typeof path !== "string" || path === "") refuse(`saveHistory() takes the path of a file first, not ${shown(path)}`);
  checkOptions(options, ["runId"], "saveHistory()");
  const isHandle = typeof history === "object" && history !== null && "history" in history;
  if (!isHandle && !Array.isArray(history))
    refuse(`saveHistory() takes the events of a run (await env.history(id)) or its handle, not ${shown(history)}`);
  if (!isHandle && history.length === 0) refuse("saveHistory() was given no event: there is nothing to save");
  const { events, runId } = "history" in history ? await eventsOf(history) : { events: history, runId: options.runId };
  const text = path.endsWith(".jsonl")
    ? events.map((event) => typed(event)).join("\n")
    : typed({ ...(runId !== undefined && { runId }), items: events });
  await mkdir(dirname(path), { recursive: true });
  await writeFile(path, `${text}\n`);
}

async function eventsOf(handle: Pick<Handle<unknown>, "describe" | "history">) {
  const { runId } = await handle.describe();
  const events: HistoryEvent[] = [];
  for await (const event of handle.history()) events.push(event);
  return { events, runId };
}

const typed = (value: unknown) => encodePayload(value, { limit: Number.POSITIVE_INFINITY, what: "the history" });

/** Throws with the reason when the file cannot be read or is no history. */
export async function readHistory(path: string): Promise<HistoryInFile> {
  const text = await readFile(path, "utf8");
  if (!path.endsWith(".jsonl")) return historyIn(decodePayload(text.trim()));
  const lines = text.split("\n").filter((line) => line.trim() !== "");
  return historyIn(lines.map((line) => decodePayload(line.trim())));
}

/** The files that a path stands for: itself, or every `.json` and `.jsonl` file below it, sorted. */
export async function historyFiles(path: string): Promise<string[]> {
  if (!(await stat(path)).isDirectory()) return [path];
  const entries = await readdir(path, { recursive: true, withFileTypes: true });
  return entries
    .filter((entry) => entry.isFile() && /\.jsonl?$/.test(entry.name))
    .map((entry) => join(entry.parentPath, entry.name))
    .sort();
}
