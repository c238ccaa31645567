/** How often an activity may do its work. */
import { oneOf } from "./option.ts";

/**
 * `atLeastOnce`: an attempt that was lost, or that timed out, is made again. `atMostOnce`: it is not; when it may have done its work and nobody knows, the
 * activity fails with `OutcomeUnknownError`.
 */
export type Semantics = "atLeastOnce" | "atMostOnce";

const all: readonly Semantics[] = ["atLeastOnce", "atMostOnce"];

/** Throws INVALID_OPTION. */
export function checkSemantics(semantics: Semantics, what: string): void {
  oneOf(semantics, all, `the semantics of ${what}`);
}
