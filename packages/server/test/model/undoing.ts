/** What a run has to undo, and how it is undone: scopes, and the unwinding of what they hold. */
import { type Done, Fault, failed, nothing, type Operation, type Outcome, ok } from "./outcome.ts";

export type On = "failure" | "always" | "manual";
export type Order = "reverse" | "parallel";
type Registered<Flow> = { readonly n: number; readonly undoes: string; readonly undo: () => Flow; tries: number };
type LeftBehind = { readonly undoes: string; readonly fault: Fault };

const width = { reverse: 1, parallel: 100 };

export class Scope<Flow> {
  readonly on: On;
  readonly order: Order;
  readonly around: Scope<Flow> | undefined;
  registered: Registered<Flow>[] = [];
  over = false;

  constructor(on: On, order: Order, around?: Scope<Flow>) {
    this.on = on;
    this.order = order;
    this.around = around;
  }

  add(one: Registered<Flow>): void {
    if (!this.over) this.registered.push(one);
    else this.around?.add(one);
  }

  take(): Registered<Flow>[] {
    return this.registered.splice(0).sort((a, b) => b.n - a.n);
  }

  leave(): void {
    this.over = true;
    for (const one of this.registered.splice(0)) this.around?.add(one);
  }
}

/** The run that does and undoes. */
export interface Undoer<Flow> {
  readonly cancelling: boolean;
  readonly compensates: boolean;
  newFiber(path: string, flow: Flow, done: Done, scope: Scope<Flow>): Operation;
}

type Scoped<Flow> = { readonly scope: Scope<Flow> | undefined };

export class Undoing<Flow> {
  readonly run: Scope<Flow>;
  /** Compensations that are at work. */
  readonly running = new Set<string>();
  readonly #model: Undoer<Flow>;
  /** Nothing is undone of what undoes. */
  readonly #within = new Scope<Flow>("manual", "reverse");
  readonly #left: LeftBehind[] = [];
  #count = 0;

  constructor(model: Undoer<Flow>, on: On) {
    this.#model = model;
    this.run = new Scope<Flow>(on, "reverse");
    this.#within.over = true;
  }

  /** Registers an effect once it has completed. */
  watch(scope: Scope<Flow> | undefined, undoes: string, undo: () => Flow, done: Done): Done {
    return (outcome) => {
      if (outcome.ok) (scope ?? this.run).add({ n: this.#count++, undoes, undo, tries: 0 });
      done(outcome);
    };
  }

  saga(
    fiber: Scoped<Flow>,
    id: string,
    flow: Flow,
    options: { readonly on: On | undefined; readonly order: Order | undefined },
    done: Done,
  ): Operation {
    const around = fiber.scope ?? this.run;
    const scope = new Scope<Flow>(options.on ?? around.on, options.order ?? around.order, around);
    let at: Operation = this.#model.newFiber(
      `${id}.0`,
      flow,
      (outcome) => {
        if (outcome.ok || !this.#wants(scope, outcome.fault)) {
          scope.leave();
          done(outcome);
          return;
        }
        at = this.#unwind(scope, scope.take(), (left) => {
          scope.leave();
          done(left.length === 0 ? outcome : failed(notUndone(left)));
        });
      },
      scope,
    );
    return {
      cancel: (reason) => at.cancel(reason),
      abandon: () => {
        at.abandon();
        scope.leave();
      },
      undoing: () => at.undoing?.() === true,
    };
  }

  now(fiber: Scoped<Flow>, done: Done): Operation {
    const scope = fiber.scope ?? this.run;
    const registered = scope.take();
    if (registered.length > 0)
      return this.#unwind(scope, registered, (left) => done(left.length === 0 ? ok(undefined) : failed(notUndone(left))));
    done(ok(undefined));
    return nothing;
  }

  rollback(fault: Fault, done: () => void): Operation | undefined {
    return this.#wants(this.run, fault) ? this.#unwind(this.run, this.run.take(), done) : undefined;
  }

  get incomplete(): boolean {
    return this.#left.length > 0;
  }

  #wants({ on, registered }: Scope<Flow>, fault: Fault): boolean {
    if (registered.length === 0) return false;
    if (fault.name !== "CancelledError" || !this.#model.cancelling) return on !== "manual";
    return on === "always" || this.#model.compensates;
  }

  #unwind(scope: Scope<Flow>, all: readonly Registered<Flow>[], done: (left: readonly LeftBehind[]) => void): Operation {
    const waiting = [...all];
    const open = new Map<Registered<Flow>, Operation>();
    const left: LeftBehind[] = [];
    let over = false;
    const fill = () => {
      while (open.size < width[scope.order] && waiting.length > 0) begin(waiting.shift() as Registered<Flow>);
      if (over || open.size > 0) return;
      over = true;
      this.#left.push(...left);
      done(left);
    };
    const begin = (one: Registered<Flow>) => {
      const again = one.tries++;
      const id = `~${one.n}`;
      this.running.add(id);
      const ended = (outcome: Outcome) => {
        this.running.delete(id);
        open.delete(one);
        if (!outcome.ok) left.push({ undoes: one.undoes, fault: outcome.fault });
        fill();
      };
      open.set(one, this.#model.newFiber(again === 0 ? id : `${id}#${again}`, one.undo(), ended, this.#within));
    };
    fill();
    return {
      cancel() {},
      abandon: () => {
        over = true;
        for (const [one, operation] of open) {
          this.running.delete(`~${one.n}`);
          operation.abandon();
        }
        for (const one of [...open.keys(), ...waiting]) scope.add(one);
      },
      undoing: () => !over,
    };
  }
}

function notUndone(left: readonly LeftBehind[]): Fault {
  const list = left.map(({ undoes, fault }) => `"work" (effect ${undoes}) failed: ${fault.message}`);
  return new Fault("CompensationError", `not everything was undone: the compensation of ${list.join("; of ")}`);
}
