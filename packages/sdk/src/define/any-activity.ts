import type { Activity } from "./activity.ts";

/** An activity of whatever input and output. */
export type AnyActivity = Activity<never, unknown>;
