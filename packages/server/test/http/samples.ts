import type { OperationId } from "@wovyr/sdk/internal";

/** A request that its route takes, given that `seed` ran. A route without a row here does not compile. */
export type Sample = {
  readonly names?: Readonly<Record<string, string>>;
  readonly query?: string;
  readonly body?: object;
  readonly lines?: string;
  readonly status: number;
};

export const samples: { readonly [K in OperationId]: Sample } = {
  listWorkflows: { status: 200 },
  getWorkflow: { names: { name: "order" }, status: 200 },
  startInstance: {
    names: { name: "echo" },
    query: "wait=5s",
    body: { input: { a: 1 }, attributes: { color: "red" }, memo: { by: "me" } },
    status: 201,
  },
  startBatch: {
    names: { name: "echo" },
    body: {
      items: [
        { input: 1, idempotencyKey: "k1" },
        { input: 2, id: "batched" },
      ],
    },
    status: 200,
  },
  listInstances: { query: "status=Completed&status=Waiting&limit=10&attributes.color=red", status: 200 },
  getInstance: { names: { id: "waiting" }, status: 200 },
  listRuns: { names: { id: "completed" }, query: "limit=1", status: 200 },
  getResult: { names: { id: "completed" }, query: "wait=1ms", status: 200 },
  getHistory: { names: { id: "completed" }, query: "fromSeq=1&limit=2", status: 200 },
  getGraph: { names: { id: "completed" }, query: "format=json", status: 200 },
  streamInstance: { names: { id: "completed" }, status: 200 },
  sendEvent: { names: { id: "waiting", name: "hello" }, body: { payload: 1 }, status: 202 },
  publishEvent: {
    body: {
      specversion: "1.0",
      id: "1",
      source: "/shop",
      type: "hello",
      subject: "order-1",
      time: "2026-01-01T00:00:00Z",
      trace: "x",
      data: 1,
    },
    status: 202,
  },
  queryInstance: { names: { id: "waiting", name: "nothing" }, body: { input: 1 }, status: 404 },
  updateInstance: { names: { id: "waiting", name: "nothing" }, body: { input: 1 }, status: 404 },
  wakeInstance: { names: { id: "waiting" }, status: 202 },
  cancelInstance: { names: { id: "waiting" }, body: { mode: "graceful", reason: "no longer needed" }, status: 202 },
  retryCompensation: { names: { id: "waiting2", effect: "~0" }, body: { note: "the card works again" }, status: 404 },
  skipCompensation: { names: { id: "waiting2", effect: "~0" }, body: {}, status: 404 },
  resolveCompensation: { names: { id: "waiting2", effect: "~0" }, body: { note: "paid back by hand" }, status: 404 },
  pauseInstance: { names: { id: "waiting2" }, body: { reason: "look first" }, status: 202 },
  resumeInstance: { names: { id: "waiting2" }, status: 202 },
  forkInstance: { names: { id: "completed" }, body: { id: "forked", input: 1 }, status: 201 },
  resetInstance: { names: { id: "failed" }, body: { to: "last", reason: "once more" }, status: 201 },
  exportInstance: { names: { id: "waiting" }, status: 200 },
  importInstances: { lines: "{}", status: 422 },
  deleteInstance: { names: { id: "removable" }, status: 200 },
  startBatchOperation: { body: { operation: { type: "wake" }, filter: { workflow: "echo", status: ["Waiting"] } }, status: 202 },
  getBatchOperation: { names: { id: "batch" }, status: 200 },
  cancelBatchOperation: { names: { id: "batch" }, status: 409 },
  terminateInstance: { names: { id: "waiting2" }, body: { reason: "no longer needed" }, status: 202 },
  listDeadLetters: {
    query: "kind=activity&workflow=retrying&name=flaky&code=NON_RETRYABLE&since=2026-01-01T00:00:00Z&limit=10",
    status: 200,
  },
  getDeadLetter: { names: { letter: "a1.0~none" }, status: 404 },
  retryDeadLetter: { names: { letter: "a1.0~none" }, body: { note: "the bank is open again" }, status: 404 },
  resolveDeadLetter: { names: { letter: "a1.0~none" }, body: { output: 1, note: "paid by hand" }, status: 404 },
  failDeadLetter: { names: { letter: "a1.0~none" }, body: {}, status: 404 },
  discardDeadLetter: { names: { letter: "e1.0~none" }, body: { note: "the order is gone" }, status: 404 },
  retryDeadLetters: { body: { letters: { workflow: "retrying", kind: "activity" }, note: "the bank is open again" }, status: 202 },
  resolveDeadLetters: { body: { letters: { ids: ["a1.0~none"] }, output: 1 }, status: 202 },
  failDeadLetters: { body: { letters: { name: "flaky", code: "BUSY", since: "2026-01-01T00:00:00Z" } }, status: 202 },
  discardDeadLetters: { body: { letters: { kind: "event" }, id: "discarded" }, status: 202 },
  getCluster: { status: 200 },
  pollTasks: {
    names: { queue: "gpu" },
    query: "wait=1ms",
    body: { worker: "w1", queues: ["cpu"], activities: ["render"], labels: ["gpu"], max: 2, lease: "20s", registered: false },
    status: 204,
  },
  heartbeatTask: { names: { token: "none" }, body: { details: { done: 3 }, lease: 5_000 }, status: 409 },
  completeTask: { names: { token: "none" }, body: { output: 1 }, status: 409 },
  failTask: { names: { token: "none" }, body: { failure: { name: "Error", message: "no paper" } }, status: 409 },
  releaseTask: { names: { token: "none" }, status: 409 },
  heartbeatWorker: {
    names: { worker: "w2" },
    body: {
      state: "Busy",
      queues: ["gpu"],
      activities: ["render"],
      labels: ["gpu"],
      release: "7",
      concurrency: 4,
      running: 1,
      tokens: ["none"],
    },
    status: 200,
  },
  listWorkers: { query: "limit=10", status: 200 },
  listQueues: { status: 200 },
  live: { status: 200 },
  ready: { status: 200 },
  openapi: { status: 200 },
};
