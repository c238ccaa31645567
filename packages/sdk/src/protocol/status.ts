import type { ClosedStatus, Status } from "../model/history.ts";

export const closedStatuses = [
  "Completed",
  "Failed",
  "TimedOut",
  "Cancelled",
  "Terminated",
  "ContinuedAsNew",
  "Compensated",
  "CompensationFailed",
] as const satisfies readonly ClosedStatus[];

export const statuses = [
  "Created",
  "Validated",
  "Scheduled",
  "Running",
  "Waiting",
  "Paused",
  "Parked",
  "Compensating",
  ...closedStatuses,
] as const satisfies readonly Status[];

// A status that is missing above is a compile error here.
const complete: Exclude<Status, (typeof statuses)[number]> extends never ? true : never = true;
void complete;

const closed: ReadonlySet<string> = new Set(closedStatuses);

export function isClosed(status: Status): status is ClosedStatus {
  return closed.has(status);
}

const closingEvents: ReadonlySet<string> = new Set(closedStatuses.map((status) => `Instance${status}`));

/** Whether an event of this type is a run's last one. */
export function isClosingEvent(type: string): boolean {
  return closingEvents.has(type);
}
