/** The life of one activity effect: which state may follow which. An in-process attempt runs from the moment in which it is recorded. */
import { InvalidTransition } from "./invalid-transition.ts";

export type ActivityState =
  | "Created"
  | "Ready"
  | "Scheduled"
  | "Running"
  | "Retrying"
  | "Paused"
  | "Completed"
  | "Failed"
  | "TimedOut"
  | "Cancelled"
  | "Lost";

export const activityTransitions: Readonly<Record<ActivityState, readonly ActivityState[]>> = {
  Created: ["Ready", "Cancelled"],
  Ready: ["Scheduled", "Cancelled"],
  // One that has to wait for its place may run out of time before it begins.
  Scheduled: ["Running", "TimedOut", "Failed", "Cancelled"],
  Running: ["Completed", "Failed", "TimedOut", "Cancelled", "Lost"],
  Failed: ["Retrying", "Paused"],
  TimedOut: ["Retrying", "Paused"],
  Retrying: ["Scheduled", "TimedOut", "Failed", "Cancelled"],
  // Somebody decides: it is tried anew, it completed, it failed. Or its time is over.
  Paused: ["Scheduled", "Completed", "Failed", "TimedOut", "Cancelled"],
  Lost: ["Scheduled", "TimedOut", "Failed", "Cancelled"],
  Completed: [],
  Cancelled: [],
};

/** Returns `to`; throws `InvalidTransition` when the table does not allow it. */
export function moveActivity(effect: string, from: ActivityState, to: ActivityState): ActivityState {
  if (!activityTransitions[from].includes(to)) throw new InvalidTransition(`activity ${effect}`, from, to);
  return to;
}
