import type { ActivityDefinition } from "../define/activity-definition.ts";
import type { Log } from "../define/log.ts";
import { millisecondsWithin } from "../model/duration.ts";
import { WovyrError } from "../model/errors.ts";
import { checkName } from "../model/name.ts";
import { wholeNumber } from "../model/option.ts";
import { checkLabels, checkQueued, mostQueues } from "../model/task-queue.ts";
import type { WorkerOptions } from "./worker-options.ts";

/** The options of a worker, checked and with their defaults. */
export type ResolvedWorker = {
  readonly id: string;
  readonly activities: ReadonlyMap<string, ActivityDefinition>;
  readonly queues: readonly string[];
  readonly concurrency: number;
  readonly labels: readonly string[];
  readonly release: string | undefined;
  /** Milliseconds. */
  readonly lease: number;
  readonly log: Log;
};

const defaultConcurrency = 10;
const mostConcurrency = 10_000;
const defaultLease = 15_000;
const leaseBounds = ["1s", "10 minutes"] as const;
const longestRelease = 255;
/** Milliseconds that the server may take to answer where a lease would allow for more. */
const longestAnswer = 15_000;

/** Signs of life within a lease. */
export const beatsPerLease = 3;

/** Milliseconds that one request may take: a sign of life that is not answered leaves time for another. */
export const longestRequest = (lease: number): number => Math.min(longestAnswer, Math.round(lease / beatsPerLease));

/** Throws INVALID_OPTION, INVALID_DEFINITION or INVALID_NAME. */
export function resolveWorker(options: Omit<WorkerOptions, "url" | "apiKey" | "fetch">, freshId: string): ResolvedWorker {
  const { id = `worker-${freshId}`, labels = [], release, log = onStandardError } = options;
  const activities = definitionsOf(options.activities);
  const named = [...activities.values()].flatMap(({ queue }) => queue ?? []);
  if (options.queues !== undefined && !Array.isArray(options.queues))
    throw new WovyrError(`queues must be a list of names, not ${typeof options.queues}`, { code: "INVALID_OPTION" });
  const queues = [...new Set(options.queues ?? named)];
  if (queues.length === 0) {
    const why = options.queues === undefined ? "none of its activities names a queue" : "an empty list is none";
    throw new WovyrError(`createWorker needs \`queues: [ … ]\`: ${why}`, { code: "INVALID_OPTION" });
  }
  if (queues.length > mostQueues)
    throw new WovyrError(`a worker takes tasks from at most ${mostQueues} queues, not ${queues.length}`, { code: "INVALID_OPTION" });
  for (const queue of queues) checkName(queue, "the name of a queue");
  checkLabels(labels, "the labels of a worker");
  checkLog(log);
  if (release !== undefined && (typeof release !== "string" || release === "" || release.length > longestRelease))
    throw new WovyrError(`release must be a text of 1 to ${longestRelease} characters`, { code: "INVALID_OPTION" });
  const lease = millisecondsWithin(options.lease ?? defaultLease, leaseBounds, "lease");
  return {
    id: checkName(id, "the id of a worker"),
    activities,
    queues,
    concurrency: wholeNumber(options.concurrency ?? defaultConcurrency, 1, "concurrency", mostConcurrency),
    labels,
    release,
    lease,
    log,
  };
}

function definitionsOf(activities: WorkerOptions["activities"]): ReadonlyMap<string, ActivityDefinition> {
  if (!Array.isArray(activities) || activities.length === 0)
    throw new WovyrError("createWorker takes `activities: [ … ]`, one at least", { code: "INVALID_OPTION" });
  const definitions = new Map<string, ActivityDefinition>();
  for (const [index, activity] of activities.entries()) {
    const definition = (activity as { readonly definition?: ActivityDefinition } | undefined)?.definition;
    if (typeof activity !== "function" || definition === undefined)
      throw new WovyrError(`activities[${index}] is not what \`activity(…)\` returned`, { code: "INVALID_DEFINITION" });
    const { name, run } = definition;
    if (run === undefined)
      throw new WovyrError(`activity ${name} is a contract without code: give what its \`implement(fn)\` returns`, {
        code: "INVALID_DEFINITION",
      });
    checkQueued(definition, `activity ${name}`);
    if (definitions.has(name)) throw new WovyrError(`there are two activities of the name ${name}`, { code: "INVALID_DEFINITION" });
    definitions.set(name, definition);
  }
  return definitions;
}

function checkLog(log: Log): void {
  const levels = ["debug", "info", "warn", "error"] as const;
  const missing = levels.filter((level) => typeof (log as Partial<Log> | null)?.[level] !== "function");
  if (missing.length > 0)
    throw new WovyrError(`log must have the functions debug, info, warn and error; ${missing.join(", ")} missing`, {
      code: "INVALID_OPTION",
    });
}

const line = (level: string, message: string, data?: object) =>
  console.error(`${level} ${message}${data === undefined ? "" : ` ${JSON.stringify(data, shown)}`}`);
const shown = (_key: string, value: unknown) => (value instanceof Error ? `${value.name}: ${value.message}` : value);

const onStandardError: Log = {
  debug: () => {},
  info: () => {},
  warn: (message, data) => line("warn", message, data),
  error: (message, data) => line("error", message, data),
};
