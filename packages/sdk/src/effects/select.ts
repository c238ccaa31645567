import { WovyrError } from "../model/errors.ts";
import { type CallSite, captureSite, Effect, type Winner } from "./effect.ts";
import { Task } from "./task.ts";

type Tasks = readonly Task<unknown>[] | { readonly [name: string]: Task<unknown> };

/** Waits for the first of some tasks; the others stay alive. */
export class SelectEffect<out T> extends Effect<T> {
  readonly kind = "select";
  readonly tasks: readonly Task<unknown>[];
  /** The names of a record of tasks; undefined for an array or tuple. */
  readonly keys: readonly string[] | undefined;

  constructor(tasks: readonly Task<unknown>[], keys: readonly string[] | undefined, site: CallSite = captureSite(SelectEffect)) {
    super(site);
    this.tasks = tasks;
    this.keys = keys;
  }
}

/** Waits for the first of some tasks that ends, well or badly; the others stay alive. */
export function select<const B extends Tasks>(tasks: B): SelectEffect<Winner<B>> {
  const isList = Array.isArray(tasks);
  const keys = typeof tasks === "object" && tasks !== null ? Object.keys(tasks) : [];
  const list: unknown[] = isList ? [...tasks] : keys.map((key) => (tasks as Readonly<Record<string, unknown>>)[key]);
  if (list.length === 0 || !list.every((task) => task instanceof Task)) {
    throw new WovyrError("select takes an array or a record of tasks, which `yield* spawn(…)` returns; for other branches there is race", {
      code: "INVALID_OPTION",
    });
  }
  return new SelectEffect(Object.freeze(list as Task<unknown>[]), isList ? undefined : Object.freeze(keys), captureSite(select));
}
