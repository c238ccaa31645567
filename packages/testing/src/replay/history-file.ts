/**
 * Histories in files.
 *
 * 1. What `saveHistory` writes is read back with its types: dates, maps, undefined.
 * 2. A file is JSON (an array of events, or a page as the API gives it) or, named `.jsonl` or `.ndjson`, one event a line; each text is plain or Wovyr's
 *    typed form.
 * 3. The lines of an export are a history as well, when they are of one run and no payload codec made its values.
 */
import { mkdir, readdir, readFile, stat, writeFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import { WovyrError } from "@wovyr/sdk";
import type { Handle } from "@wovyr/sdk/client";
import { checkOptions, decodePayload, encodePayload, exportedRuns, type HistoryEvent, turnView } from "@wovyr/sdk/internal";
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
  if (!linesFile.test(path)) return historyIn(decodePayload(text.trim()));
  const lines = text.split("\n").filter((line) => line.trim() !== "");
  if (isExport(lines[0])) return exportedHistory(lines);
  return historyIn(lines.map((line) => decodePayload(line.trim())));
}

const linesFile = /\.(?:jsonl|ndjson)$/;

function isExport(line = ""): boolean {
  try {
    const header: unknown = JSON.parse(line);
    return typeof header === "object" && header !== null && "format" in header;
  } catch {
    return false;
  }
}

async function exportedHistory(lines: readonly string[]): Promise<HistoryInFile> {
  let found: HistoryInFile | undefined;
  for await (const { header, turns } of exportedRuns(lines)) {
    if (found !== undefined)
      throw new WovyrError("This export holds several runs; put each into a file of its own.", { code: "INVALID_INPUT" });
    found = { runId: header.run, events: turns.flatMap((turn) => turnView(turn, 1)) };
  }
  return found ?? { runId: undefined, events: [] };
}

/** The files that a path stands for: itself, or every `.json`, `.jsonl` and `.ndjson` file below it, sorted. */
export async function historyFiles(path: string): Promise<string[]> {
  if (!(await stat(path)).isDirectory()) return [path];
  const entries = await readdir(path, { recursive: true, withFileTypes: true });
  return entries
    .filter((entry) => entry.isFile() && /\.(?:jsonl?|ndjson)$/.test(entry.name))
    .map((entry) => join(entry.parentPath, entry.name))
    .sort();
}
