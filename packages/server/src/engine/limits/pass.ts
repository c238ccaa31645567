/** An attempt on its way through its limits. */
import type { Attempt } from "../attempt.ts";
import type { Limit } from "./limits-of.ts";
import type { PermitLane } from "./permit-lane.ts";

export type Pass = {
  readonly attempt: Attempt;
  /** Of the attempt. */
  readonly key: string;
  readonly limits: readonly Limit[];
  /** How many of them it has passed. */
  passed: number;
  /** Those whose permits it holds. */
  readonly holds: PermitLane[];
  /** Whether the store has been asked for it where it waits. */
  asked: boolean;
};
