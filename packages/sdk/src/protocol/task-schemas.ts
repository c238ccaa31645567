/** The shapes of bodies that workers send and receive, as JSON (the plain view). */
import { type Static, Type } from "@sinclair/typebox";
import { mostLabels, mostQueues } from "../model/task-queue.ts";
import { anyValue, choice, durationSchema, nameSchema, timestamp } from "./kinds.ts";
import { FailureSchema } from "./schemas.ts";
import { workerStates } from "./task-operations.ts";

const strict = { additionalProperties: false } as const;
const state = choice(workerStates, { $id: "WorkerState" });
const told = choice(
  workerStates.filter((each) => each !== "Lost"),
  { description: "As `WorkerState`, but that it is lost is found out by others." },
);
const labels = Type.Array(nameSchema, { maxItems: mostLabels, description: "What the worker has to offer" });
const lease = Type.Unsafe<Static<typeof durationSchema>>({
  ...durationSchema,
  description: `How long it holds without a sign of life, from 1 s to 10 minutes, default 30 s: ${durationSchema.description}`,
});

const longestList = 1_000;

export const PollBody = Type.Object(
  {
    worker: nameSchema,
    queues: Type.Optional(Type.Array(nameSchema, { maxItems: mostQueues - 1, description: "Further queues to take tasks from" })),
    activities: Type.Optional(
      Type.Array(nameSchema, { maxItems: longestList, description: "Activities that the worker has; default: whatever comes" }),
    ),
    labels: Type.Optional(labels),
    max: Type.Optional(Type.Integer({ minimum: 1, maximum: 1_000, description: "Tasks at most; default 1" })),
    lease: Type.Optional(lease),
    registered: Type.Optional(Type.Boolean({ description: "Whether the worker tells of itself by its own heartbeat" })),
  },
  { ...strict, $id: "TaskPoll" },
);
export type PollBody = Static<typeof PollBody>;

const timeouts = Type.Object(
  {
    scheduleToStart: Type.Optional(Type.Number()),
    startToClose: Type.Optional(Type.Number()),
    scheduleToClose: Type.Optional(Type.Number()),
    heartbeat: Type.Optional(Type.Number()),
  },
  { description: "In milliseconds" },
);

const TaskSchema = Type.Object(
  {
    token: nameSchema,
    queue: nameSchema,
    activity: nameSchema,
    input: Type.Optional(anyValue),
    attempt: Type.Integer(),
    idempotencyKey: Type.String(),
    instanceId: nameSchema,
    runId: nameSchema,
    workflow: nameSchema,
    lastHeartbeat: Type.Optional(anyValue),
    semantics: Type.Optional(choice(["atMostOnce"])),
    timeout: Type.Optional(timeouts),
  },
  { $id: "ActivityTask", description: "An attempt of an activity, for a worker to make." },
);

export const TaskList = Type.Object({ items: Type.Array(TaskSchema) }, { $id: "ActivityTaskList" });

export const TaskHeartbeatBody = Type.Object(
  { details: Type.Optional(anyValue), lease: Type.Optional(lease) },
  { ...strict, $id: "TaskHeartbeat" },
);
export const TaskHeartbeatAnswer = Type.Object(
  { lease: Type.Integer({ description: "Milliseconds for which the task is the worker's from now on" }) },
  { $id: "TaskLease" },
);
export const CompleteBody = Type.Object({ output: Type.Optional(anyValue) }, { ...strict, $id: "TaskOutput" });
export const FailBody = Type.Object({ failure: FailureSchema }, { ...strict, $id: "TaskFailure" });
export const TaskAnswer = Type.Object({ token: nameSchema }, { $id: "TaskSettled" });

export const WorkerHeartbeatBody = Type.Object(
  {
    state: told,
    queues: Type.Array(nameSchema, { maxItems: mostQueues }),
    activities: Type.Optional(Type.Array(nameSchema, { maxItems: longestList })),
    labels: Type.Optional(labels),
    release: Type.Optional(Type.String({ maxLength: 255 })),
    concurrency: Type.Optional(Type.Integer({ minimum: 0 })),
    running: Type.Optional(Type.Integer({ minimum: 0 })),
    tokens: Type.Optional(Type.Array(nameSchema, { maxItems: 10_000, description: "Tasks that it works on: their leases are prolonged" })),
    lease: Type.Optional(lease),
  },
  { ...strict, $id: "WorkerReport" },
);
export type WorkerHeartbeatBody = Static<typeof WorkerHeartbeatBody>;

export const WorkerHeartbeatAnswer = Type.Object(
  { lost: Type.Array(nameSchema, { description: "Tasks that are not the worker's any more: it is to stop working on them" }) },
  { $id: "WorkerHeartbeat" },
);

const WorkerSchema = Type.Object(
  {
    id: nameSchema,
    state,
    queues: Type.Array(nameSchema),
    activities: Type.Optional(Type.Array(nameSchema)),
    labels: Type.Array(nameSchema),
    release: Type.Optional(Type.String()),
    concurrency: Type.Optional(Type.Integer()),
    running: Type.Integer(),
    lastSeenAt: timestamp,
  },
  { $id: "Worker" },
);

export const WorkerList = Type.Object({ items: Type.Array(WorkerSchema), nextCursor: Type.Optional(Type.String()) }, { $id: "WorkerList" });

const QueueSchema = Type.Object(
  {
    name: nameSchema,
    waiting: Type.Integer({ description: "Tasks that wait for a worker" }),
    leased: Type.Integer({ description: "Tasks that a worker has" }),
    oldestAt: Type.Optional(timestamp),
    workers: Type.Integer({ description: "Workers that take tasks from it: neither `Draining`, nor `Stopped`, nor `Lost`" }),
  },
  {
    $id: "TaskQueue",
    description: "A queue in which tasks are. `oldestAt` says since when the oldest of those that wait does; absent when none waits.",
  },
);

export const QueueList = Type.Object({ items: Type.Array(QueueSchema) }, { $id: "TaskQueueList" });
