/** The fibers that can go on, stepped one at a time, first in first out. */
import type { Fiber } from "./fiber.ts";
import { beginStep, endStep } from "./unrun.ts";

export class Steps {
  #ready: Fiber[] = [];
  #head = 0;
  #current: Fiber | undefined;
  #last: Fiber | undefined;
  #stopped = false;

  /** The fiber whose step has not ended. */
  get current(): Fiber | undefined {
    return this.#current;
  }

  /** The fiber that stepped last. */
  get last(): Fiber | undefined {
    return this.#last;
  }

  /** Whether a step is under way, or can be made. */
  get busy(): boolean {
    return this.#current !== undefined || this.waiting;
  }

  get waiting(): boolean {
    return this.#head < this.#ready.length;
  }

  add(fiber: Fiber): void {
    this.#ready.push(fiber);
  }

  /** Until all fibers are blocked, or a step does not end at once. */
  run(): void {
    while (this.#current === undefined && !this.#stopped) {
      const fiber = this.#ready[this.#head];
      if (fiber === undefined) {
        this.clear();
        break;
      }
      this.#head += 1;
      this.#current = fiber;
      beginStep();
      fiber.step();
    }
  }

  ended(fiber: Fiber): void {
    if (this.#current === fiber) this.#current = undefined;
    this.#last = fiber;
    endStep();
  }

  /** Those that could go on do not. */
  clear(): void {
    if (this.#ready.length > 0) this.#ready = [];
    this.#head = 0;
  }

  /** For good. */
  stop(): void {
    this.#stopped = true;
    this.clear();
    this.#current = undefined;
    endStep();
  }
}
