/**
 * A worker: takes tasks from queues, works on them, tells of itself.
 *
 * 1. It asks for as many tasks as it has places, and never has more.
 * 2. Three times within a lease it tells of itself and of its tasks, whatever they do: one that blocks the process loses them.
 * 3. A server that is away is asked again, with jitter, for ever; what it refuses for good ends the worker.
 * 4. One that answers at once, and with nothing, is asked more and more seldom, once a second at least.
 * 5. When it is stopped it takes no more, ends what it has within its grace and hands back the rest at once.
 */
import { delayAfter, pause } from "../client/retry.ts";
import { milliseconds } from "../model/duration.ts";
import { ApiError, WovyrError } from "../model/errors.ts";
import { checkOptions } from "../model/option.ts";
import type { ActivityTask, TaskOperations, WorkerReport } from "../protocol/task-operations.ts";
import { HeldTask } from "./held-task.ts";
import { beatsPerLease, type ResolvedWorker } from "./resolved-worker.ts";
import type { StopOptions, Worker } from "./worker-options.ts";

/** Milliseconds that one poll waits. */
const pollWait = 30_000;
const defaultGrace = 30_000;
/** Milliseconds: an empty answer that comes sooner was not waited for. */
const earlyAnswer = 1_000;
const earlyRetry = { maxAttempts: 1_000, maxDuration: 0, initialDelay: 50, maxDelay: 1_000 };
/** Early answers in a row after which it is told. */
const tellingEarly = 10;
const pollRetry = { maxAttempts: 1_000, maxDuration: 0, initialDelay: 200, maxDelay: 5_000 };

export class TaskWorker implements Worker {
  readonly id: string;
  readonly #operations: TaskOperations;
  readonly #worker: ResolvedWorker;
  readonly #held = new Set<HeldTask>();
  readonly #stopping = new AbortController();
  #state: Worker["state"] = "Starting";
  #run: Promise<void> | undefined;
  #stop: Promise<void> | undefined;
  #placeFree: () => void = () => {};
  #beatTimer: NodeJS.Timeout | undefined;
  #isAway = false;

  constructor(operations: TaskOperations, worker: ResolvedWorker) {
    this.#operations = operations;
    this.#worker = worker;
    this.id = worker.id;
  }

  get state(): Worker["state"] {
    return this.#state === "Idle" && this.#held.size > 0 ? "Busy" : this.#state;
  }

  get running(): number {
    return this.#held.size;
  }

  run(): Promise<void> {
    if (this.#stop !== undefined)
      return Promise.reject(new WovyrError("the worker was stopped; make another one", { code: "INVALID_OPTION" }));
    this.#run ??= this.#work();
    return this.#run;
  }

  stop(options: StopOptions = {}): Promise<void> {
    checkOptions(options, ["grace"], "stop()");
    const { grace = defaultGrace } = options;
    this.#stop ??= this.#end(milliseconds(grace, "grace"));
    return this.#stop;
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.stop();
  }

  async #work(): Promise<void> {
    this.#tellOutOfReach();
    void this.#beat();
    try {
      for (let failures = 0, early = 0; !this.#stopping.signal.aborted; ) {
        const places = this.#worker.concurrency - this.#held.size;
        if (places <= 0) {
          await this.#place();
          continue;
        }
        try {
          const asked = performance.now();
          const given = await this.#poll(places);
          failures = 0;
          this.#isAway = false;
          early = given > 0 || performance.now() - asked >= earlyAnswer ? 0 : early + 1;
          if (early === tellingEarly)
            this.#worker.log.warn(
              "the server answers polls at once, and with nothing, instead of waiting for tasks; it is asked less often",
            );
          if (early > 0) await pause(delayAfter(earlyRetry, early, undefined), this.#stopping.signal).catch(() => undefined);
        } catch (error) {
          if (this.#stopping.signal.aborted) break;
          if (isFinal(error)) throw error;
          failures += 1;
          this.#away(error);
          const after = error instanceof ApiError ? error.retryAfter : undefined;
          await pause(delayAfter(pollRetry, failures, after), this.#stopping.signal).catch(() => undefined);
        }
      }
    } catch (error) {
      await this.stop({ grace: 0 });
      throw error;
    }
    await this.#stop;
  }

  /** An activity may be asked for under another queue than the one that its definition names here, so that this refuses nothing. */
  #tellOutOfReach(): void {
    const { activities, queues, labels, log } = this.#worker;
    for (const { name, queue, requires = [] } of activities.values()) {
      const missing = requires.filter((label) => !labels.includes(label));
      if (queue !== undefined && !queues.includes(queue))
        log.warn("the worker does not take tasks from the queue that an activity names, and will hardly be given it", {
          activity: name,
          queue,
          queues,
        });
      else if (missing.length > 0)
        log.warn("the worker lacks labels that an activity requires, and will hardly be given it", { activity: name, missing });
    }
  }

  /** Resolves with how many tasks it got. */
  async #poll(max: number): Promise<number> {
    const { queues, activities, labels, lease } = this.#worker;
    const since = performance.now();
    if (this.#state === "Starting") this.#state = "Idle";
    const tasks = await this.#operations.pollTasks({
      queues,
      worker: this.id,
      activities: [...activities.keys()],
      labels,
      max,
      lease,
      wait: pollWait,
      signal: this.#stopping.signal,
      registered: true,
    });
    // A lease began at the earliest when the server answered, but no sooner than it was asked.
    const begun = Math.max(since, performance.now() - lease / beatsPerLease);
    for (const task of tasks) this.#take(task, begun);
    return tasks.length;
  }

  #take(task: ActivityTask, since: number): void {
    const { activities, lease, log } = this.#worker;
    const definition = activities.get(task.activity);
    if (definition === undefined || this.#stopping.signal.aborted) {
      this.#operations.releaseTask(task.token).catch((error) => log.warn("a task could not be handed back", { error }));
      return;
    }
    const held = new HeldTask({ task, definition, operations: this.#operations, lease, since, log });
    this.#held.add(held);
    void held.run().then(() => {
      this.#held.delete(held);
      this.#placeFree();
    });
  }

  /** Resolves when a place is free, or the worker stops. */
  #place(): Promise<void> {
    return new Promise((resolve) => {
      const free = () => {
        this.#stopping.signal.removeEventListener("abort", free);
        this.#placeFree = () => {};
        resolve();
      };
      this.#placeFree = free;
      this.#stopping.signal.addEventListener("abort", free, { once: true });
    });
  }

  #away(error: unknown): void {
    if (this.#isAway) return;
    this.#isAway = true;
    this.#worker.log.warn("the server does not give tasks; it is asked again", { error });
  }

  // ── what it tells of itself ────────────────────────────────────────────────────────────────────────────

  async #beat(): Promise<void> {
    clearTimeout(this.#beatTimer);
    const interval = this.#worker.lease / beatsPerLease;
    const sentAt = performance.now();
    const told = this.state;
    await this.#tell();
    if (this.#state === "Stopped") return;
    // That it works now is told at once.
    const next = told === "Starting" && this.state !== told ? sentAt : sentAt + interval;
    this.#beatTimer = setTimeout(() => void this.#beat(), Math.max(0, next - performance.now()));
  }

  async #tell(): Promise<void> {
    const held = [...this.#held].filter((task) => !task.isOver);
    const sentAt = performance.now();
    try {
      const { lost } = await this.#operations.heartbeatWorker(this.id, this.#report(held));
      const gone = new Set(lost);
      for (const task of held) {
        if (!gone.has(task.task.token)) task.renewed(sentAt, this.#worker.lease);
        // One whose outcome was taken meanwhile is not held any more either.
        else if (this.#held.has(task)) task.lost("its run does not wait for it any more, or its time is over");
      }
    } catch (error) {
      this.#worker.log.debug("the worker's sign of life did not reach the server", { error });
    }
  }

  #report(held: readonly HeldTask[]): WorkerReport {
    const { queues, activities, labels, release, concurrency, lease } = this.#worker;
    return {
      state: this.state,
      queues,
      activities: [...activities.keys()],
      labels,
      ...(release !== undefined && { release }),
      concurrency,
      running: this.#held.size,
      tokens: held.map(({ task }) => task.token),
      lease,
    };
  }

  async #end(grace: number): Promise<void> {
    this.#state = "Draining";
    this.#stopping.abort(new Error("the worker stops"));
    if (this.#run !== undefined) void this.#tell();
    await this.#drained(grace);
    await Promise.all([...this.#held].map((task) => task.handBack()));
    this.#state = "Stopped";
    clearTimeout(this.#beatTimer);
    if (this.#run !== undefined) await this.#tell();
  }

  /** Resolves when nothing is at work any more, or after so many milliseconds. */
  async #drained(grace: number): Promise<void> {
    const until = performance.now() + grace;
    while (this.#held.size > 0 && performance.now() < until) {
      await new Promise<void>((resolve) => {
        const timer = setTimeout(resolve, until - performance.now());
        this.#placeFree = () => {
          clearTimeout(timer);
          resolve();
        };
      });
    }
  }
}

/** What asking again does not change. */
function isFinal(error: unknown): boolean {
  if (!(error instanceof ApiError)) return true;
  // A 404 that no orchestrator said may be that of a load balancer which has none at the moment.
  if (error.status === 404) return error.code === "ROUTE_NOT_FOUND";
  return !error.retryable && error.status >= 400 && error.status < 500 && error.status !== 408;
}
