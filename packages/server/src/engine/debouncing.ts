/**
 * Debounced starts: the first makes a run that is entered later, and those that come until then take its place, each with all that it says.
 *
 * 1. The run that is still to be entered has a start key that is made of the debounce key: of two first starts at once one makes it, and the other finds it.
 * 2. A start that finds a run that was entered meanwhile frees the key, if it is still that run's, and is the first of the next.
 */
import { ApiError } from "@wovyr/sdk";
import {
  decodePayload,
  type Incoming,
  keyOf,
  messageDigest,
  type StartDetails,
  type StartRequest,
  startDetails,
  type WorkflowDefinition,
} from "@wovyr/sdk/internal";
import type { Engine } from "./engine.ts";
import { StartIsOver } from "./mail.ts";
import type { NewInstance, RunAddress } from "./ports/store.ts";

type StartReplaced = Extract<Incoming, { type: "StartReplaced" }>;

export type DebouncedStart = {
  readonly startKey: NonNullable<NewInstance["startKey"]>;
  /** Milliseconds since the epoch: when it is entered, unless another start comes, and when at the latest. */
  readonly startAt: number;
  readonly until: number;
  /** Said again, it is known. */
  readonly known?: Readonly<Record<string, string>>;
};

/** No idempotency key of a caller holds a space. */
const keyPrefix = "debounce ";

/** Undefined when the workflow is not debounced. Throws for what a debounced start cannot have. */
export function debouncedStart(
  { name, debounce }: WorkflowDefinition,
  request: StartRequest,
  said: StartDetails,
  now: number,
): DebouncedStart | undefined {
  if (debounce === undefined) return undefined;
  for (const option of ["id", "startAt", "delay", "event", "onConflict"] as const)
    if (request[option] !== undefined)
      throw new ApiError(`Workflow "${name}" is debounced: its starts take the place of one another, and none has ${option}.`, {
        code: "INVALID_OPTION",
      });
  const { key, period, maxWait } = debounce;
  const made = key === undefined ? "" : keyOf(key, decodePayload(said.input), `debounce.key of workflow "${name}"`);
  const { idempotencyKey } = request;
  return {
    startKey: { key: `${keyPrefix}${made}`, digest: "debounce" },
    startAt: now + period,
    until: now + maxWait,
    ...(idempotencyKey !== undefined && { known: { [idempotencyKey]: messageDigest(replacement(idempotencyKey, said, period)) } }),
  };
}

export const replacement = (message: string, said: StartDetails, delay: number): StartReplaced => ({
  type: "StartReplaced",
  message,
  delay,
  ...startDetails(said),
});

/** Puts a start in the place of one that is still to be entered; undefined when that one was entered, or came to nothing. */
export function replaceStart(engine: Engine, key: RunAddress, fact: StartReplaced): Promise<{ readonly replayed: boolean } | undefined> {
  return new Promise((resolve, reject) => {
    const refused = (error: Error) => (isOver(error) ? resolve(undefined) : reject(error));
    engine.deliver(key, { fact, receipt: { accepted: (replayed) => resolve({ replayed }), refused } });
  });
}

const isOver = (error: Error): boolean =>
  error instanceof StartIsOver || (error instanceof ApiError && (error.code === "INSTANCE_CLOSED" || error.code === "INSTANCE_NOT_FOUND"));
