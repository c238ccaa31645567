/**
 * What each effect does when it is yielded.
 *
 * 1. Every effect becomes one `Operation`; leaves are recorded, combinators are not: what they lead to is.
 * 2. Whatever is wrong with an effect is thrown at its yield, before anything of it is recorded.
 */
import { parse } from "../define/schema.ts";
import type { WorkflowDefinition } from "../define/workflow-definition.ts";
import type { AnyEffect } from "../effects/any-effect.ts";
import { maxBranches } from "../effects/branches.ts";
import type { Compensation } from "../effects/compensation.ts";
import type { ContinueAsNewEffect } from "../effects/continue-as-new.ts";
import { type Branch, type CallSite, Effect } from "../effects/effect.ts";
import { Task } from "../effects/task.ts";
import { keyOf } from "../model/concurrency.ts";
import { AuthoringError, CancelledError, TimeoutError } from "../model/errors.ts";
import { keyText } from "../model/event-key.ts";
import { errorOf, type Failure, failureOf } from "../model/failure.ts";
import type { Command, EffectId, Payload, TimerPurpose } from "../model/history.ts";
import { decodePayload } from "../model/payload.ts";
import { type Priority, recordedPriority } from "../model/priority.ts";
import { singletonId } from "../model/singleton.ts";
import { closing } from "./closing.ts";
import { allPolicy, anyPolicy, racePolicy, settledPolicy, tolerantPolicy } from "./combinators.ts";
import type { Commands } from "./commands.ts";
import type { Compensations } from "./compensations.ts";
import type { Conditions } from "./conditions.ts";
import type { EventWaits } from "./event-waits.ts";
import type { Fiber } from "./fiber.ts";
import { Group } from "./group.ts";
import type { Leaves } from "./leaf.ts";
import { closedOperation, type Done, fulfilled, type Operation, rejected } from "./operation.ts";
import type { Scope } from "./scope.ts";
import { TaskState } from "./task.ts";

const noted = { atLeastOnce: undefined, atMostOnce: { semantics: "atMostOnce" }, transactional: { semantics: "transactional" } } as const;

type Kind<K extends AnyEffect["kind"]> = Extract<AnyEffect, { kind: K }>;

/** What the interpreter needs of the execution around it; tasks remember it as the run that they belong to. */
export interface Surroundings {
  /** Time of the present turn, milliseconds since the epoch. */
  readonly now: number;
  /** The run goes on as a new one when its function has ended. Throws when the input does not fit. */
  continueAsNew(effect: ContinueAsNewEffect): void;
  /** A fresh run id for a child. */
  newRunId(): string;
  /** Set when the execution can go no further. */
  readonly broken: Error | undefined;
  readonly definition: Pick<WorkflowDefinition, "errors">;
  readonly compensations: Compensations;
  /** Of the run; undefined when it is the default. */
  readonly priority: Priority | undefined;
  /** Whether what goes to a task queue is for workers elsewhere. */
  isQueued(queue: string): boolean;
  newFiber(path: EffectId, generator: AsyncGenerator<unknown, unknown, unknown>, done: Done, scope: Scope | undefined): Operation;
}

export class Interpreter {
  readonly #surroundings: Surroundings;
  readonly #commands: Commands;
  readonly #leaves: Leaves;
  readonly #events: EventWaits;
  readonly #conditions: Conditions;
  #tasks: Map<EffectId, TaskState> | undefined;
  #usedIds: Set<string> | undefined;

  constructor(surroundings: Surroundings, commands: Commands, leaves: Leaves, events: EventWaits, conditions: Conditions) {
    this.#surroundings = surroundings;
    this.#commands = commands;
    this.#leaves = leaves;
    this.#events = events;
    this.#conditions = conditions;
  }

  /** Starts a yielded effect. `done` may be called before this returns. */
  begin(effect: Effect<unknown>, id: EffectId | undefined, fiber: Fiber, done: Done): Operation {
    const known = effect as AnyEffect;
    try {
      // What the limit advises is not held to it.
      if (known.kind !== "continueAsNew") this.#commands.checkHistory(fiber.scope?.undoing === true);
    } catch (error) {
      done(rejected(error));
      return closedOperation;
    }
    switch (known.kind) {
      case "activity":
        return this.#activity(known, id, fiber, done);
      case "sleep":
        return this.#sleep(known, id ?? fiber.nextId(), done);
      case "event":
        return this.#event(known, id ?? fiber.nextId(), done);
      case "child":
        return this.#child(known, id ?? fiber.nextId(), fiber, done);
      case "sideEffect":
        return this.#sideEffect(known, id ?? fiber.nextId(), done);
      case "all":
      case "settled":
      case "any":
      case "race":
        return this.#combinator(known, id ?? fiber.nextId(), fiber, done);
      case "map":
        return this.#map(known, id ?? fiber.nextId(), fiber, done);
      case "select":
        return this.#select(known, id ?? fiber.nextId(), fiber, done);
      case "timeout":
        return this.#timeout(known, id ?? fiber.nextId(), fiber, done);
      case "shield":
        return this.#shield(known, id ?? fiber.nextId(), fiber, done);
      case "saga":
        return this.#saga(known, id ?? fiber.nextId(), fiber, done);
      case "compensateNow":
        return this.#surroundings.compensations.now(id ?? fiber.nextId(), fiber.scope, known.site, done);
      case "condition":
        return this.#condition(known, id ?? fiber.nextId(), done);
      case "continueAsNew":
        return this.#continueAsNew(known, id, fiber, done);
      case "patched":
        done(fulfilled(this.#commands.patched(known.id)));
        return closedOperation;
      case "spawn":
        return this.#spawn(known, id ?? fiber.nextId(), fiber, done);
      case "task":
        return this.#join(known, fiber, done);
      case "cancelTask":
        return this.#cancelTask(known, fiber, done);
      default:
        known satisfies never;
        done(rejected(new AuthoringError(`This version of the engine does not know the effect "${effect.kind}".`, "FOREIGN_YIELD")));
        return closedOperation;
    }
  }

  startBranch(make: () => Branch, id: EffectId, fiber: Fiber, done: Done): Operation {
    let branch: unknown;
    try {
      branch = fiber.execution.guarded(() => {
        const made: unknown = make();
        return typeof made === "function" ? made() : made;
      });
    } catch (error) {
      done(rejected(error));
      return closedOperation;
    }
    if (branch instanceof Effect) return this.begin(branch, id, fiber, done);
    if (isGenerator(branch)) return this.#surroundings.newFiber(id, branch, done, fiber.scope);
    done(
      rejected(
        new AuthoringError(
          `Branch ${id} is neither an effect nor an async generator, nor a function that returns one. Write it as \`async function* () { … }\`.${fiber.execution.lastLine(fiber).text}`,
          "FOREIGN_YIELD",
        ),
      ),
    );
    return closedOperation;
  }

  /** A timer of the runtime's own; `fired` is not called when it is abandoned. */
  timer(id: EffectId, purpose: TimerPurpose, delay: number, fired: () => void): Operation {
    return this.timerAt(id, purpose, this.#surroundings.now + delay, undefined, fired);
  }

  #activity(asked: Kind<"activity">, given: EffectId | undefined, fiber: Fiber, done: Done): Operation {
    const effect = fiber.scope?.undoing === true ? this.#undoing(asked, fiber.scope) : asked;
    const { definition, options, compensation } = effect;
    try {
      const id = this.#customId(options.id) ?? given ?? fiber.nextId();
      const command = this.#commands.record(
        {
          type: "ActivityScheduled",
          effect: id,
          name: definition.name,
          ...this.#commands.input(id, definition.input, effect.input, `input of activity "${definition.name}"`),
          ...(options.summary !== undefined && { summary: options.summary }),
          ...noted[options.semantics ?? definition.semantics ?? "atLeastOnce"],
          ...recordedPriority(options.priority, definition.priority, this.#surroundings.priority),
          ...this.#queueOf(options.queue ?? definition.queue),
        },
        effect.site,
      );
      const told = compensation === undefined ? done : this.#watch(compensation, command.effect, definition.name, fiber, done);
      return this.#leaves.open(command.effect, { kind: "activity", effect }, effect.site, told);
    } catch (error) {
      done(rejected(error));
      return closedOperation;
    }
  }

  /** What is said of a queue whose tasks this process does not run itself. */
  #queueOf(queue: string | undefined): { readonly queue: string } | undefined {
    return queue !== undefined && this.#surroundings.isQueued(queue) ? { queue } : undefined;
  }

  /** An activity that undoes something, with the retries that the workflow wants for such. */
  #undoing(effect: Kind<"activity">, { policy: { retry } }: Scope): Kind<"activity"> {
    return retry === undefined ? effect : effect.with({ retry: { ...retry, ...effect.options.retry } });
  }

  #watch(compensation: Compensation, undoes: EffectId, name: string, { scope }: Fiber, done: Done): Done {
    return this.#surroundings.compensations.watch(compensation, undoes, name, scope, done);
  }

  /** Effect ids that users choose live apart from positional ones, and each is used once in a run. */
  #customId(id: string | undefined): EffectId | undefined {
    if (id === undefined) return undefined;
    if (this.#usedIds?.has(id) === true)
      throw new AuthoringError(`The effect id "${id}" is used twice in one run. Leave \`id\` out, or make it unique.`, "INVALID_OPTION");
    this.#usedIds ??= new Set();
    this.#usedIds.add(id);
    return `@${id}`;
  }

  #sleep(effect: Kind<"sleep">, id: EffectId, done: Done): Operation {
    return this.timerAt(id, "sleep", effect.until ?? this.#surroundings.now + (effect.delay ?? 0), effect.site, done);
  }

  timerAt(id: EffectId, purpose: TimerPurpose, due: number, site: CallSite | undefined, done: Done): Operation {
    this.#commands.record({ type: "TimerStarted", effect: id, purpose, due }, site);
    return this.#leaves.open(id, { kind: "timer", purpose }, site, done);
  }

  #event(effect: Kind<"event">, id: EffectId, done: Done): Operation {
    const { name } = effect.event;
    const { key } = effect;
    this.#commands.record({ type: "EventAwaited", effect: id, name, ...(key !== undefined && { key }) }, effect.site);
    const kept = this.#events.takeKept(id, effect);
    if (kept !== undefined) {
      done(kept);
      return closedOperation;
    }
    const after = effect.timeout;
    if (after === undefined) return this.#leaves.open(id, { kind: "event", effect }, effect.site, done);
    const wait = this.#leaves.open(id, { kind: "event", effect }, effect.site, (outcome) => {
      timer.abandon();
      done(outcome);
    });
    const timer = this.timer(`${id}!timeout`, "timeout", after, () => {
      if (!this.#leaves.close(wait)) return;
      this.#commands.record({ type: "EffectCancelled", effect: id });
      done(rejected(new TimeoutError(`event "${name}"${keyText(key)} did not arrive within ${after} ms`, "wait", after)));
    });
    return {
      cancel: (reason) => wait.cancel(reason),
      abandon: () => {
        wait.abandon();
        timer.abandon();
      },
    };
  }

  #child(effect: Kind<"child">, id: EffectId, fiber: Fiber, done: Done): Operation {
    const { workflow, compensation } = effect;
    try {
      const run = this.#commands.replaying ? "" : this.#surroundings.newRunId();
      const command = this.#commands.record(
        {
          type: "ChildStarted",
          effect: id,
          workflow: workflow.name,
          version: workflow.version,
          id: effect.id ?? this.#childId(workflow, effect.input) ?? run,
          run,
          ...this.#commands.input(id, workflow.input, effect.input, `input of workflow "${workflow.name}"`),
          onParentClose: effect.onParentClose,
          ...recordedPriority(effect.priority, workflow.priority, this.#surroundings.priority),
        },
        effect.site,
      );
      const told = compensation === undefined ? done : this.#watch(compensation, id, workflow.name, fiber, done);
      return this.#leaves.open(id, { kind: "child", effect, childId: command.id }, effect.site, told);
    } catch (error) {
      done(rejected(error));
      return closedOperation;
    }
  }

  /** The id of a child that is a singleton. What is recorded counts on replay. */
  #childId({ name, input, singleton }: WorkflowDefinition, given: unknown): string | undefined {
    if (singleton === undefined || this.#commands.replaying) return undefined;
    if (singleton.key === undefined) return singletonId(name);
    const parsed = parse(input, given, `input of workflow "${name}"`);
    return singletonId(name, keyOf(singleton.key, parsed, `singleton.key of workflow "${name}"`));
  }

  #sideEffect(effect: Kind<"sideEffect">, id: EffectId, done: Done): Operation {
    const called = this.#commands.replaying ? {} : this.#called(effect.fn);
    const command = this.#commands.record<Extract<Command, { type: "SideEffectRecorded" }>>(
      { type: "SideEffectRecorded", effect: id, ...called },
      effect.site,
    );
    if (this.#surroundings.broken !== undefined) return closedOperation;
    const { value, failure } = command;
    if (value === undefined) done(rejected(failure && errorOf(failure, this.#surroundings.definition.errors)));
    else {
      if (this.#commands.replaying) this.#commands.count(value);
      done(fulfilled(decodePayload(value)));
    }
    return closedOperation;
  }

  /** What the function of a side effect came to. Its failure is recorded like its value: it may hang on what no replay can repeat. */
  #called(fn: () => unknown): { readonly value: Payload } | { readonly failure: Failure } {
    try {
      return { value: this.#commands.encode(fn(), "value of a side effect") };
    } catch (error) {
      return { failure: failureOf(error) };
    }
  }

  #combinator(effect: Kind<"all" | "settled" | "any" | "race">, id: EffectId, fiber: Fiber, done: Done): Operation {
    const { branches, keys, kind } = effect;
    const size = branches.length;
    const refusal = refuseSize(kind, size);
    if (refusal !== undefined) {
      done(rejected(refusal));
      return closedOperation;
    }
    const policy =
      kind === "all"
        ? allPolicy(size, keys)
        : kind === "settled"
          ? settledPolicy(size, keys)
          : kind === "any"
            ? anyPolicy(size, keys)
            : racePolicy(keys);
    return started(new Group(fiber, id, size, (index) => branches[index] as Branch, policy, done));
  }

  #select(effect: Kind<"select">, id: EffectId, fiber: Fiber, done: Done): Operation {
    const refusal = refuseSize("select", effect.tasks.length);
    if (refusal !== undefined) {
      done(rejected(refusal));
      return closedOperation;
    }
    return started(new Group(fiber, id, effect.tasks.length, (index) => effect.tasks[index] as Branch, racePolicy(effect.keys), done));
  }

  #map(effect: Kind<"map">, id: EffectId, fiber: Fiber, done: Done): Operation {
    const items = effect.items;
    const size = items.length;
    const refusal = refuseSize("map", size);
    if (refusal !== undefined) {
      done(rejected(refusal));
      return closedOperation;
    }
    const failures = tolerated(effect, size);
    if (failures !== undefined && failures < 0) {
      const wanted = effect.minSuccess ?? 0;
      done(rejected(new AuthoringError(`map() was given ${size} items and is to have at least ${wanted} successes.`, "INVALID_OPTION")));
      return closedOperation;
    }
    const policy = failures === undefined ? allPolicy(size, undefined) : tolerantPolicy(size, failures);
    return started(new Group(fiber, id, size, (index) => effect.fn(items[index], index), policy, done, effect.concurrency ?? size));
  }

  #timeout(effect: Kind<"timeout">, id: EffectId, fiber: Fiber, done: Done): Operation {
    let late: TimeoutError | undefined;
    let timer: Operation = closedOperation;
    let settled = false;
    const branch = this.startBranch(
      () => effect.branch as Branch,
      `${id}.0`,
      fiber,
      (outcome) => {
        settled = true;
        timer.abandon();
        done(late === undefined ? outcome : rejected(late));
      },
    );
    if (!settled)
      timer = this.timer(`${id}!timeout`, "timeout", effect.after, () => {
        late = new TimeoutError(`what timeout() covers took longer than ${effect.after} ms`, "scope", effect.after);
        branch.cancel(closing);
      });
    return {
      cancel: (reason) => branch.cancel(reason),
      abandon: () => {
        branch.abandon();
        timer.abandon();
      },
      undoing: () => branch.undoing?.() === true,
    };
  }

  #shield(effect: Kind<"shield">, id: EffectId, fiber: Fiber, done: Done): Operation {
    const branch = this.startBranch(() => effect.branch as Branch, `${id}.0`, fiber, done);
    // A cancellation of the surroundings is told when the branch has ended.
    return { cancel() {}, abandon: () => branch.abandon(), undoing: () => branch.undoing?.() === true };
  }

  #saga(effect: Kind<"saga">, id: EffectId, fiber: Fiber, done: Done): Operation {
    const { branch, options, site } = effect;
    return this.#surroundings.compensations.saga(
      id,
      options,
      fiber.scope,
      site,
      (scope, ended) => this.#surroundings.newFiber(`${id}.0`, flowOf(branch, id), ended, scope),
      done,
    );
  }

  #continueAsNew(effect: Kind<"continueAsNew">, given: EffectId | undefined, fiber: Fiber, done: Done): Operation {
    try {
      if (fiber.path !== "" || given !== undefined)
        throw new AuthoringError(
          "continueAsNew was yielded in a branch or a handler. Yield it in the workflow's own function: it ends everything else.",
          "INVALID_OPTION",
        );
      this.#surroundings.continueAsNew(effect);
      done({ ok: true, value: undefined, ends: true });
    } catch (error) {
      done(rejected(error));
    }
    return closedOperation;
  }

  #condition(effect: Kind<"condition">, id: EffectId, done: Done): Operation {
    const now = this.#conditions.ask(effect.until, effect.site);
    if (now !== undefined) {
      done(now);
      return closedOperation;
    }
    this.#commands.record({ type: "ConditionAwaited", effect: id }, effect.site);
    const after = effect.timeout;
    if (after === undefined) return this.#conditions.open(id, effect.until, effect.site, done);
    const wait = this.#conditions.open(id, effect.until, effect.site, (outcome) => {
      timer.abandon();
      done(outcome);
    });
    const timer = this.timer(`${id}!timeout`, "timeout", after, () => {
      if (!this.#conditions.close(wait)) return;
      this.#commands.record({ type: "EffectCancelled", effect: id });
      done(rejected(new TimeoutError(`the condition did not hold within ${after} ms`, "wait", after)));
    });
    return {
      cancel: (reason) => wait.cancel(reason),
      abandon: () => {
        wait.abandon();
        timer.abandon();
      },
    };
  }

  #spawn(effect: Kind<"spawn">, id: EffectId, fiber: Fiber, done: Done): Operation {
    const task = new TaskState(id, effect.site);
    this.#tasks ??= new Map();
    this.#tasks.set(id, task);
    fiber.own(task);
    task.operation = this.startBranch(
      () => effect.branch as Branch,
      `${id}.0`,
      fiber,
      (outcome) => task.settle(outcome),
    );
    done(fulfilled(new Task(id, this.#surroundings)));
    return closedOperation;
  }

  #taskOf(handle: Task<unknown>, fiber: Fiber): TaskState {
    const task = handle.owner === this.#surroundings ? this.#tasks?.get(handle.id) : undefined;
    if (task === undefined)
      throw new AuthoringError(
        `Task ${handle.id} belongs to another instance. A task can be joined and cancelled only by the run that spawned it; use an event or a child to wait for other instances.${fiber.execution.lastLine(fiber).text}`,
        "FOREIGN_TASK",
      );
    return task;
  }

  #join(handle: Task<unknown>, fiber: Fiber, done: Done): Operation {
    try {
      return this.#taskOf(handle, fiber).join(done);
    } catch (error) {
      done(rejected(error));
      return closedOperation;
    }
  }

  #cancelTask(effect: Kind<"cancelTask">, fiber: Fiber, done: Done): Operation {
    try {
      const task = this.#taskOf(effect.task, fiber);
      if (!task.closed) {
        const closed = { waiting: true };
        task.whenClosed(() => {
          if (closed.waiting) done(fulfilled(undefined));
        });
        task.operation.cancel(new CancelledError(effect.reason ?? "the task was cancelled"));
        const stop = () => {
          closed.waiting = false;
        };
        return {
          cancel: (reason) => {
            if (!closed.waiting || task.closed) return;
            stop();
            done(rejected(reason));
          },
          abandon: stop,
        };
      }
      done(fulfilled(undefined));
    } catch (error) {
      done(rejected(error));
    }
    return closedOperation;
  }
}

function started(group: Group): Group {
  group.start();
  return group;
}

function refuseSize(kind: string, size: number): Error | undefined {
  if (size > maxBranches)
    return new AuthoringError(
      `${kind}() was given ${size} branches; the limit is ${maxBranches}. Work through the list in batches, or give each batch to a child.`,
      "TOO_MANY_BRANCHES",
    );
  if (size === 0 && (kind === "race" || kind === "select"))
    return new AuthoringError(`${kind}() of no branches would wait for ever.`, "INVALID_OPTION");
  return undefined;
}

/** How many branches of a map may fail; undefined when none may. */
function tolerated(effect: Extract<AnyEffect, { kind: "map" }>, size: number): number | undefined {
  const { minSuccess, tolerateFailures } = effect;
  if (minSuccess === undefined && tolerateFailures === undefined) return undefined;
  const byPercent = tolerateFailures?.percent === undefined ? size : Math.floor((size * tolerateFailures.percent) / 100);
  return Math.min(tolerateFailures?.count ?? size, byPercent, size - (minSuccess ?? 0));
}

/** A branch as a generator: what a saga covers has a fiber, and thereby a scope, of its own. */
async function* flowOf(branch: Branch, id: EffectId): AsyncGenerator<unknown, unknown, unknown> {
  const made: unknown = typeof branch === "function" ? branch() : branch;
  if (made instanceof Effect) return yield made;
  if (isGenerator(made)) return yield* made;
  throw new AuthoringError(
    `The branch of saga ${id} returned neither an effect nor an async generator. Write it as \`async function* () { … }\`.`,
    "FOREIGN_YIELD",
  );
}

function isGenerator(value: unknown): value is AsyncGenerator<unknown, unknown, unknown> {
  return typeof value === "object" && value !== null && Symbol.asyncIterator in value && "next" in value && "throw" in value;
}
