/** The rows of the route table that are for workers, and about them. What they change needs no `Idempotency-Key`: the token of a task is one. */
import { cursorParameter, durationParameter, wholeNumber } from "./query.ts";
import type { Route } from "./routes.ts";
import {
  CompleteBody,
  FailBody,
  PollBody,
  QueueList,
  TaskAnswer,
  TaskHeartbeatAnswer,
  TaskHeartbeatBody,
  TaskList,
  WorkerHeartbeatAnswer,
  WorkerHeartbeatBody,
  WorkerList,
} from "./task-schemas.ts";

/** The longest that one poll waits, in milliseconds; a longer `wait` counts as this. */
const longestPoll = 60_000;

const settled = (description: string) => ({ 200: { description, schema: TaskAnswer, headers: ["Idempotency-Replayed"] } }) as const;

export const taskRoutes = {
  pollTasks: {
    method: "POST",
    path: "/v1/queues/{queue}/poll",
    summary: "Take tasks from a queue; each is the worker's until its lease ends",
    query: {
      wait: durationParameter(
        "How long to wait for a task; at most 60 s, and a longer wait counts as that. Default: not at all.",
        longestPoll,
      ),
    },
    body: { schema: PollBody, required: true },
    answers: {
      200: { description: "At most as many as were asked for.", schema: TaskList },
      204: { description: "None came in time; ask again." },
    },
    errors: ["INVALID_DURATION", "INVALID_OPTION"],
  },
  heartbeatTask: {
    method: "POST",
    path: "/v1/activity-tasks/{token}/heartbeat",
    summary: "Say that a task is at work: its lease is prolonged",
    body: { schema: TaskHeartbeatBody, required: false },
    answers: { 200: { description: "It is the worker's.", schema: TaskHeartbeatAnswer } },
    errors: ["TASK_NOT_HELD", "INVALID_DURATION", "INVALID_OPTION"],
  },
  completeTask: {
    method: "POST",
    path: "/v1/activity-tasks/{token}/complete",
    summary: "Say what a task came to",
    body: { schema: CompleteBody, required: false },
    answers: settled("Durable; the same again is answered the same."),
    errors: ["TASK_NOT_HELD"],
  },
  failTask: {
    method: "POST",
    path: "/v1/activity-tasks/{token}/fail",
    summary: "Say that a task failed; whether it is tried again is decided by its workflow",
    body: { schema: FailBody, required: true },
    answers: settled("Durable; the same again is answered the same."),
    errors: ["TASK_NOT_HELD"],
  },
  releaseTask: {
    method: "POST",
    path: "/v1/activity-tasks/{token}/release",
    summary: "Hand a task back: another worker gets it at once",
    answers: settled("It waits in its queue again."),
    errors: ["TASK_NOT_HELD"],
  },
  heartbeatWorker: {
    method: "POST",
    path: "/v1/workers/{worker}/heartbeat",
    summary: "Tell of a worker, and prolong the leases of its tasks",
    body: { schema: WorkerHeartbeatBody, required: true },
    answers: { 200: { description: "Which of the tasks are not its any more.", schema: WorkerHeartbeatAnswer } },
    errors: ["INVALID_DURATION", "INVALID_OPTION"],
  },
  listWorkers: {
    method: "GET",
    path: "/v1/workers",
    summary: "List workers, as they told of themselves last",
    query: { cursor: cursorParameter, limit: wholeNumber("Workers per page.", 1, 500, 50) },
    answers: { 200: { description: "A page, by id.", schema: WorkerList } },
    errors: ["INVALID_CURSOR"],
  },
  listQueues: {
    method: "GET",
    path: "/v1/queues",
    summary: "List queues in which tasks are, and whether anybody takes them",
    answers: { 200: { description: "All of them, by name.", schema: QueueList } },
    errors: [],
  },
} as const satisfies Record<string, Route>;
