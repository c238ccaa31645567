/** What may stand in a task queue, and what a task asks of its worker. */
import { WovyrError } from "./errors.ts";
import { isName } from "./name.ts";
import type { Semantics } from "./semantics.ts";

/** How often the workers of one activity may be lost with it: then it fails with ATTEMPTS_LOST. */
export const workerLossLimit = 5;

/** Labels that one worker may have, and one activity ask for. */
export const mostLabels = 64;

/** Queues that one worker may take tasks from. */
export const mostQueues = 64;

/** What an activity says of itself that the process of the orchestrator keeps to. */
type KeptHere = {
  readonly semantics?: Semantics | undefined;
  readonly concurrency?: unknown;
  readonly rateLimit?: unknown;
};

/** Throws INVALID_OPTION for what cannot go with a queue: a transaction, and what orchestrators hold attempts back by. */
export function checkQueued(options: KeptHere, what: string): void {
  if (options.semantics === "transactional")
    throw new WovyrError(
      `${what} is transactional, and its transaction is open in the process of the orchestrator: it cannot run on a queue`,
      { code: "INVALID_OPTION" },
    );
  for (const option of ["concurrency", "rateLimit"] as const)
    if (options[option] !== undefined)
      throw new WovyrError(
        `${what} runs on a queue, and has ${option}, which holds only for what orchestrators run themselves; bound the concurrency of its workers instead`,
        { code: "INVALID_OPTION" },
      );
}

/** Throws INVALID_OPTION. */
export function checkLabels(labels: readonly string[], what: string): void {
  const given = wrongLabels(labels);
  if (given === undefined) return;
  throw new WovyrError(`${what} must be a list of at most ${mostLabels} names, such as ["gpu", "region:eu"], and not ${given}`, {
    code: "INVALID_OPTION",
  });
}

function wrongLabels(labels: unknown): string | undefined {
  if (!Array.isArray(labels)) return labels === null ? "null" : typeof labels;
  if (labels.length > mostLabels) return `${labels.length}`;
  const at = labels.findIndex((label) => !isName(label));
  if (at === -1) return undefined;
  const label: unknown = labels[at];
  return `${typeof label === "string" ? JSON.stringify(label.slice(0, 80)) : typeof label}, its item ${at}`;
}
