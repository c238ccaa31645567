/**
 * The operations of workers over HTTP.
 *
 * 1. A poll is sent once: nothing tells whether one that was not answered took tasks.
 * 2. What is said of a task is said again until it is answered: the token of the task makes that safe.
 */
import type { Page } from "../protocol/operations.ts";
import { routes } from "../protocol/routes.ts";
import type { ActivityTask, QueueInfo, TaskOperations, WorkerInfo } from "../protocol/task-operations.ts";
import { type HttpCall, isReplayed } from "./http-call.ts";

export function httpTaskOperations(call: HttpCall): TaskOperations {
  return {
    async pollTasks({ queues: [queue = "", ...further], wait = 0, signal, ...asked }) {
      const body = { ...asked, ...(further.length > 0 && { queues: further }) };
      const waiting = wait > 0 ? { wait, query: { wait } } : {};
      const reply = await call(routes.pollTasks, { queue }, { ...waiting, body, signal, once: true });
      return reply.status === 204 ? [] : (reply.body as { readonly items: readonly ActivityTask[] }).items;
    },

    async heartbeatTask(token, { details, lease } = {}) {
      const body = { ...(details !== undefined && { details }), ...(lease !== undefined && { lease }) };
      return (await call(routes.heartbeatTask, { token }, { body })).body as { readonly lease: number };
    },

    async completeTask(token, output) {
      return { replayed: isReplayed(await call(routes.completeTask, { token }, { body: output === undefined ? {} : { output } })) };
    },

    async failTask(token, failure) {
      return { replayed: isReplayed(await call(routes.failTask, { token }, { body: { failure } })) };
    },

    async releaseTask(token) {
      await call(routes.releaseTask, { token });
    },

    async heartbeatWorker(worker, report) {
      return (await call(routes.heartbeatWorker, { worker }, { body: report })).body as { readonly lost: readonly string[] };
    },

    async listWorkers(query = {}) {
      return (await call(routes.listWorkers, {}, { query })).body as Page<WorkerInfo>;
    },

    async listQueues() {
      return ((await call(routes.listQueues, {})).body as { readonly items: readonly QueueInfo[] }).items;
    },
  };
}
