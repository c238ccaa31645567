/** What workers ask, and what is asked about them. */
import { type FailureView, milliseconds, readAt, type TaskPoll } from "@wovyr/sdk/internal";
import { type Answer, replayedHeader } from "./answer.ts";
import type { Handlers } from "./handler.ts";
import type { LongPolls } from "./long-polls.ts";

type Served =
  | "pollTasks"
  | "heartbeatTask"
  | "completeTask"
  | "failTask"
  | "releaseTask"
  | "heartbeatWorker"
  | "listWorkers"
  | "listQueues";

export function taskHandlers(polls: LongPolls): Pick<Handlers, Served> {
  return {
    async pollTasks({ operations, names, query: { wait = 0 }, body, view, reply }) {
      const { queues = [], lease, ...rest } = body;
      const poll: TaskPoll = { ...rest, queues: [names.queue, ...queues], ...leaseAt(lease) };
      const items = await polls.wait(
        reply.raw,
        (signal) => operations.pollTasks({ ...poll, wait, signal }),
        async () => [],
      );
      if (items.length === 0) return { status: 204 };
      if (!reply.raw.destroyed) return { status: 200, value: { items: view === "plain" ? items.map(withInput) : items } };
      // Nobody is there to take them.
      await Promise.allSettled(items.map(({ token }) => operations.releaseTask(token)));
      return { status: 204 };
    },

    async heartbeatTask({ operations, names, body: { details, lease } }) {
      return { status: 200, value: await operations.heartbeatTask(names.token, { details, ...leaseAt(lease) }) };
    },

    async completeTask({ operations, names, body }) {
      return settled(names.token, await operations.completeTask(names.token, body.output));
    },

    async failTask({ operations, names, body }) {
      return settled(names.token, await operations.failTask(names.token, body.failure as FailureView));
    },

    async releaseTask({ operations, names }) {
      await operations.releaseTask(names.token);
      return settled(names.token, { replayed: false });
    },

    async heartbeatWorker({ operations, names, body: { lease, ...report } }) {
      return { status: 200, value: await operations.heartbeatWorker(names.worker, { ...report, ...leaseAt(lease) }) };
    },

    async listWorkers({ operations, query }) {
      return { status: 200, value: await operations.listWorkers(query) };
    },

    async listQueues({ operations }) {
      return { status: 200, value: { items: await operations.listQueues() } };
    },
  };
}

const leaseAt = (lease: string | number | undefined) =>
  lease === undefined ? {} : { lease: readAt("/lease", (what) => milliseconds(lease as never, what)) };

/** JSON has no `undefined`: a task without an input shows `null`. */
const withInput = <T extends { readonly input: unknown }>(task: T): T => (task.input === undefined ? { ...task, input: null } : task);

const settled = (token: string, { replayed }: { readonly replayed: boolean }): Answer => ({
  status: 200,
  value: { token },
  ...(replayed && { headers: replayedHeader }),
});
