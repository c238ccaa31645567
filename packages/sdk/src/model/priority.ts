/** How urgent work is that waits for a place; what it means is said by the orchestrator's scheduling strategy. */
import { oneOf } from "./option.ts";

export type Priority = "critical" | "high" | "normal" | "low";

/** The most urgent first. */
export const priorities: readonly Priority[] = ["critical", "high", "normal", "low"];

/** What is recorded of it: nothing, where nothing else was said. */
export const defaultPriority: Priority = "normal";

/** Throws INVALID_OPTION, which names the option `what`. */
export function checkPriority(priority: Priority, what: string): Priority {
  return oneOf(priority, priorities, what);
}

/** The first that is said, as it is recorded: absent where it is the default. */
export function recordedPriority(...said: readonly (Priority | undefined)[]): { readonly priority?: Priority } {
  const priority = said.find((each) => each !== undefined);
  return priority === undefined || priority === defaultPriority ? {} : { priority };
}
