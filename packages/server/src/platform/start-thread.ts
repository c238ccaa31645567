import { Worker } from "node:worker_threads";

/**
 * Starts a thread from a module beside the caller: the built one (scripts/build.ts names it) when built, the source through tsx when run from source.
 *
 * 1. A built one gets none of the process's arguments: `--input-type` would end it.
 */
export function startThread(base: string, module: string, workerData: unknown): Worker {
  if (!base.endsWith(".ts")) return new Worker(new URL(`${module}.js`, base), { workerData, execArgv: [] });
  const loader = JSON.stringify(import.meta.resolve("tsx/esm/api"));
  const entry = JSON.stringify(new URL(`${module}.ts`, base).href);
  return new Worker(`import(${loader}).then(({ register }) => { register(); return import(${entry}); });`, { eval: true, workerData });
}
