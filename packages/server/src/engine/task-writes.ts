/** The tasks that a turn puts into task queues: one for each attempt that it asks for and that a worker is to make. */
import {
  type ActivityEffect,
  defaultPriority,
  type EffectId,
  type OpenActivity,
  type Payload,
  priorities,
  type ResolvedTimeouts,
} from "@wovyr/sdk/internal";
import { limitsOf } from "./attempt.ts";
import type { HistoryRows } from "./history-row.ts";
import type { Instance, InstanceIdentity, OpenTurn } from "./instance.ts";
import type { TaskWrite } from "./ports/tasks.ts";

/** What the store keeps of a task without looking at it. */
export type AboutTask = {
  readonly instanceId: string;
  readonly workflow: string;
  readonly semantics?: "atMostOnce";
  readonly timeout?: Readonly<ResolvedTimeouts>;
};

const noLabels: readonly string[] = [];

/** Undefined when there is none; synchronous unless a payload codec is at work. */
export function taskWrites(
  instance: Instance,
  { at, plan }: OpenTurn,
  rows: HistoryRows,
): readonly TaskWrite[] | Promise<readonly TaskWrite[]> | undefined {
  if (plan.attempts.size === 0) return undefined;
  let writes: (TaskWrite | Promise<TaskWrite>)[] | undefined;
  for (const effect of plan.attempts.keys()) {
    const activity = instance.state.activities.get(effect);
    if (activity?.queue === undefined || activity.state !== "Running") continue;
    const work = instance.execution?.leaves.get(effect)?.work;
    if (work?.kind !== "activity") continue;
    writes ??= [];
    writes.push(taskWrite(instance.identity, effect, activity, activity.queue, work.effect, at, rows));
  }
  if (writes === undefined) return undefined;
  return writes.some((write) => write instanceof Promise) ? Promise.all(writes) : (writes as TaskWrite[]);
}

function taskWrite(
  identity: InstanceIdentity,
  effect: EffectId,
  activity: Readonly<OpenActivity>,
  queue: string,
  call: ActivityEffect<unknown>,
  now: number,
  rows: HistoryRows,
): TaskWrite | Promise<TaskWrite> {
  const limits = limitsOf(call);
  const { heartbeat } = activity;
  const write = (input: Payload, details: Payload | undefined): TaskWrite => ({
    effect,
    queue,
    name: activity.name,
    attempt: activity.attempt,
    losses: activity.losses,
    priority: priorities.indexOf(activity.priority ?? defaultPriority),
    requires: call.definition.requires ?? noLabels,
    input,
    ...(details !== undefined && { details }),
    about: JSON.stringify(aboutTask(identity, activity, limits)),
    ...(limits !== undefined && within(limits, activity, now)),
  });
  const sealed = rows.sealNow(activity.input);
  const told = heartbeat === undefined ? undefined : rows.sealNow(heartbeat);
  if (typeof sealed === "string" && !(told instanceof Promise)) return write(sealed, told);
  return Promise.all([sealed, told]).then(([input, details]) => write(input, details));
}

function aboutTask({ id, workflow }: InstanceIdentity, { semantics }: Readonly<OpenActivity>, timeout: AboutTask["timeout"]): AboutTask {
  return {
    instanceId: id,
    workflow,
    ...(semantics === "atMostOnce" && { semantics }),
    ...(timeout !== undefined && { timeout }),
  };
}

/** The time of all attempts counts from when the activity was scheduled, as recorded. */
function within(
  { scheduleToStart, startToClose, scheduleToClose, heartbeat }: Readonly<ResolvedTimeouts>,
  { scheduledAt }: Readonly<OpenActivity>,
  now: number,
): Pick<TaskWrite, "startWithin" | "closeWithin" | "runWithin" | "beatWithin"> {
  return {
    ...(scheduleToStart !== undefined && { startWithin: scheduleToStart }),
    ...(scheduleToClose !== undefined && { closeWithin: Math.max(0, scheduledAt + scheduleToClose - now) }),
    ...(startToClose !== undefined && { runWithin: startToClose }),
    ...(heartbeat !== undefined && { beatWithin: heartbeat }),
  };
}
