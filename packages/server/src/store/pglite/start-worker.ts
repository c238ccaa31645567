import { Worker } from "node:worker_threads";
import type { PgliteWorkerData } from "./protocol.ts";

/** Starts the database's thread: from the build as it is, from sources with the loader that runs them, which threads do not inherit on Node 20. */
export function startWorker(workerData: PgliteWorkerData): Worker {
  if (!import.meta.url.endsWith(".ts")) return new Worker(new URL("./worker.js", import.meta.url), { workerData });
  const loader = JSON.stringify(import.meta.resolve("tsx/esm/api"));
  const entry = JSON.stringify(new URL("./worker.ts", import.meta.url).href);
  return new Worker(`import(${loader}).then(({ register }) => { register(); return import(${entry}); });`, { eval: true, workerData });
}
