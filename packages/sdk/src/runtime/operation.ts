/**
 * What a fiber waits for: a leaf (activity, timer, event, child), a combinator, or another fiber.
 *
 * 1. An operation calls its `done` exactly once, unless it is abandoned; then never.
 * 2. `cancel` closes leaves at once and lets generators unwind; `done` follows when everything below has closed.
 * 3. `abandon` closes everything below without running a line of the workflow's code.
 */
import type { CancelledError } from "../model/errors.ts";

/** `ends`: the generator is not resumed with the value but made to return; its `finally` blocks run. */
export type Outcome =
  | { readonly ok: true; readonly value: unknown; readonly ends?: true }
  | { readonly ok: false; readonly error: unknown };
export type Done = (outcome: Outcome) => void;

export interface Operation {
  cancel(reason: CancelledError): void;
  abandon(): void;
  /** Whether something is being undone in it. */
  undoing?(): boolean;
}

export const fulfilled = (value: unknown): Outcome => ({ ok: true, value });
export const rejected = (error: unknown): Outcome => ({ ok: false, error });

/** An operation that settled while it was being started. */
export const closedOperation: Operation = { cancel() {}, abandon() {} };
