/** What happens when an activity has failed for good: it fails, or waits until a person decides. */
import { oneOf } from "./option.ts";

export type OnExhausted = "fail" | "pause";

const all: readonly OnExhausted[] = ["fail", "pause"];

/** Throws INVALID_OPTION. */
export function checkOnExhausted(onExhausted: OnExhausted, what: string): void {
  oneOf(onExhausted, all, `onExhausted of ${what}`);
}
