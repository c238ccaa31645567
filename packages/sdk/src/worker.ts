export type { QueueInfo, WorkerInfo, WorkerState } from "./protocol/task-operations.ts";
export { createWorker } from "./worker/create-worker.ts";
export type { StopOptions, Worker, WorkerOptions } from "./worker/worker-options.ts";
