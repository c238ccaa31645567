/** The language, part by part: what each yields, and what comes of it. The same text as in `program.ts`, but for the model instead of the engine. */
import { group, rules } from "./groups.ts";
import { type Effect, Fiber, type Flow, type Model, type Open, Task } from "./model.ts";
import { closing, Fault, failed, nothing, type Operation, type Outcome, ok } from "./outcome.ts";
import { type EventName, logLine, type Program, shown } from "./program.ts";

/** What each part of a program yields. */
export class Language {
  readonly #model: Model;
  readonly #started: number;

  constructor(model: Model) {
    this.#model = model;
    this.#started = model.now;
  }

  static main(model: Model, part: Program, name: string): Flow {
    return new Language(model).#main(part, name);
  }

  *#main(part: Program, name: string): Flow {
    const value = yield* this.#run(part, name, []);
    return { value: shown(value), log: this.#model.variables.log };
  }

  *#run(part: Program, name: string, tasks: Task[]): Flow {
    const { log } = this.#model.variables;
    try {
      const value = yield* this.#body(part, name, tasks);
      log.push(logLine(name, value));
      return value;
    } catch (fault) {
      log.push(logLine(name, fault));
      throw fault;
    }
  }

  *#body(part: Program, name: string, tasks: Task[]): Flow {
    const single = this.#effect(part, name, tasks);
    if (single !== undefined) return yield single;
    switch (part.kind) {
      case "throw":
        throw new Fault("RangeError", name);
      case "note":
        this.#model.variables.count += 1;
        return [this.#model.variables.count, this.#model.now - this.#started];
      case "cancel": {
        const task = tasks[part.task % tasks.length];
        return task === undefined ? "none" : yield (_fiber, _id, done) => task.cancel(done);
      }
      case "sequence": {
        const values: unknown[] = [];
        for (const [index, each] of part.parts.entries()) values.push(yield* this.#run(each, `${name}.${index}`, tasks));
        return values;
      }
      case "spawn":
        tasks.push((yield this.#spawn(this.#branch(part.part, `${name}.s`, part.bare, tasks))) as Task);
        return name;
      case "finally":
        try {
          return yield* this.#run(part.part, `${name}.f`, tasks);
        } finally {
          yield* this.#run(part.after, `${name}.g`, tasks);
        }
      case "catch":
        try {
          return yield* this.#run(part.part, `${name}.c`, tasks);
        } catch (fault) {
          return [fault, yield* this.#run(part.after, `${name}.h`, tasks)];
        }
      default:
        return "none";
    }
  }

  #branch(part: Program, name: string, bare: boolean, tasks: Task[]): Effect {
    const single = bare ? this.#effect(part, name, tasks) : undefined;
    return single ?? ((fiber, id, done) => new Fiber(this.#model, id(), this.#run(part, name, tasks), done, fiber.scope));
  }

  /** What a saga covers is a generator always. */
  *#covered(part: Program, name: string, single: Effect | undefined, tasks: Task[]): Flow {
    return single === undefined ? yield* this.#run(part, name, tasks) : yield single;
  }

  #effect(part: Program, name: string, tasks: Task[]): Effect | undefined {
    const model = this.#model;
    switch (part.kind) {
      case "sleep":
        return (_fiber, id, done) => model.timer(id(), part.ms, done);
      case "activity":
        return (fiber, makeId, done) => {
          const id = makeId();
          const { undo } = part;
          const told = undo === undefined ? done : model.undoing.watch(fiber.scope, id, () => this.#run(undo, `${name}.u`, tasks), done);
          return model.wait(id, { kind: "activity", name, attempts: part.attempts, attempt: 1, retryAt: undefined }, told);
        };
      case "saga": {
        const inner = `${name}.a`;
        const single = part.bare ? this.#effect(part.part, inner, tasks) : undefined;
        return (fiber, makeId, done) => model.undoing.saga(fiber, makeId(), this.#covered(part.part, inner, single, tasks), part, done);
      }
      case "undo":
        return (fiber, makeId, done) => {
          makeId();
          return model.undoing.now(fiber, done);
        };
      case "child":
        return (_fiber, id, done) => model.wait(id(), { kind: "child", id: name, policy: part.policy }, done);
      case "event":
        return this.#event(part.event, part.even, part.ms);
      case "sideEffect":
        return (_fiber, id, done) => {
          id();
          done(part.fails ? failed(new Fault("RangeError", name)) : ok(name));
          return nothing;
        };
      case "all":
      case "race":
      case "any":
      case "settled": {
        const branches = part.parts.map((each, index) => this.#branch(each, `${name}.${index}`, part.bare, tasks));
        return group(branches, rules(branches.length)[part.kind]);
      }
      case "map": {
        // Its function is called when the turn of an item has come.
        const branches = part.parts.map(
          (each, index): Effect =>
            (...begin) =>
              this.#branch(each, `${name}.${index}`, part.bare, tasks)(...begin),
        );
        return group(branches, rules(branches.length).map, part.concurrency);
      }
      case "timeout":
        return this.#timeout(this.#branch(part.part, `${name}.t`, part.bare, tasks), part.ms);
      case "shield": {
        const inner = this.#branch(part.part, `${name}.p`, part.bare, tasks);
        return (fiber, makeId, done) => {
          const id = makeId();
          const operation = inner(fiber, () => `${id}.0`, done);
          return { cancel() {}, abandon: () => operation.abandon(), undoing: () => operation.undoing?.() === true };
        };
      }
      case "condition":
        return this.#condition(part.lines, part.ms);
      case "join": {
        const task = tasks[part.task % tasks.length];
        return task && ((_fiber, _id, done) => task.join(done));
      }
      case "select": {
        const joins = tasks.map(
          (task): Effect =>
            (_fiber, _id, done) =>
              task.join(done),
        );
        return joins.length > 0 ? group(joins, rules(joins.length).select) : undefined;
      }
      default:
        return undefined;
    }
  }

  #event(event: EventName, even: boolean, ms: number | undefined): Effect {
    return (_fiber, makeId, done) => {
      const id = makeId();
      const n = this.#model.take(event, even);
      if (n === undefined) return this.#waitFor(id, { kind: "wait", event, even }, `event "${event}" did not arrive`, ms, done);
      done(ok(n));
      return nothing;
    };
  }

  #condition(lines: number, ms: number | undefined): Effect {
    return (_fiber, makeId, done) => {
      const id = makeId();
      const holds = () => this.#model.variables.log.length >= lines;
      if (!holds()) return this.#waitFor(id, { kind: "condition", holds }, "the condition did not hold", ms, done);
      done(ok(undefined));
      return nothing;
    };
  }

  /** Waits for so long; `missing` is what did not happen then. */
  #waitFor(id: string, what: Open, missing: string, ms: number | undefined, done: (outcome: Outcome) => void): Operation {
    const model = this.#model;
    let timer = nothing;
    const wait = model.wait(id, what, (outcome) => {
      timer.abandon();
      done(outcome);
    });
    if (ms === undefined) return wait;
    timer = model.timer(`${id}!timeout`, ms, () => {
      wait.abandon();
      done(failed(new Fault("TimeoutError", `${missing} within ${ms} ms`)));
    });
    return { cancel: wait.cancel, abandon: () => [wait, timer].forEach((each) => void each.abandon()) };
  }

  #timeout(branch: Effect, ms: number): Effect {
    return (fiber, makeId, done) => {
      const id = makeId();
      let late: Fault | undefined;
      let timer: Operation | undefined = nothing;
      const operation = branch(
        fiber,
        () => `${id}.0`,
        (outcome) => {
          timer?.abandon();
          timer = undefined;
          done(late === undefined ? outcome : failed(late));
        },
      );
      if (timer !== undefined)
        timer = this.#model.timer(`${id}!timeout`, ms, () => {
          late = new Fault("TimeoutError", `what timeout() covers took longer than ${ms} ms`);
          operation.cancel(closing);
        });
      return {
        cancel: (reason) => operation.cancel(reason),
        abandon: () => [operation, timer].forEach((each) => void each?.abandon()),
        undoing: () => operation.undoing?.() === true,
      };
    };
  }

  #spawn(branch: Effect): Effect {
    return (fiber, makeId, done) => {
      const id = makeId();
      const task = new Task();
      fiber.tasks.push(task);
      task.operation = branch(
        fiber,
        () => `${id}.0`,
        (outcome) => task.settle(outcome),
      );
      done(ok(task));
      return nothing;
    };
  }
}
