/**
 * One run's generators, driven by the facts of its history: facts in, commands out.
 *
 * 1. Pure: no clock, no I/O, no randomness but the run's seed. Time is the time of the turn.
 * 2. Facts are delivered one at a time, in history order; after each, fibers are stepped one at a time, first in first out, until all are blocked.
 * 3. Replaying a turn asks for exactly the commands that it recorded (recorder.ts); the first difference stops the execution for good.
 * 4. Between two steps only microtasks run. A step that has not ended when they have drained awaits something that is no effect: whoever drives the
 *    execution then calls `stuck()`.
 * 5. An execution that was dropped (evicted, refused, diverged) is never entered again; its generators are not closed, so no `finally` runs.
 * 6. While the run is held up (paused, or parked), its code hears of nothing: what is for it is kept, in order, and heard one by one when the run goes on,
 *    before anything that is delivered later. What ends the run without its code ends it at once.
 */

import type { EventDef } from "../define/event.ts";
import { parse } from "../define/schema.ts";
import type { WorkflowDefinition } from "../define/workflow-definition.ts";
import type { ContinueAsNewEffect } from "../effects/continue-as-new.ts";
import type { CallSite, Effect } from "../effects/effect.ts";
import { defaultCompensation } from "../model/compensation-policy.ts";
import { digest } from "../model/digest.ts";
import { AuthoringError, CancelledError, DeterminismError, type TimeoutError, WovyrError } from "../model/errors.ts";
import { type Failure, failureOf } from "../model/failure.ts";
import { type FailureKind, kindOf } from "../model/failure-kind.ts";
import type { CancelMode, Command, EffectId, HistoryFact, Incoming, NextAttempt, Payload, Turn } from "../model/history.ts";
import { decodePayload } from "../model/payload.ts";
import type { Priority } from "../model/priority.ts";
import { lineOf } from "./call-site.ts";
import { closing } from "./closing.ts";
import { Commands, type DivergenceListener } from "./commands.ts";
import { Compensations, type CompensationsOwner } from "./compensations.ts";
import { Conditions } from "./conditions.ts";
import { Context, type RunIdentity } from "./context.ts";
import { deadlineOf, lateness } from "./deadline.ts";
import { definitionLine } from "./definition-line.ts";
import { type Door, Entrance } from "./entrance.ts";
import type { BufferedEvent } from "./event-buffer.ts";
import { EventWaits } from "./event-waits.ts";
import { Fiber } from "./fiber.ts";
import type { WorkflowGuard } from "./guard.ts";
import { Handlers, type HandlersOwner } from "./handlers.ts";
import { Interpreter, type Surroundings } from "./interpreter.ts";
import { Leaves } from "./leaf.ts";
import { LeafOutcomes } from "./leaf-outcomes.ts";
import { defaultLimits, type ExecutionLimits } from "./limits.ts";
import type { LogLevel, LogLine } from "./log-line.ts";
import { type Done, fulfilled, type Operation, type Outcome, rejected } from "./operation.ts";
import { ReaderChanged, validatorChanged } from "./reader-changed.ts";
import { type Divergence, divergenceError, Recorder } from "./recorder.ts";
import { runRetryAt } from "./run-retry.ts";
import type { Scope } from "./scope.ts";
import { Steps } from "./steps.ts";
import { OwnedTasks, type TaskState } from "./task.ts";
import { collecting, judgeUnrun, withoutEffect } from "./unrun.ts";
import { Withheld } from "./withheld.ts";

export type ExecutionOptions = {
  readonly definition: WorkflowDefinition;
  readonly tenant: string;
  readonly run: string;
  /** A fresh run id, for a child or for the run that goes on from this one (`after`); asked for only when it is new. */
  readonly newRunId: (after?: string) => string;
  readonly limits?: ExecutionLimits;
  /** Whether what goes to a task queue is for workers elsewhere; default: it runs in this process like any other activity. */
  readonly isQueued?: ((queue: string) => boolean) | undefined;
  /** Watches what the workflow's code calls. */
  readonly guard?: WorkflowGuard | undefined;
};

/** What came of reading: its value, unless the run was changed by it. */
export type Reading<T> = { readonly changed: false; readonly value: T } | { readonly changed: true };

/** Characters of history from which on a new run should take over. */
const longHistory = 4 * 1024 * 1024;

const runsHere = () => false;

type StartFact = Extract<Incoming, { type: "InstanceStarted" }>;
type UpdateFact = Extract<Incoming, { type: "UpdateRequested" }>;
type CancelFact = Extract<Incoming, { type: "CancelRequested" }>;
type ForkFact = Extract<Incoming, { type: "Forked" }>;

export type Closing = Extract<
  Command,
  {
    type:
      | "InstanceCompleted"
      | "InstanceFailed"
      | "InstanceTimedOut"
      | "InstanceCancelled"
      | "InstanceTerminated"
      | "InstanceCompensated"
      | "InstanceCompensationFailed"
      | "InstanceContinuedAsNew";
  }
>;

/** How a run ends that does not come to its end, unless something was undone. */
type BadEnd = "InstanceFailed" | "InstanceTimedOut" | "InstanceCancelled";

export class Execution implements Surroundings, HandlersOwner, CompensationsOwner, DivergenceListener {
  readonly definition: WorkflowDefinition;
  readonly tenant: string;
  readonly interpreter: Interpreter;
  readonly leaves: Leaves;
  /** Called when the execution becomes idle after `deliver` or `replayNext` left it busy. */
  onIdle: () => void = () => {};
  readonly isQueued: (queue: string) => boolean;
  readonly #newRunId: (after?: string) => string;
  readonly #guard: WorkflowGuard | undefined;
  readonly #recorder = new Recorder();
  readonly #commands: Commands;
  readonly #outcomes: LeafOutcomes;
  readonly #events: EventWaits;
  readonly #conditions: Conditions;
  #handlers: Handlers | undefined;
  #continuation: { readonly version: string; readonly input: Payload; readonly digest: string } | undefined;
  /** Why the run fails although its function did not. */
  #failure: { readonly error: unknown } | undefined;
  readonly #steps = new Steps();
  #draining = false;
  #root: Fiber | undefined;
  #context: Context | undefined;
  /** Who the run says that it is: until it is forked, the run that recorded its history. */
  #identity: RunIdentity;
  #now = 0;
  #entrance: Entrance | undefined;
  /** Set when the run is out of time, and unwinds. */
  #late: TimeoutError | undefined;
  #closed: Closing | undefined;
  /** Events whose handlers were registered before the function returned its generator. */
  #early: string[] = [];
  #compensations: Compensations | undefined;
  /** What undoes what the run did, when its function has ended, and the handlers that are at work meanwhile. */
  #rollback: { operation: Operation; readonly handling: OwnedTasks } | undefined;
  #cancelling: { compensate: boolean } | undefined;
  readonly #withheld = new Withheld();
  /** The run that takes the place of this one. */
  #resetTo: string | undefined;
  #broken: Error | undefined;
  #logs: LogLine[] = [];

  constructor(options: ExecutionOptions) {
    this.definition = options.definition;
    this.tenant = options.tenant;
    this.#identity = { id: "", run: options.run, correlationId: "", seed: "" };
    this.isQueued = options.isQueued ?? runsHere;
    this.#newRunId = options.newRunId;
    this.#guard = options.guard;
    this.#commands = new Commands(options.limits ?? defaultLimits, this.#recorder, this);
    this.leaves = new Leaves(this.#commands);
    this.#outcomes = new LeafOutcomes(this.definition, this.leaves);
    this.#events = new EventWaits(this.#commands, this.leaves, this);
    this.#conditions = new Conditions(this.#commands, this);
    this.interpreter = new Interpreter(this, this.#commands, this.leaves, this.#events, this.#conditions);
  }

  /** Whether fibers are still being stepped; `onIdle` follows. */
  get busy(): boolean {
    return this.#broken === undefined && this.#steps.busy;
  }

  /** Set when the execution can go no further: the code diverged from history or awaited what is no effect. */
  get broken(): Error | undefined {
    return this.#broken;
  }

  get closed(): Closing | undefined {
    return this.#closed;
  }

  get identity(): RunIdentity {
    return this.#identity;
  }

  get stepping(): Fiber | undefined {
    return this.#steps.current;
  }

  get cleanupTimeout(): number {
    return this.#commands.limits.cleanup;
  }

  /** Number of events in history, this turn's included. */
  get historyLength(): number {
    return this.#recorder.position;
  }

  get historyIsLong(): boolean {
    return this.historyLength >= this.#commands.limits.history / 2 || this.#recorder.weight >= longHistory;
  }

  get payloadLimit(): number {
    return this.#commands.limits.payload;
  }

  /** Starts a turn; `at` is the time of its events. */
  beginTurn(at: number): void {
    this.#now = at;
    this.#recorder.beginTurn();
    this.#commands.beginTurn();
  }

  /** Applies one incoming fact of the turn that is being made. */
  deliver(fact: Incoming): void {
    this.#recorder.incoming(fact);
    this.#apply(fact);
    this.#drain();
  }

  /** Asks what the workflow waits for in its own state; true when a wait has ended, and the execution may be busy. To be called when nothing is left to deliver. */
  settleConditions(): boolean {
    if (this.#broken !== undefined || this.#closed !== undefined || this.#withheld.holds || !this.#conditions.settle()) return false;
    this.#drain();
    return true;
  }

  /** The facts recorded since they were last taken, in order. Only when idle. */
  takeFacts(): HistoryFact[] {
    return this.#recorder.take();
  }

  /** Ends the turn: records what the workflow changed in its variables; take the facts once more. */
  endTurn(): void {
    this.#recordTracked();
  }

  /** Calls what only reads: a query, or the validator of an update. Where `changed` is true nothing of this execution may be used any more. */
  reading<T>(what: string, read: () => T): Reading<T> {
    const context = this.#context;
    if (context === undefined) return { value: read(), changed: false };
    const now = () => `${context.trackedVariables.textNow()} ${context.trackedAttributes.textNow()}`;
    const before = now();
    try {
      const value = context.reading(what, read);
      return now() === before ? { value, changed: false } : { changed: true };
    } catch (error) {
      if (now() === before) throw error;
      return { changed: true };
    }
  }

  /**
   * Why an update is not taken. A validator that changes the run breaks the execution: with `ReaderChanged`, so that the update alone is refused, unless it
   * is in history already.
   */
  refusalOf(fact: Extract<Incoming, { type: "UpdateRequested" }>, recorded = false): Error | undefined {
    const read = this.reading(`the validator of update "${fact.name}"`, () => this.handlers.refusal(fact));
    if (!read.changed) return read.value;
    const refusal = validatorChanged(fact.name);
    this.#break(recorded ? refusal : new ReaderChanged(fact.message, refusal));
    return refusal;
  }

  /** Lines that the workflow logged since they were last taken. */
  takeLogs(): LogLine[] {
    if (this.#logs.length === 0) return [];
    const logs = this.#logs;
    this.#logs = [];
    return logs;
  }

  /** Begins to replay a recorded turn; go on with `replayNext` whenever idle, until it returns false. */
  beginReplay(turn: Turn): void {
    this.beginTurn(turn.at);
    this.#recorder.beginReplay(turn);
  }

  replayNext(): boolean {
    if (this.#broken !== undefined) return false;
    if (this.#recorder.nextIs("ConditionMet") && this.settleConditions()) return true;
    const fact = this.#recorder.nextIncoming();
    if (this.#recorder.divergence !== undefined) {
      this.diverged(this.#recorder.divergence, undefined);
      return false;
    }
    if (fact === undefined) return false;
    this.#apply(fact as Incoming);
    this.#drain();
    return true;
  }

  endReplay(): void {
    this.#recorder.endReplay();
    this.#context?.trackedVariables.takeChange();
    this.#context?.trackedAttributes.takeChange();
  }

  /** The microtasks have drained and a step has not ended: its generator awaits something that is no effect. */
  stuck(): void {
    const fiber = this.#steps.current;
    if (fiber === undefined) return;
    const { line, text } = this.lastLine(fiber);
    this.#break(
      new DeterminismError(
        `Workflow "${this.definition.name}" awaited something that is no effect (a promise of a fetch, a timer, a file …). Put it into an activity or a step: \`yield* step("name", async () => …)\`.${text}`,
        {
          code: "FOREIGN_AWAIT",
          site: line,
        },
      ),
    );
  }

  /** `file:line:column` of every yield that the run waits at, in the order in which the effects were asked for. */
  waitingAt(): string[] {
    const lines: string[] = [];
    for (const site of [...[...this.leaves.values()].map((leaf) => leaf.site), ...this.#conditions.sites()]) {
      const line = site === undefined ? undefined : lineOf(site);
      if (line !== undefined && !lines.includes(line)) lines.push(line);
    }
    return lines;
  }

  // ── for fibers and operations ──────────────────────────────────────────────────────────────────────────

  enqueue(fiber: Fiber): void {
    this.#steps.add(fiber);
  }

  /** A fiber's step ended. False when the execution was broken meanwhile: the fiber stays where it is. */
  stepped(fiber: Fiber): boolean {
    this.#steps.ended(fiber);
    return this.#broken === undefined;
  }

  /** Steps the next fiber, or reports that all are blocked. */
  pump(): void {
    if (this.#draining) return;
    this.#drain();
    if (!this.busy) this.onIdle();
  }

  /** Time of the present turn, milliseconds since the epoch. */
  get now(): number {
    return this.#now;
  }

  newRunId(): string {
    return this.#newRunId();
  }

  newFiber(path: EffectId, generator: AsyncGenerator<unknown, unknown, unknown>, done: Done, scope?: Scope): Operation {
    return new Fiber(this, path, generator, done, scope);
  }

  /** Made when it is first asked for: most runs have nothing to undo. */
  get compensations(): Compensations {
    this.#compensations ??= new Compensations(this.definition.compensation ?? defaultCompensation, this, this.#commands);
    return this.#compensations;
  }

  /** Undefined when it is the default. */
  get priority(): Priority | undefined {
    return this.#entrance?.start.priority;
  }

  get resetTo(): string | undefined {
    return this.#resetTo;
  }

  get cancelling(): { readonly compensate: boolean } | undefined {
    return this.#cancelling;
  }

  /** Made when it is first asked for: most runs handle nothing. */
  get handlers(): Handlers {
    this.#handlers ??= new Handlers(this.#commands, this);
    return this.#handlers;
  }

  /** The definition of an event that is handled. */
  handledEvent(name: string): EventDef<unknown, never> | undefined {
    return this.#handlers?.eventOf(name);
  }

  /** Whether a handler took an event that nothing waits for. */
  handled(event: BufferedEvent): boolean {
    return this.#handlers?.take(event) ?? false;
  }

  own(task: TaskState): void {
    if (this.#rollback !== undefined) this.#rollback.handling.add(task);
    else this.#root?.own(task);
  }

  handles(event: string): void {
    if (this.#root === undefined) this.#early.push(event);
    else this.#unwatched(() => this.#events.offerKept(event));
  }

  continueAsNew({ input, version = this.definition.version }: ContinueAsNewEffect): void {
    const what = `input of workflow "${this.definition.name}"`;
    // Another version has another schema, which is not known here.
    const schema = version === this.definition.version ? this.definition.input : undefined;
    this.#continuation = {
      version,
      input: this.#commands.encode(parse(schema, input, what), what),
      digest: digest(input),
    };
  }

  /** Ends the run with an error from outside of its function, which unwinds as if it were cancelled. */
  fail(error: unknown): void {
    if (this.#rollback !== undefined) return;
    this.#failure ??= { error };
    this.#root?.cancel(closing);
  }

  diverged(divergence: Divergence, site: CallSite | undefined): void {
    const at = site ?? this.#steps.current?.lastSite;
    const after = this.#steps.last?.lastSite;
    if (this.#broken === undefined)
      this.#break(divergenceError(divergence, this.definition.name, at && lineOf(at), after && lineOf(after)));
  }

  log(level: LogLevel, message: string, data?: object): void {
    if (!this.#recorder.replaying) this.#logs.push({ level, message, data });
  }

  logLoser(branch: EffectId, error: unknown): void {
    if (!(error instanceof CancelledError))
      this.log("warn", `branch ${branch} failed after its group was decided`, {
        branch,
        error,
      });
  }

  siteText(site: CallSite | undefined, lead: string): string {
    const line = site === undefined ? undefined : lineOf(site);
    return line === undefined ? "" : ` ${lead} ${line}.`;
  }

  // ── stepping ───────────────────────────────────────────────────────────────────────────────────────────

  /** Steps until all are blocked; then what was kept is heard, if there is any. */
  #drain(): void {
    this.#draining = true;
    do this.#steps.run();
    while (this.#steps.current === undefined && this.#broken === undefined && this.#goesOn());
    this.#draining = false;
  }

  /** All are blocked: whether there is more to do. */
  #goesOn(): boolean {
    this.#checkTracked();
    // What the run did is undone, when its variables cannot be stored.
    if (this.#steps.waiting) return true;
    return this.#closed === undefined && this.#withheld.hearNext();
  }

  #break(error: Error): void {
    this.#broken ??= error;
    this.#steps.stop();
  }

  adopt(made: readonly Effect<unknown>[]): void {
    if (made.length > 0) this.#root?.adopt(made);
  }

  /** Runs workflow code under the guard, if there is one: what is over when it returns. The effects that it makes go to `made`. */
  guarded<T>(run: () => T, made?: Effect<unknown>[]): T {
    return collecting(() => this.#watched(run, undefined), made);
  }

  /** Runs a fiber's next step under the guard, if there is one. */
  guardedStep<T>(fiber: Fiber, run: () => T): T {
    return this.#watched(run, fiber);
  }

  /** Runs what is the runtime's own though workflow code called it. */
  #unwatched(run: () => void): void {
    if (this.#guard === undefined) run();
    else this.#guard.enter(this.definition.name, () => false, run);
  }

  #watched<T>(run: () => T, fiber: Fiber | undefined): T {
    if (this.#guard === undefined) return run();
    let calling = true;
    try {
      return this.#guard.enter(this.definition.name, () => calling || (fiber !== undefined && this.#steps.current === fiber), run);
    } finally {
      calling = false;
    }
  }

  /** The nearest line that is known of where a fiber stands. */
  lastLine(fiber: Fiber): { readonly line: string | undefined; readonly text: string } {
    const last = fiber.lastSite && lineOf(fiber.lastSite);
    if (last !== undefined) return { line: last, text: ` The last effect before it was yielded at ${last}.` };
    return { line: definitionLine(this.definition.run), text: definedAt(this.definition.run) };
  }

  /** What a fiber comes to that ended well, given the effects that it made and may not have used. */
  judged(made: readonly Effect<unknown>[], outcome: Outcome): Outcome {
    return judgeUnrun(made, outcome, this.definition, this.#recorder.replaying ? undefined : this);
  }

  // ── incoming facts ─────────────────────────────────────────────────────────────────────────────────────

  #apply(fact: Incoming): void {
    switch (fact.type) {
      case "InstanceStarted":
        this.#started(fact);
        return;
      case "ActivityCompleted":
      case "ActivityFailed":
      case "ChildCompleted":
      case "ChildFailed":
      case "ChildRejected":
      case "TimerFired":
      case "ActivityDecided":
        this.#tell(fact, () => this.#outcomes.hear(fact));
        return;
      case "EventReceived":
        this.#tell(fact, () => this.#events.received(fact));
        return;
      case "CompensationDecided":
        this.#tell(fact, () => this.#compensations?.decide(fact.effect, fact.decision));
        return;
      case "UpdateRequested":
        this.#update(fact);
        return;
      case "StartReplaced":
        this.#tell(fact, () => this.#entrance?.replace(fact));
        return;
      case "AdmissionDecided":
        this.#tell(fact, () => this.#entrance?.decide(fact));
        return;
      case "WakeRequested":
        this.#wake(fact);
        return;
      case "CancelRequested":
        this.#cancelRequested(fact);
        return;
      case "TerminateRequested":
        this.#terminate(fact.reason ?? "terminated on request");
        return;
      case "ResetRequested":
        this.#terminate(resetReason(fact), fact.run);
        return;
      case "PauseRequested":
        this.#withheld.paused = true;
        return;
      case "ResumeRequested":
        this.#withheld.paused = false;
        return;
      case "Parked":
        this.#withheld.parked = true;
        return;
      case "Resumed":
        this.#withheld.parked = false;
        return;
      case "Forked":
        this.#forked(fact);
        return;
      case "AttemptStarted":
      case "AttemptLost":
      case "Imported":
        return;
      default:
        fact satisfies never;
    }
  }

  /** The code hears of a fact: now, or when the run goes on. */
  #tell(fact: Incoming, hear: () => void): void {
    if (this.#closed !== undefined) return;
    if (this.#withheld.holds) this.#withheld.keep(fact, hear);
    else hear();
  }

  /** What is kept was taken before its validator could be asked: a refusal is its end then. */
  #update(fact: UpdateFact): void {
    if (this.#withheld.holds) this.#tell(fact, () => this.handlers.keptUpdate(fact, this.refusalOf(fact, true)));
    else this.#tell(fact, () => this.handlers.update(fact));
  }

  /** The sleeps that are open end: those that begin later are not meant, also when it is heard later. */
  #wake(fact: Incoming): void {
    const sleeps = [...this.leaves.values()].filter(({ work }) => work.kind === "timer" && work.purpose === "sleep");
    this.#tell(fact, () => {
      for (const leaf of sleeps) leaf.settle(fulfilled(undefined));
    });
  }

  #cancelRequested(fact: CancelFact): void {
    const cancel = () => this.#cancel(fact.mode, cancelReason(fact));
    if (fact.mode === "immediate") cancel();
    else this.#tell(fact, cancel);
  }

  /** The code goes on under another name. What it has read of the former one (a variable that holds `ctx.id`) stays as it is. */
  #forked({ id, run, correlationId, seed, children = [] }: ForkFact): void {
    this.#withheld.paused = false;
    this.#withheld.parked = false;
    this.#identity = { id, run, correlationId, seed };
    for (const child of children) this.leaves.get(child.effect)?.restart(child.id);
  }

  #started(fact: StartFact): void {
    const { id, run = this.#identity.run, correlationId = id, seed } = fact;
    this.#identity = { id, run, correlationId, seed };
    const entrance = new Entrance(this.#door(), fact);
    this.#entrance = entrance;
    // Also where the function is entered later: they come before what arrives until then.
    for (const event of fact.carried ?? []) this.#events.received(event);
    this.#tell(fact, () => entrance.open());
  }

  #door(): Door {
    return {
      now: () => this.#now,
      startTimer: (id, due, fired) => this.interpreter.timerAt(id, "start", due, undefined, fired),
      enter: (start, due) => this.#enter(start, due),
      fail: (error) => this.#close(rejected(error)),
      turnAway: (reason) => this.#closeWith({ type: "InstanceCancelled", failure: failureOf(reason) }),
    };
  }

  #enter(fact: StartFact, due: number): void {
    this.#armDeadline(fact, due);
    const run = this.definition.run;
    if (run === undefined) {
      this.#close(
        rejected(new AuthoringError(`Workflow "${this.definition.name}" is a contract without an implementation.`, "INVALID_DEFINITION")),
      );
      return;
    }
    let generator: unknown;
    try {
      const { variables } = this.definition;
      this.#context = new Context(this, fact, variables === undefined ? {} : this.guarded(variables));
      const context = this.#context;
      generator = this.guarded(() => run(decodePayload(fact.input), context));
    } catch (error) {
      this.#close(rejected(error));
      return;
    }
    if (!isGenerator(generator)) {
      this.#close(
        rejected(
          new AuthoringError(
            `Workflow "${this.definition.name}" did not return an async generator: write it as \`async function* (input, ctx) { … }\`.${definedAt(run)}`,
            "INVALID_DEFINITION",
          ),
        ),
      );
      return;
    }
    this.#root = new Fiber(this, "", generator, (outcome) => this.#close(outcome));
    for (const event of this.#early.splice(0)) this.#events.offerKept(event);
  }

  #armDeadline(fact: StartFact, due: number): void {
    const deadline = deadlineOf(fact, due);
    if (deadline === undefined) return;
    this.interpreter.timerAt("deadline", deadline.purpose, deadline.at, undefined, () =>
      this.#outOfTime(lateness(deadline, this.definition.name)),
    );
  }

  /** It unwinds as if it were cancelled. One that unwinds already goes on doing so. */
  #outOfTime(late: TimeoutError): void {
    if (this.#closed !== undefined || this.#cancelling || this.#failure !== undefined) return;
    this.#late = late;
    this.#root?.cancel(new CancelledError(late.message, { cause: late }));
  }

  #cancel(mode: CancelMode, reason: CancelledError): void {
    if (this.#closed !== undefined) return;
    this.#cancelling ??= { compensate: false };
    // What is undone is undone to its end; the run does not go on as another one then.
    if (this.#rollback !== undefined) return;
    if (mode === "compensate") {
      this.#cancelling.compensate = true;
      this.leaves.childrenCompensate = (this.definition.compensation ?? defaultCompensation).on !== "never";
    }
    if (mode !== "immediate" && this.#root !== undefined) {
      this.#root.cancel(reason);
      return;
    }
    this.#abandonAll();
    this.#closeWith({ type: "InstanceCancelled", failure: failureOf(reason) });
  }

  #terminate(reason: string, resetTo?: string): void {
    if (this.#closed !== undefined) return;
    this.#resetTo = resetTo;
    this.#abandonAll();
    this.#closeWith({
      type: "InstanceTerminated",
      failure: failureOf(new WovyrError(reason, { code: "TERMINATED" })),
      ...(resetTo !== undefined && { resetTo }),
    });
  }

  #abandonAll(): void {
    this.#steps.clear();
    this.#root?.abandon();
    this.#rollback?.operation.abandon();
    this.#rollback?.handling.abandon(closing);
    this.#abandonWaits();
  }

  #abandonWaits(): void {
    for (const leaf of [...this.leaves.values()]) leaf.abandon();
    this.#conditions.abandonAll();
  }

  // ── the end ────────────────────────────────────────────────────────────────────────────────────────────

  #close(outcome: Outcome): void {
    if (this.#broken !== undefined || this.#closed !== undefined) return;
    if (this.#cancelling !== undefined) {
      this.#endBadly("InstanceCancelled", outcome.ok ? new CancelledError() : outcome.error);
      return;
    }
    const cancelled = outcome.ok && this.#continuation !== undefined ? this.#withheld.cancel : undefined;
    if (cancelled !== undefined) {
      this.#cancelling = { compensate: cancelled.mode === "compensate" };
      this.#endBadly("InstanceCancelled", cancelReason(cancelled));
      return;
    }
    if (this.#late !== undefined) {
      this.#endBadly("InstanceTimedOut", this.#late);
      return;
    }
    const failed = this.#failure !== undefined ? this.#failure : outcome.ok ? undefined : outcome;
    if (failed !== undefined || !outcome.ok) {
      this.#endBadly("InstanceFailed", withoutEffect(failed?.error));
      return;
    }
    this.#handlers?.warnOfCutOff();
    if (this.#continuation !== undefined) {
      this.#compensations?.warnOfForgotten();
      const carried = this.#unread();
      this.#closeWith({
        type: "InstanceContinuedAsNew",
        run: this.#recorder.replaying ? "" : this.#newRunId(this.#identity.run),
        ...this.#continuation,
        ...(carried.length > 0 && { carried }),
      });
      return;
    }
    try {
      const value = parse(this.definition.output, outcome.value, `output of workflow "${this.definition.name}"`, "INVALID_OUTPUT");
      const output = this.#commands.encode(value, `output of workflow "${this.definition.name}"`);
      const unstorable = this.#unstorable();
      if (unstorable === undefined) this.#closeWith({ type: "InstanceCompleted", output });
      else this.#endBadly("InstanceFailed", unstorable.error);
    } catch (error) {
      this.#endBadly("InstanceFailed", error);
    }
  }

  /** The run does not come to its end: what it did is undone first, where its policy says so. */
  #endBadly(type: BadEnd, error: unknown): void {
    this.#abandonWaits();
    this.leaves.childrenCompensate = false;
    const handling = new OwnedTasks();
    // A handler that begins with the first compensation is cancelled when the last one has ended.
    const ended = () => handling.close(closing, () => this.#closeWith(this.#badEnd(type, error, true)));
    const operation = this.#compensations?.rollback(error, ended);
    if (operation === undefined) this.#closeWith(this.#badEnd(type, error, false));
    else this.#rollback = { operation, handling };
  }

  #badEnd(type: BadEnd, error: unknown, undone: boolean): Closing {
    const isCancelled = type === "InstanceCancelled";
    const kind = kindOf(error);
    const failure: Failure = isCancelled ? failureOf(error) : { ...failureOf(error), kind };
    const notUndone = this.#compensations?.notUndone;
    // What was left behind is for a person, and not for another attempt.
    if (notUndone !== undefined) return { type: "InstanceCompensationFailed", failure, compensation: failureOf(notUndone) };
    return { type: undone ? "InstanceCompensated" : type, failure, ...(!isCancelled && this.#nextAttempt(error, kind)) };
  }

  /** The run that takes the place of this one, if its workflow is tried again. On replay, history says so. */
  #nextAttempt(error: unknown, kind: FailureKind): NextAttempt | undefined {
    const { start, due } = this.#entrance ?? {};
    // It was asked to end.
    const isCancelled = this.#cancelling !== undefined || this.#withheld.cancel !== undefined;
    if (start === undefined || due === undefined || this.#recorder.replaying || isCancelled) return undefined;
    const retryAt = runRetryAt({ definition: this.definition, start, began: due, now: this.#now, error, kind }, this);
    if (retryAt === undefined) return undefined;
    const carried = this.#unread();
    return { run: this.#newRunId(this.#identity.run), retryAt, ...(carried.length > 0 && { carried }) };
  }

  /** The events that nobody has taken, in order: also those that the code has not heard of. */
  #unread(): BufferedEvent[] {
    return [...this.#events.unread(), ...this.#withheld.events];
  }

  #closeWith(command: Closing): void {
    this.#abandonWaits();
    for (const update of this.#withheld.drop()) this.handlers.neverBegun(update);
    // The last steps may have changed something.
    this.#unstorable();
    if (!this.#commands.replaying) this.#recordTracked();
    this.#closed = this.#commands.record(command);
  }

  /** Why what the workflow keeps in its variables cannot be stored. */
  #unstorable(): { readonly error: unknown } | undefined {
    try {
      this.#context?.trackedVariables.check();
      this.#context?.trackedAttributes.check();
      return undefined;
    } catch (error) {
      return { error };
    }
  }

  /** After each fact: what the workflow keeps in its variables must be storable, now and on every replay. */
  #checkTracked(): void {
    if (this.#closed !== undefined) return;
    const unstorable = this.#unstorable();
    // What undoes goes on: what cannot be stored is not recorded.
    if (unstorable === undefined || this.#rollback !== undefined) return;
    this.#abandonAll();
    this.#endBadly("InstanceFailed", unstorable.error);
  }

  #recordTracked(): void {
    const variables = this.#context?.trackedVariables.takeChange();
    if (variables !== undefined) this.#commands.record({ type: "VariablesChanged", variables });
    const attributes = this.#context?.trackedAttributes.takeChange();
    if (attributes !== undefined) this.#commands.record({ type: "AttributesChanged", attributes });
  }
}

const cancelReason = ({ reason }: CancelFact): CancelledError => new CancelledError(reason ?? "cancelled on request");

function definedAt(run: object | undefined): string {
  const line = definitionLine(run);
  return line === undefined ? "" : ` The workflow is defined at ${line}.`;
}

/** Why a run ended whose place another one takes. */
export const resetReason = ({ to, reason }: { readonly to: number; readonly reason?: string }): string =>
  `reset to event ${to}${reason === undefined ? "" : `: ${reason}`}`;

function isGenerator(value: unknown): value is AsyncGenerator<unknown, unknown, unknown> {
  return typeof value === "object" && value !== null && Symbol.asyncIterator in value && "next" in value && "throw" in value;
}
