/**
 * Finds tasks whose lease or whose time is over, and tells their runs.
 *
 * 1. Whoever owns the shard of a run looks; the clock of the store decides.
 * 2. A run may be told more than once: which loss is meant is said with it, and an attempt fails once.
 * 3. It looks when the next task is due, and, where other nodes lease tasks as well, once in a while.
 */
import { failureOf, type Incoming } from "@wovyr/sdk/internal";
import { outOfTime } from "./attempt.ts";
import type { Engine } from "./engine.ts";
import { StoreUnavailableError } from "./ports/store.ts";
import { type OverdueTask, sweptFor } from "./ports/tasks.ts";
import type { AboutTask } from "./task-writes.ts";

const pageTasks = 500;
/** Milliseconds. */
const lookInterval = 1_000;
const retryPause = 500;

export class TaskSweep {
  readonly #engine: Engine;
  #due = Number.POSITIVE_INFINITY;
  #cancel = () => {};
  #working = false;
  #running = false;

  constructor(engine: Engine) {
    this.#engine = engine;
  }

  /** When it looks next, in milliseconds since the epoch; undefined when nothing is to be looked for. */
  get nextDue(): number | undefined {
    return this.#due === Number.POSITIVE_INFINITY ? undefined : this.#due;
  }

  start(): void {
    this.#running = true;
    this.within(0);
  }

  stop(): void {
    this.#running = false;
    this.#cancel();
    this.#due = Number.POSITIVE_INFINITY;
  }

  /** Looks within so many milliseconds. */
  within(milliseconds: number): void {
    const { clock } = this.#engine.options;
    const due = clock.now() + milliseconds;
    if (!this.#running || due >= this.#due) return;
    this.#due = due;
    this.#cancel();
    this.#cancel = clock.wakeAt(due, () => void this.#look());
  }

  async #look(): Promise<void> {
    this.#due = Number.POSITIVE_INFINITY;
    if (this.#working || !this.#running) return;
    this.#working = true;
    const next = await this.#sweep().catch((error: unknown) => {
      if (!(error instanceof StoreUnavailableError)) this.#engine.options.log.error("overdue tasks could not be looked for", { error });
      return retryPause;
    });
    this.#working = false;
    if (next !== undefined) this.within(next);
  }

  /** Resolves with the milliseconds until the next look. */
  async #sweep(): Promise<number | undefined> {
    const { ownership, options } = this.#engine;
    if (!ownership.holds) return retryPause;
    const { overdue, nextIn, waits } = await options.store.tasks.sweep(ownership.shards, pageTasks);
    if (waits) this.#engine.unpolledQueues.taskWaits();
    for (const task of overdue) await this.#tell(task);
    if (overdue.length === pageTasks) return 0;
    const shared = options.looksForTasks === true ? Math.round(lookInterval * (0.5 + options.random.fraction())) : undefined;
    if (nextIn === undefined || shared === undefined) return nextIn ?? shared;
    return Math.min(nextIn, shared);
  }

  async #tell(task: OverdueTask): Promise<void> {
    const { tenant, run, shard, effect, name, attempt, worker, end } = task;
    this.#engine.options.log.warn(
      end === "lost" ? "a worker was lost with its task, or was silent for longer than its lease" : "a task is out of time",
      { activity: name, run, effect, attempt, worker, end },
    );
    if (end === "lost") this.#engine.taskQueues.silent(worker);
    const heartbeat = task.details === undefined ? undefined : await this.#engine.rows.open(task.details);
    this.#engine.deliver({ tenant, run, shard }, { fact: { ...factOf(task), ...(heartbeat !== undefined && { heartbeat }) } });
    this.within(sweptFor);
  }
}

function factOf({ effect, name, attempt, losses, end, about }: OverdueTask): Extract<Incoming, { type: "AttemptLost" | "ActivityFailed" }> {
  if (end === "lost") return { type: "AttemptLost", effect, attempt, cause: "crash", losses };
  const { timeout = {} } = JSON.parse(about) as AboutTask;
  const failure = { ...failureOf(outOfTime({ name, attempt }, end, timeout[end] ?? 0)), kind: "timeout" as const };
  // What waits has no further attempt, nor has what used up the time of all attempts.
  const noRetry = end === "scheduleToStart" || end === "scheduleToClose" ? end : undefined;
  return { type: "ActivityFailed", effect, attempt, failure, ...(noRetry !== undefined && { noRetry }) };
}
