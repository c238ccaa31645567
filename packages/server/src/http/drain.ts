import type { ServerResponse } from "node:http";
import type { Caller } from "./caller.ts";

/**
 * How a server goes down.
 *
 * 1. When it begins, everything that waits is told so at once: long polls answer, streams end.
 * 2. Requests under way are then given time to end by themselves.
 * 3. New ones are refused. Those of other nodes are not while this one still has runs that nobody else can speak for: until the end of that is told.
 */
export class Drain {
  #closing = false;
  #speaksForRuns = true;
  #underWay = 0;
  #idle: (() => void) | undefined;
  readonly #waiting = new Set<() => void>();
  readonly #left = () => {
    this.#underWay -= 1;
    if (this.#underWay === 0) this.#idle?.();
  };

  get closing(): boolean {
    return this.#closing;
  }

  /** Whether requests are refused: all, or all but those of other nodes. */
  refuses(kind: Caller["kind"]): boolean {
    return this.#closing && (kind === "client" || !this.#speaksForRuns);
  }

  /** This node has no runs any more. */
  over(): void {
    this.#speaksForRuns = false;
  }

  /** Calls `end` when the server begins to close. */
  onClose(end: () => void): void {
    this.#waiting.add(end);
  }

  begin(): void {
    this.#closing = true;
    for (const end of this.#waiting) end();
  }

  /** Counts a response as under way until its connection is done with it. */
  enter(response: ServerResponse): void {
    this.#underWay += 1;
    response.once("close", this.#left);
  }

  /** Resolves when nothing is under way, or after `limit` milliseconds. */
  async idle(limit: number): Promise<void> {
    if (this.#underWay === 0) return;
    let timer: NodeJS.Timeout | undefined;
    await new Promise<void>((resolve) => {
      this.#idle = resolve;
      timer = setTimeout(resolve, limit);
    });
    clearTimeout(timer);
  }
}
