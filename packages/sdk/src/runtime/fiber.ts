/**
 * One running generator.
 *
 * 1. A fiber is in exactly one place: queued to be stepped, stepping, waiting for one operation, closing its tasks, or done.
 * 2. A cancelled fiber is resumed with its `CancelledError` once, after what it waited for has closed; what it yields from then on is clean-up and runs
 *    uncancelled. Its outcome is the cancellation, whatever the generator makes of it.
 * 3. Clean-up that waits is bounded by `cleanupTimeout`; then the fiber is dropped where it stands. Clean-up that undoes what was done gets twice as long each
 *    time.
 * 4. Tasks that nobody joined end before the fiber does.
 */
import { type CallSite, Effect } from "../effects/effect.ts";
import { Task } from "../effects/task.ts";
import { AuthoringError, type CancelledError } from "../model/errors.ts";
import type { EffectId } from "../model/history.ts";
import { lineOf } from "./call-site.ts";
import { closing } from "./closing.ts";
import type { Execution } from "./execution.ts";
import { type Done, type Operation, type Outcome, rejected } from "./operation.ts";
import type { Scope } from "./scope.ts";
import { OwnedTasks, type TaskState } from "./task.ts";
import { keepUnrun, withUnused } from "./unrun.ts";

type Generator = AsyncGenerator<unknown, unknown, unknown>;

export class Fiber implements Operation {
  readonly execution: Execution;
  /** Path of the fiber: "" for the root, else the effect id of its branch. */
  readonly path: EffectId;
  /** Where what completes in it is registered to be undone; undefined: in the run. */
  readonly scope: Scope | undefined;
  /** Where it yielded last: the line to name when it is stuck. */
  lastSite: CallSite | undefined;
  readonly #generator: Generator;
  readonly #done: Done;
  #sequence = 0;
  #entered = false;
  #finished = false;
  #waiting: Operation | undefined;
  #resume: Outcome | undefined;
  #cancelled: CancelledError | undefined;
  #cancelDelivered = false;
  #cleanupTimer: Operation | undefined;
  #cleanups = 0;
  #tasks: OwnedTasks | undefined;
  #result: Outcome | undefined;
  /** Effects that it made, and has not yielded as far as is known. */
  #unrun: Effect<unknown>[] | undefined;

  constructor(execution: Execution, path: EffectId, generator: Generator, done: Done, scope?: Scope) {
    this.execution = execution;
    this.path = path;
    this.scope = scope;
    this.#generator = generator;
    this.#done = done;
    this.#resume = { ok: true, value: undefined };
    execution.enqueue(this);
  }

  nextId(): EffectId {
    const sequence = this.#sequence++;
    return this.path === "" ? `${sequence}` : `${this.path}/${sequence}`;
  }

  own(task: TaskState): void {
    this.#tasks ??= new OwnedTasks();
    this.#tasks.add(task);
  }

  /** Effects that were made for it elsewhere are judged with its own. */
  adopt(made: readonly Effect<unknown>[]): void {
    if (this.#result === undefined) this.#unrun = withUnused(this.#unrun, made);
  }

  get stepping(): boolean {
    return this.execution.stepping === this;
  }

  /** The sites of the effects that this fiber waits at, for those who ask where a run stands. */
  get waitingSite(): CallSite | undefined {
    return this.#waiting === undefined ? undefined : this.lastSite;
  }

  cancel(reason: CancelledError): void {
    if (this.#finished || this.#cancelled !== undefined) return;
    this.#cancelled = reason;
    if (this.#result !== undefined || this.stepping) return;
    if (!this.#entered) {
      this.#resume = undefined;
      this.#finish(rejected(reason));
      return;
    }
    if (this.#waiting !== undefined) {
      this.#waiting.cancel(reason);
      return;
    }
    // Queued: what it was to be resumed with gives way to the cancellation. One that is just beginning an effect is told when that has begun.
    if (this.#resume !== undefined) this.#resume = this.#deliverCancel(reason);
  }

  abandon(): void {
    if (this.#finished) return;
    this.#finished = true;
    this.#resume = undefined;
    this.#waiting?.abandon();
    this.#waiting = undefined;
    this.#cleanupTimer?.abandon();
    this.#tasks?.abandon(closing);
  }

  undoing(): boolean {
    return this.#waiting?.undoing?.() === true || this.#tasks?.all.some((task) => task.undoing()) === true;
  }

  /** Runs the generator to its next yield. Called by the execution, one fiber at a time. */
  step(): void {
    const resume = this.#resume;
    if (resume === undefined || this.#finished) {
      this.execution.stepped(this);
      return;
    }
    this.#resume = undefined;
    this.#entered = true;
    const advance = () => {
      if (!resume.ok) return this.#generator.throw(resume.error);
      return resume.ends === true ? this.#generator.return(undefined) : this.#generator.next(resume.value);
    };
    const settled = this.execution.guardedStep(this, advance);
    settled.then(this.#onYield, this.#onThrow);
  }

  readonly #onYield = (result: IteratorResult<unknown, unknown>): void => {
    if (!this.execution.stepped(this)) return;
    this.#unrun = keepUnrun(this.#unrun, result.value);
    if (result.done === true) this.#finish({ ok: true, value: result.value });
    else if (this.#cancelled !== undefined && !this.#cancelDelivered) this.#resumeWith(this.#deliverCancel(this.#cancelled));
    else this.#start(result.value);
    this.execution.pump();
  };

  readonly #onThrow = (error: unknown): void => {
    if (!this.execution.stepped(this)) return;
    this.#finish(rejected(error));
    this.execution.pump();
  };

  #start(yielded: unknown): void {
    if (!(yielded instanceof Effect)) {
      this.#resumeWith(
        rejected(
          new AuthoringError(
            `A workflow may yield only effects, but this one yielded ${nameOf(yielded)}.${this.execution.lastLine(this).text} Write \`yield* effect\`, for example \`yield* sleep("1s")\`; to run your own asynchronous code, put it into an activity or a step.`,
            "FOREIGN_YIELD",
          ),
        ),
      );
      return;
    }
    // A task was made by the runtime: it has no line.
    if (!(yielded instanceof Task)) this.lastSite = yielded.site;
    let settledAtOnce = false;
    const operation = this.execution.interpreter.begin(yielded, undefined, this, (outcome) => {
      settledAtOnce = true;
      this.#settled(outcome);
    });
    if (settledAtOnce) return;
    this.#waiting = operation;
    if (this.#cancelled !== undefined && !this.#cancelDelivered) operation.cancel(this.#cancelled);
    if (this.#cancelDelivered && this.#cleanupTimer === undefined) this.#boundCleanup();
  }

  #settled(outcome: Outcome): void {
    if (this.#finished) return;
    this.#waiting = undefined;
    const cancelled = this.#cancelled;
    this.#resumeWith(cancelled !== undefined && !this.#cancelDelivered ? this.#deliverCancel(cancelled) : outcome);
  }

  #resumeWith(outcome: Outcome): void {
    this.#resume = outcome;
    this.execution.enqueue(this);
  }

  #deliverCancel(reason: CancelledError): Outcome {
    this.#cancelDelivered = true;
    return rejected(reason);
  }

  #boundCleanup(): void {
    const times = this.#cleanups++;
    const limit = this.execution.cleanupTimeout * 2 ** times;
    this.#cleanupTimer = this.execution.interpreter.timer(`${this.path}!cleanup${times === 0 ? "" : times}`, "cleanup", limit, () => {
      this.#cleanupTimer = undefined;
      if (this.undoing()) {
        this.#boundCleanup();
        return;
      }
      const done = this.#done;
      const reason = this.#cancelled;
      this.execution.log("warn", `clean-up of cancelled branch "${this.path}" took longer than ${limit} ms and was dropped`);
      this.abandon();
      done(rejected(reason));
    });
  }

  #finish(ended: Outcome): void {
    const judge = ended.ok && this.#cancelled === undefined && this.#unrun !== undefined;
    const outcome = judge ? this.execution.judged(this.#unrun ?? [], ended) : ended;
    this.#result = this.#cancelled === undefined ? outcome : rejected(this.#cancelled);
    if (this.#cancelled !== undefined && !outcome.ok && outcome.error !== this.#cancelled)
      this.execution.log("warn", "the clean-up of a cancelled branch threw", {
        branch: this.path,
        error: outcome.error,
      });
    this.#cleanupTimer?.abandon();
    this.#cleanupTimer = undefined;
    if (this.#tasks === undefined) this.#close();
    else this.#tasks.close(closing, () => this.#close());
  }

  #close(): void {
    if (this.#finished) return;
    this.#finished = true;
    this.#warnOfUnjoined();
    if (this.#result !== undefined) this.#done(this.#result);
  }

  #warnOfUnjoined(): void {
    for (const task of this.#tasks?.all ?? []) {
      if (!task.failedUnseen) continue;
      const at = task.site && lineOf(task.site);
      this.execution.log("warn", `task ${task.id}${at === undefined ? "" : `, spawned at ${at},`} failed and nothing joined it`, {
        task: task.id,
        ...(at !== undefined && { at }),
        error: task.outcome?.ok === false ? task.outcome.error : undefined,
      });
    }
  }
}

function nameOf(value: unknown): string {
  if (value === null || value === undefined) return String(value);
  if (typeof value === "function") return `the function ${value.name || "(anonymous)"}`;
  if (typeof value !== "object") return `${typeof value} ${String(value)}`;
  if (Symbol.asyncIterator in value) return "a generator (did you mean `yield*`?)";
  return `an object of class ${value.constructor?.name ?? "Object"}`;
}
