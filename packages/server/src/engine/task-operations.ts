/** The engine's answer to workers. They serve all tenants: a queue is shared by them. */
import type { TaskOperations, TaskPoll } from "@wovyr/sdk/internal";
import type { Engine } from "./engine.ts";
import { leaseOf } from "./task-leases.ts";

export function taskOperations(engine: () => Engine): TaskOperations {
  return {
    pollTasks: async (poll) => polled(acting(engine()), poll),
    heartbeatTask: (token, { details, lease } = {}) => engine().taskLeases.heartbeat(token, details, lease),
    completeTask: async (token, output) => acting(engine()).taskLeases.complete(token, output),
    failTask: async (token, failure) => acting(engine()).taskLeases.failAs(token, failure),
    releaseTask: (token) => engine().taskLeases.releaseOne(token),
    heartbeatWorker: (id, report) => engine().workers.heartbeat(id, report),
    listWorkers: (request) => engine().workers.list(request),
    listQueues: async () => {
      const { tasks } = engine().options.store;
      const [depths, takers] = await Promise.all([tasks.depths(), tasks.takers()]);
      return depths.map(({ queue, waiting, leased, oldestAt }) => ({
        name: queue,
        waiting,
        leased,
        ...(oldestAt !== undefined && { oldestAt: new Date(oldestAt) }),
        workers: takers.get(queue) ?? 0,
      }));
    },
  };
}

/** A node that can do nothing for runs gives out no tasks of theirs, and takes no outcomes: whoever asks is to ask another one. */
function acting(engine: Engine): Engine {
  if (engine.unavailable !== undefined) throw engine.unavailable;
  return engine;
}

/** A worker that does not tell of itself is known by its polls. */
async function polled({ taskQueues, workers, options }: Engine, poll: TaskPoll) {
  if (poll.registered === true) return taskQueues.poll(poll);
  const { queues, activities, labels, worker, wait = 0 } = poll;
  const holds = wait + leaseOf(poll.lease);
  const tell = (running: number) => {
    const about = { queues, running, ...(activities !== undefined && { activities }), ...(labels !== undefined && { labels }) };
    workers
      .told(worker, { state: running === 0 ? "Idle" : "Busy", ...about }, holds)
      .catch((error) => options.log.debug("a worker could not be noted", { worker, error }));
  };
  tell(0);
  const tasks = await taskQueues.poll(poll);
  if (tasks.length > 0) tell(tasks.length);
  return tasks;
}
