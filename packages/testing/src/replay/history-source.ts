/**
 * Where histories come from: events, a file, a folder, a running orchestrator.
 *
 * 1. One history is in memory at a time.
 * 2. What cannot be read is an item with its reason, and the others follow.
 * 3. A client reads the newest run of an id: older runs are told as skipped.
 */
import { WovyrError } from "@wovyr/sdk";
import type { Client, ListFilter } from "@wovyr/sdk/client";
import { checkOptions, type HistoryEvent, type InstanceSummary, wholeNumber } from "@wovyr/sdk/internal";
import { historyFiles, readHistory } from "./history-file.ts";

/** Instances of a running orchestrator, newest first. */
export type LiveHistories = {
  readonly client: Pick<Client, "handle" | "list">;
  /** As `client.list` takes it; default: those of the one workflow that is checked, or all when several are. */
  readonly query?: ListFilter | undefined;
  /** Instances at most; default 1,000. */
  readonly limit?: number | undefined;
};

/** A run's events; the path of a file or of a folder of files; instances of a running orchestrator. */
export type Histories = readonly HistoryEvent[] | string | LiveHistories;

export type FoundHistory = {
  readonly source: string;
  readonly runId?: string | undefined;
  readonly events?: readonly HistoryEvent[];
  /** What is known without the events. */
  readonly about?: Pick<InstanceSummary, "id" | "version" | "workflow">;
  readonly unreadable?: string;
  readonly skipped?: string;
};

export const defaultLimit = 1_000;

/** `only` is the workflow whose instances are meant where the query names none; `limited` is called when there are more of them than the limit. */
export function historiesOf(histories: Histories, only: string | undefined, limited: (limit: number) => void): AsyncIterable<FoundHistory> {
  if (typeof histories === "string") return ofPath(histories);
  if (Array.isArray(histories)) return ofEvents(histories);
  if (typeof histories === "object" && histories !== null && "client" in histories) {
    checkOptions(histories, ["client", "query", "limit"], "replay's histories");
    return ofClient(histories, only, limited);
  }
  throw new WovyrError("replay takes the events of a run, the path of a file or folder, or `{ client, query? }`", {
    code: "INVALID_OPTION",
  });
}

async function* ofEvents(events: readonly HistoryEvent[]): AsyncGenerator<FoundHistory> {
  yield { source: "the given events", events };
}

async function* ofPath(path: string): AsyncGenerator<FoundHistory> {
  let files: readonly string[] = [];
  try {
    files = await historyFiles(path);
  } catch (error) {
    yield { source: path, unreadable: `This path cannot be read: ${messageOf(error)}.` };
    return;
  }
  if (files.length === 0)
    yield {
      source: path,
      unreadable: "This folder holds no history: no `.json` or `.jsonl` file is in it. Write some with saveHistory().",
    };
  for (const file of files) yield await ofFile(file);
}

async function ofFile(source: string): Promise<FoundHistory> {
  try {
    return { source, ...(await readHistory(source)) };
  } catch (error) {
    return { source, unreadable: messageOf(error) };
  }
}

async function* ofClient(
  { client, query = {}, limit = defaultLimit }: LiveHistories,
  only: string | undefined,
  limited: (limit: number) => void,
): AsyncGenerator<FoundHistory> {
  wholeNumber(limit, 1, "limit");
  const workflow = query.workflow ?? only;
  const seen = new Set<string>();
  let count = 0;
  for await (const summary of client.list({ ...query, ...(workflow !== undefined && { workflow }) })) {
    if (count === limit) {
      limited(limit);
      return;
    }
    count += 1;
    const { id, runId, version } = summary;
    const about = { source: `instance ${id}`, runId, about: { id, version, workflow: summary.workflow } };
    if (seen.has(id)) yield { ...about, skipped: "the id has a newer run" };
    else yield { ...about, ...(await newestOf(client, summary)) };
    seen.add(id);
  }
}

async function newestOf(client: LiveHistories["client"], { id, closedAt }: InstanceSummary): Promise<Partial<FoundHistory>> {
  try {
    const events: HistoryEvent[] = [];
    for await (const event of client.handle(id).history()) events.push(event);
    const last = events[events.length - 1];
    if (last === undefined) return { skipped: "nothing is recorded yet" };
    const isOther = closedAt !== undefined && new Date(last.at).getTime() !== new Date(closedAt).getTime();
    return isOther ? { skipped: "the id has a newer run" } : { events };
  } catch (error) {
    return { unreadable: messageOf(error) };
  }
}

const messageOf = (error: unknown) => (error instanceof Error ? error.message : String(error));
