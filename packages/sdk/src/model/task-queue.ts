/** What may stand in a task queue, and what a task asks of its worker. */
import { WovyrError } from "./errors.ts";
import { isName } from "./name.ts";
import type { Semantics } from "./semantics.ts";

/** How often the workers of one activity may be lost with it: then it fails with ATTEMPTS_LOST. */
export const workerLossLimit = 5;

/** Labels that one worker may have, and one activity ask for. */
export const mostLabels = 64;

/** Throws INVALID_OPTION: limits hold for what runs in the processes of orchestrators. */
export function checkUnlimited(
  { concurrency, rateLimit }: { readonly concurrency?: unknown; readonly rateLimit?: unknown },
  what: string,
): void {
  if (concurrency !== undefined || rateLimit !== undefined)
    throw new WovyrError(
      `${what} has a limit, which holds in the processes of orchestrators, and not for the workers of a queue: leave one of the two out`,
      { code: "INVALID_OPTION" },
    );
}

/** Throws INVALID_OPTION: the transaction of a transactional activity is one of the orchestrator's own process. */
export function checkQueued(semantics: Semantics | undefined, what: string): void {
  if (semantics === "transactional")
    throw new WovyrError(
      `${what} is transactional, and its transaction is open in the process of the orchestrator: it cannot run on a queue`,
      {
        code: "INVALID_OPTION",
      },
    );
}

/** Throws INVALID_OPTION. */
export function checkLabels(labels: readonly string[], what: string): void {
  if (Array.isArray(labels) && labels.length <= mostLabels && labels.every(isLabel)) return;
  throw new WovyrError(`${what} must be at most ${mostLabels} names, such as ["gpu", "region:eu"]`, { code: "INVALID_OPTION" });
}

const isLabel = (label: unknown): boolean => isName(label);
