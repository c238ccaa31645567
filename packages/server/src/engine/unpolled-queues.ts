/**
 * Says of queues that tasks wait in them and that no worker polls them.
 *
 * 1. A queue is told of when a task has waited in it for `longestWait`, and then no more until a look finds a worker there, or nothing that has waited for so
 *    long.
 * 2. It looks once in `longestWait` while tasks wait, and asks the store nothing while none does.
 * 3. Every node looks. The one that owns the run of the task that comes next tells.
 */
import type { Engine } from "./engine.ts";
import { StoreUnavailableError } from "./ports/store.ts";

/** How long a task waits in a queue that no worker polls before it is told of, in milliseconds. */
const longestWait = 60_000;
/** Of more queues in which tasks wait than these, the first by name are looked at. */
const mostQueues = 1_000;

export class UnpolledQueues {
  readonly #engine: Engine;
  #told: ReadonlySet<string> = new Set();
  #running = false;
  /** Calls off the next look; undefined when there is none. */
  #cancel: (() => void) | undefined;

  constructor(engine: Engine) {
    this.#engine = engine;
  }

  start(): void {
    this.#running = true;
  }

  stop(): void {
    this.#running = false;
    this.#cancel?.();
    this.#cancel = undefined;
  }

  /** A task waits. */
  taskWaits(): void {
    if (!this.#running || this.#cancel !== undefined) return;
    const { clock } = this.#engine.options;
    this.#cancel = clock.wakeAt(clock.now() + longestWait, () => void this.#look());
  }

  async #look(): Promise<void> {
    this.#cancel = undefined;
    const { log } = this.#engine.options;
    const waits = await this.#tell().catch((error: unknown) => {
      if (!(error instanceof StoreUnavailableError)) log.error("queues that no worker polls could not be looked for", { error });
      return true;
    });
    if (waits) this.taskWaits();
  }

  /** Resolves with whether any task waits. */
  async #tell(): Promise<boolean> {
    const { ownership, options } = this.#engine;
    const { tasks } = options.store;
    const taken = [...(await tasks.takers()).keys()];
    const waiting = await tasks.waiting({ taken, longest: longestWait, limit: mostQueues });
    const told = new Set<string>();
    for (const { queue, late } of waiting) {
      if (late === undefined) continue;
      if (!this.#told.has(queue)) {
        if (!ownership.owns(late.shard)) continue;
        options.log.warn("tasks wait in a queue that no worker polls", { queue, waited: late.waited });
      }
      told.add(queue);
    }
    this.#told = told;
    return waiting.length > 0;
  }
}
