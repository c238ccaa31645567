/** How often an activity may do its work. */
import { WovyrError } from "./errors.ts";
import { oneOf } from "./option.ts";

/**
 * `atLeastOnce`: an attempt that was lost, or that timed out, is made again. `atMostOnce`: it is not; when it may have done its work and nobody knows, the
 * activity fails with `OutcomeUnknownError`. `transactional`: what it writes by `ctx.tx` and what came of it become durable in one transaction, so that it is
 * done exactly once.
 */
export type Semantics = "atLeastOnce" | "atMostOnce" | "transactional";

/** What a single call may say: only the definition of an activity can make it transactional, for its function has to use the transaction. */
export type CallSemantics = Exclude<Semantics, "transactional">;

const all: readonly Semantics[] = ["atLeastOnce", "atMostOnce", "transactional"];

/** Throws INVALID_OPTION. */
export function checkSemantics(semantics: Semantics, what: string): void {
  oneOf(semantics, all, `the semantics of ${what}`);
}

/** Throws INVALID_OPTION; `defined` is what the definition says. */
export function checkCallSemantics(semantics: Semantics, defined: Semantics | undefined, what: string): void {
  checkSemantics(semantics, what);
  if (semantics === defined || (semantics !== "transactional" && defined !== "transactional")) return;
  throw new WovyrError(
    `a call cannot make ${what} ${semantics === "transactional" ? "transactional" : `"${semantics}"`}: its definition ${defined === "transactional" ? "is" : "is not"} transactional, and its function relies on it. Say it in the definition`,
    { code: "INVALID_OPTION" },
  );
}
