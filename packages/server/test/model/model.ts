/**
 * The language, once more and as plainly as possible: what a run is to make of what reaches it.
 *
 * 1. No history, no replay, no promises: facts come in one by one; after each, fibers are stepped, first in first out, until all of them wait.
 * 2. Nothing is taken from the engine but the facts that come in: effect ids, due times, values, errors and the order of things are made here.
 * 3. While it is paused it hears of nothing but its end; the rest comes to it in order when it goes on.
 * 4. What is open is closed exactly once: it settles, is cancelled, or is abandoned with the fiber that waits for it.
 */
import { cancelled, closing, type Done, Fault, failed, nothing, type Operation, type Outcome, ok } from "./outcome.ts";
import { type EventName, type Policy, type Program, policy, retryDelay, type Variables } from "./program.ts";
import { type Scope, Undoing } from "./undoing.ts";

/** What reaches a run, values decoded. */
export type Fact =
  | { readonly type: "Started"; readonly part: Program; readonly name: string }
  | { readonly type: "Settled"; readonly effect: string; readonly outcome: Outcome }
  | {
      readonly type: "AttemptFailed";
      readonly effect: string;
      readonly attempt: number;
      readonly message: string;
      /** When the next attempt is due; undefined after the last. */
      readonly retryAt: number | undefined;
      /** No other attempt is to be made, however many are left. */
      readonly forGood: boolean;
    }
  | { readonly type: "AttemptStarted"; readonly effect: string; readonly attempt: number }
  | { readonly type: "TimerFired"; readonly effect: string }
  | { readonly type: "ChildFailed"; readonly effect: string; readonly status: string; readonly message: string }
  | { readonly type: "Event"; readonly event: EventName; readonly n: number }
  | { readonly type: "Cancel"; readonly mode: "graceful" | "immediate" | "compensate"; readonly reason: string }
  | { readonly type: "Terminate"; readonly reason: string }
  | { readonly type: "Pause" }
  | { readonly type: "Resume" };

/** What waits for the outside. */
export type Open =
  | { readonly kind: "activity"; readonly name: string; readonly attempts: number; attempt: number; retryAt: number | undefined }
  | { readonly kind: "timer"; readonly due: number }
  | { readonly kind: "wait"; readonly event: EventName; readonly even: boolean }
  | { readonly kind: "child"; readonly id: string; readonly policy: Policy }
  | { readonly kind: "condition"; readonly holds: () => boolean };

export type End = {
  readonly status: "Completed" | "Failed" | "Cancelled" | "Terminated" | "Compensated" | "CompensationFailed";
  readonly value: unknown;
};

export type Flow = Generator<Effect, unknown, unknown>;
/** What a yield begins: in a fiber, at an id that is asked for when it is needed. A branch is one as well. */
export type Effect = (fiber: Fiber, id: () => string, done: Done) => Operation;
type Entry = Open & { readonly done: Done };

const cleanupLimit = 60_000;

export class Model {
  readonly open = new Map<string, Entry>();
  /** Events that nobody has taken, in the order of their arrival. */
  kept: { readonly event: EventName; readonly n: number }[] = [];
  readonly variables: Variables = { log: [], count: 0 };
  end: End | undefined;
  paused = false;
  /** What it has not heard of, because it is paused. */
  readonly unheard: Fact[] = [];
  /** Somebody asked it to end. */
  asked = false;
  cancelling = false;
  /** What it did is to be undone although it is cancelled. */
  compensates = false;
  readonly undoing: Undoing<Flow> = new Undoing(this, policy.on);
  now = 0;
  readonly ready: Fiber[] = [];
  readonly #main: (model: Model, part: Program, name: string) => Flow;
  #root: Fiber | undefined;
  #rollback: Operation | undefined;
  /** Whether it hears of something later than that happened. */
  #isBelated = false;

  constructor(main: (model: Model, part: Program, name: string) => Flow) {
    this.#main = main;
  }

  receive(fact: Fact): void {
    if (fact.type === "Cancel") this.asked = true;
    if (this.paused && isForCode(fact)) this.unheard.push(fact);
    else this.#hear(fact);
    this.#isBelated = true;
    while (!this.paused && this.end === undefined && this.unheard.length > 0) this.#hear(this.unheard.shift() as Fact);
    this.#isBelated = false;
  }

  /** Whether it has yet to hear how an effect ended. */
  isUnheard(effect: string): boolean {
    return this.unheard.some((fact) => "effect" in fact && fact.effect === effect);
  }

  #hear(fact: Fact): void {
    this.#apply(fact);
    this.#stepAll();
  }

  /** All that came in with a turn has been handled: what waits for the run's own state may go on. */
  rest(): void {
    while (this.end === undefined && !this.paused) {
      const held = [...this.open.values()].filter((entry) => entry.kind === "condition" && entry.holds());
      if (held.length === 0) return;
      for (const condition of held) condition.done(ok(undefined));
      this.#stepAll();
    }
  }

  newFiber(path: string, flow: Flow, done: Done, scope: Scope<Flow>): Fiber {
    return new Fiber(this, path, flow, done, scope);
  }

  #stepAll(): void {
    for (let fiber = this.ready.shift(); fiber !== undefined; fiber = this.ready.shift()) fiber.step();
  }

  #apply(fact: Fact): void {
    switch (fact.type) {
      case "Pause":
        this.paused = true;
        return;
      case "Resume":
        this.paused = false;
        return;
      case "Started":
        this.#root = new Fiber(this, "", this.#main(this, fact.part, fact.name), (outcome) => this.#close(outcome));
        return;
      case "Settled":
        this.#ended(fact.effect)?.done(fact.outcome);
        return;
      case "TimerFired":
        this.#entry(fact.effect).done(ok(undefined));
        return;
      case "AttemptStarted":
        Object.assign(this.#entry(fact.effect), { attempt: fact.attempt, retryAt: undefined });
        return;
      case "AttemptFailed":
        this.#attemptFailed(fact);
        return;
      case "ChildFailed": {
        const child = this.#ended(fact.effect) as (Entry & { kind: "child" }) | undefined;
        const message = `child workflow "interpreted" (${child?.id}) ended as ${fact.status}: ${fact.message}`;
        child?.done(failed(new Fault("WorkflowError", message)));
        return;
      }
      case "Event":
        this.#event(fact.event, fact.n);
        return;
      case "Cancel":
        if (this.#rollback !== undefined) return;
        this.cancelling = true;
        if (fact.mode === "compensate") this.compensates = true;
        if (fact.mode === "immediate") this.#drop({ status: "Cancelled", value: cancelled(fact.reason) });
        else this.#root?.cancel(cancelled(fact.reason));
        return;
      case "Terminate":
        this.#drop({ status: "Terminated", value: new Fault("WovyrError", fact.reason) });
    }
  }

  #entry(id: string): Entry {
    const entry = this.open.get(id);
    if (entry === undefined) throw new Error(`${id} is not open`);
    return entry;
  }

  /** What the outside says has ended; the run may have given it up before it heard of that. */
  #ended(id: string): Entry | undefined {
    return this.#isBelated ? this.open.get(id) : this.#entry(id);
  }

  #attemptFailed({ effect, attempt, message, retryAt, forGood }: Fact & { type: "AttemptFailed" }): void {
    const entry = this.#ended(effect) as (Entry & { kind: "activity" }) | undefined;
    if (entry === undefined) return;
    const again = attempt < entry.attempts && !forGood;
    if (again !== (retryAt !== undefined)) throw new Error(`${effect}: attempt ${attempt} is ${again ? "not " : ""}to be the last`);
    if (retryAt !== undefined && retryAt > this.now + retryDelay) throw new Error(`${effect} is tried again too late`);
    if (retryAt !== undefined) {
      entry.retryAt = retryAt;
      return;
    }
    const attempts = attempt === 1 ? "1 attempt" : `${attempt} attempts`;
    entry.done(failed(new Fault("ActivityError", `activity "work" failed after ${attempts}: ${message}`)));
  }

  /** The wait that was opened first gets it, of those that want it. */
  #event(event: EventName, n: number): void {
    const wait = [...this.open.values()].find((entry) => entry.kind === "wait" && entry.event === event && wants(entry, n));
    if (wait === undefined) this.kept.push({ event, n });
    else wait.done(ok(n));
  }

  #close(outcome: Outcome): void {
    if (outcome.ok && !this.cancelling) {
      this.end = { status: "Completed", value: outcome.value };
      return;
    }
    const value = outcome.ok ? cancelled("cancelled") : outcome.fault;
    const end = (status: "Compensated" | "Cancelled" | "Failed") => {
      this.end = { status: this.undoing.incomplete ? "CompensationFailed" : status, value };
    };
    this.#rollback = this.undoing.rollback(value, () => end("Compensated"));
    if (this.#rollback === undefined) end(this.cancelling ? "Cancelled" : "Failed");
  }

  /** The end without another line of its code. */
  #drop(end: End): void {
    this.ready.length = 0;
    this.#root?.abandon();
    this.#rollback?.abandon();
    this.end = end;
  }

  /** Opens something; whoever it is for is told once, and not at all when it is abandoned. */
  wait(id: string, what: Open, done: Done): Operation {
    if (this.open.has(id)) throw new Error(`${id} is open twice`);
    // A child that is told to undo what it did is waited for.
    let asked: Fault | undefined;
    const entry: Entry = {
      ...what,
      done: (outcome) => {
        if (this.open.delete(id)) done(asked === undefined || outcome.ok ? outcome : failed(asked));
      },
    };
    this.open.set(id, entry);
    const isOpen = () => this.open.get(id) === entry;
    const waits = () => what.kind === "child" && what.policy !== "abandon" && this.compensates && this.#rollback === undefined;
    const cancel = (reason: Fault) => {
      if (!isOpen() || asked !== undefined) return;
      if (waits()) asked = reason;
      else entry.done(failed(reason));
    };
    return { cancel, abandon: () => isOpen() && this.open.delete(id) };
  }

  timer(id: string, ms: number, done: Done): Operation {
    return this.wait(id, { kind: "timer", due: this.now + ms }, done);
  }

  take(event: EventName, even: boolean): number | undefined {
    const index = this.kept.findIndex((each) => each.event === event && wants({ even }, each.n));
    return index < 0 ? undefined : this.kept.splice(index, 1)[0]?.n;
  }
}

/** Whether it enters the code of a run, so that a paused one hears of it later. */
function isForCode(fact: Fact): boolean {
  if (fact.type === "AttemptFailed") return fact.retryAt === undefined;
  if (fact.type === "Cancel") return fact.mode !== "immediate";
  return fact.type !== "Pause" && fact.type !== "Resume" && fact.type !== "Terminate" && fact.type !== "AttemptStarted";
}

const wants = (wait: { readonly even: boolean }, n: number) => !wait.even || n % 2 === 0;

/** One generator. Once cancelled it is told so once, may clean up for a while, and ends as cancelled, after its tasks. */
export class Fiber implements Operation {
  readonly path: string;
  readonly model: Model;
  readonly tasks: Task[] = [];
  readonly scope: Scope<Flow> | undefined;
  readonly #flow: Flow;
  readonly #done: Done;
  #effects = 0;
  #entered = false;
  #next: Outcome | undefined = ok(undefined);
  #waiting: Operation | undefined;
  #reason: Fault | undefined;
  #told = false;
  #cleanup: Operation | undefined;
  #result: Outcome | undefined;
  #over = false;

  constructor(model: Model, path: string, flow: Flow, done: Done, scope?: Scope<Flow>) {
    this.scope = scope;
    this.model = model;
    this.path = path;
    this.#flow = flow;
    this.#done = done;
    model.ready.push(this);
  }

  step(): void {
    const next = this.#next;
    if (next === undefined || this.#over) return;
    this.#next = undefined;
    this.#entered = true;
    const yielded = this.#advance(next);
    if (typeof yielded !== "function") {
      this.#finish(yielded);
      return;
    }
    let settled = false;
    const operation = yielded(this, this.#id, (outcome) => {
      settled = true;
      this.#resume(outcome);
    });
    if (settled) return;
    this.#waiting = operation;
    // It cancelled itself with what it has just begun.
    if (this.#reason !== undefined && !this.#told) operation.cancel(this.#reason);
    if (this.#told && this.#cleanup === undefined) this.#boundCleanup(0);
  }

  /** What undoes is given twice as long each time. */
  #boundCleanup(times: number): void {
    this.#cleanup = this.model.timer(`${this.path}!cleanup${times === 0 ? "" : times}`, cleanupLimit * 2 ** times, () => {
      if (this.undoing()) this.#boundCleanup(times + 1);
      else this.#drop();
    });
  }

  undoing(): boolean {
    return this.#waiting?.undoing?.() === true || this.tasks.some((task) => task.undoing());
  }

  #advance(next: Outcome): Effect | Outcome {
    try {
      const yielded = next.ok ? this.#flow.next(next.value) : this.#flow.throw(next.fault);
      return yielded.done === true ? ok(yielded.value) : yielded.value;
    } catch (fault) {
      if (fault instanceof Fault) return failed(fault);
      throw fault;
    }
  }

  cancel(reason: Fault): void {
    if (this.#over || this.#reason !== undefined) return;
    this.#reason = reason;
    if (this.#result !== undefined) return;
    if (!this.#entered) this.#finish(failed(reason));
    else if (this.#waiting !== undefined) this.#waiting.cancel(reason);
    else if (this.#next !== undefined) this.#next = this.#tell(reason);
  }

  abandon(): void {
    if (this.#over) return;
    this.#over = true;
    this.#waiting?.abandon();
    this.#cleanup?.abandon();
    for (const task of this.tasks) task.abandon();
  }

  readonly #id = (): string => `${this.path}${this.path === "" ? "" : "/"}${this.#effects++}`;

  #resume(outcome: Outcome): void {
    if (this.#over) return;
    this.#waiting = undefined;
    this.#next = this.#reason !== undefined && !this.#told ? this.#tell(this.#reason) : outcome;
    this.model.ready.push(this);
  }

  #tell(reason: Fault): Outcome {
    this.#told = true;
    return failed(reason);
  }

  #drop(): void {
    this.abandon();
    this.#done(failed(this.#reason as Fault));
  }

  #finish(outcome: Outcome): void {
    this.#next = undefined;
    this.#result = this.#reason === undefined ? outcome : failed(this.#reason);
    this.#cleanup?.abandon();
    const left = this.tasks.filter((task) => task.outcome === undefined);
    const close = () => {
      if (this.#over || left.some((task) => task.outcome === undefined)) return;
      this.#over = true;
      this.#done(this.#result as Outcome);
    };
    for (const task of left) task.afterwards.push(close);
    for (const task of left) task.operation.cancel(closing);
    close();
  }
}

export class Task {
  operation: Operation = nothing;
  outcome: Outcome | undefined;
  readonly joiners = new Set<Done>();
  /** Called after those who joined have been told. */
  readonly afterwards: (() => void)[] = [];

  settle(outcome: Outcome): void {
    this.outcome = outcome;
    const joiners = [...this.joiners];
    this.joiners.clear();
    for (const tell of joiners) tell(outcome);
    for (const tell of this.afterwards.splice(0)) tell();
  }

  /** Whoever waits for it still waits for its end. */
  abandon(): void {
    this.operation.abandon();
    if (this.outcome === undefined) this.settle(failed(closing));
  }

  #asked = false;

  /** Tasks may wait for each other in a circle. */
  undoing(): boolean {
    if (this.#asked) return false;
    this.#asked = true;
    const undoing = this.operation.undoing?.() === true;
    this.#asked = false;
    return undoing;
  }

  /** Giving up the wait leaves the task alone. */
  join(done: Done): Operation {
    if (this.outcome !== undefined) {
      done(this.outcome);
      return nothing;
    }
    this.joiners.add(done);
    return {
      cancel: (reason) => this.joiners.delete(done) && done(failed(reason)),
      abandon: () => this.joiners.delete(done),
      undoing: () => this.undoing(),
    };
  }

  /** Waits until it has closed. */
  cancel(done: Done): Operation {
    const wait = { tell: done as Done | undefined };
    const tell = (outcome: Outcome) => {
      const { tell: waiting } = wait;
      wait.tell = undefined;
      waiting?.(outcome);
    };
    if (this.outcome === undefined) {
      this.afterwards.push(() => tell(ok(undefined)));
      this.operation.cancel(cancelled("the task was cancelled"));
    } else tell(ok(undefined));
    return {
      cancel: (reason) => this.outcome === undefined && tell(failed(reason)),
      abandon: () => {
        wait.tell = undefined;
      },
    };
  }
}
