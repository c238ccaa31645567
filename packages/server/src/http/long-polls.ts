/**
 * Requests that wait for something to happen.
 *
 * 1. A wait ends when its answer is there, when its time is over, when its client is gone or when the server closes, whichever is first; nothing of it is left behind.
 * 2. There is a bound on how many wait.
 */
import type { ServerResponse } from "node:http";
import { ApiError, type Operations, type ResultResponse, type View } from "@wovyr/sdk/internal";

export class LongPolls {
  readonly #limit: number;
  readonly #open = new Set<AbortController>();
  #closed = false;

  constructor(limit: number) {
    this.#limit = limit;
  }

  /** Asks with a signal that ends the wait early; `now` answers then, without waiting. */
  async wait<T>(response: ServerResponse, ask: (signal: AbortSignal) => Promise<T>, now: () => Promise<T>): Promise<T> {
    if (this.#closed || response.destroyed) return now();
    if (this.#open.size >= this.#limit)
      throw new ApiError(`${this.#limit} requests are waiting already`, {
        code: "OVERLOADED",
      });
    const controller = new AbortController();
    const gone = () => controller.abort();
    this.#open.add(controller);
    response.once("close", gone);
    try {
      return await ask(controller.signal);
    } catch (error) {
      if (controller.signal.aborted) return await now();
      throw error;
    } finally {
      this.#open.delete(controller);
      response.removeListener("close", gone);
    }
  }

  close(): void {
    this.#closed = true;
    for (const controller of this.#open) controller.abort();
  }
}

/** The result of a run, waited for as long as asked. */
export async function resultOf(
  polls: LongPolls,
  response: ServerResponse,
  operations: Operations,
  id: string,
  { runId, wait = 0 }: { readonly runId?: string; readonly wait?: number },
  view: View,
): Promise<ResultResponse> {
  const run = runId === undefined ? {} : { runId };
  const now = () => operations.result(id, run);
  const result = wait === 0 ? await now() : await polls.wait(response, (signal) => operations.result(id, { ...run, wait, signal }), now);
  return shownResult(result, view);
}

/** A completed run without an output shows `null` in the plain view. */
export function shownResult<T extends { readonly status: string; readonly output?: unknown }>(result: T, view: View): T {
  return view === "plain" && result.status === "Completed" && result.output === undefined ? { ...result, output: null } : result;
}
