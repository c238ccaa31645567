import { nanoid } from "nanoid";
import { transportOf } from "../client/create-client.ts";
import { httpOperations } from "../client/http-operations.ts";
import { WovyrError } from "../model/errors.ts";
import { checkOptions, defined } from "../model/option.ts";
import { longestRequest, resolveWorker } from "./resolved-worker.ts";
import { TaskWorker } from "./task-worker.ts";
import type { Worker, WorkerOptions } from "./worker-options.ts";

const known = ["url", "apiKey", "activities", "queues", "concurrency", "labels", "id", "release", "lease", "log", "fetch"];

/** Makes a worker; nothing is sent before `run()`. Rejects with INVALID_OPTION, INVALID_DEFINITION or INVALID_NAME. */
export async function createWorker(options: WorkerOptions): Promise<Worker> {
  checkOptions(options, known, "createWorker");
  if (options?.url === undefined) throw new WovyrError("createWorker needs the `url` of an orchestrator", { code: "INVALID_OPTION" });
  const { url, apiKey, fetch, ...rest } = options;
  const worker = resolveWorker(rest, nanoid());
  // It tries again by itself: how often and how long depends on what a task may still hope for.
  const retry = { maxAttempts: 1 };
  const transport = transportOf({ url, ...defined({ apiKey, fetch }), retry, requestTimeout: longestRequest(worker.lease) });
  return new TaskWorker(httpOperations(transport), worker);
}
