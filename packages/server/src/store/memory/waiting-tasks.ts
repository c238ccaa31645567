/** The waiting tasks of one queue: by priority, then in turns to tenants, then by position. */
import { compareText } from "../text-order.ts";

type Waiting = { readonly priority: number; readonly tenant: string; readonly position: number };

export class WaitingTasks<Task extends Waiting> {
  /** By priority and tenant; each list by position. */
  readonly #levels = new Map<number, Map<string, Task[]>>();

  add(task: Task): void {
    const level = this.#levels.get(task.priority) ?? new Map<string, Task[]>();
    this.#levels.set(task.priority, level);
    const tasks = level.get(task.tenant) ?? [];
    level.set(task.tenant, tasks);
    tasks.splice(placeOf(tasks, task.position), 0, task);
  }

  delete(task: Task): void {
    const level = this.#levels.get(task.priority);
    const tasks = level?.get(task.tenant) ?? [];
    const at = placeOf(tasks, task.position);
    if (tasks[at] !== task) return;
    tasks.splice(at, 1);
    if (tasks.length > 0) return;
    level?.delete(task.tenant);
    if (level?.size === 0) this.#levels.delete(task.priority);
  }

  get isEmpty(): boolean {
    return this.#levels.size === 0;
  }

  /** The first so many that fit. Within a priority it begins after the tenant that was served last. */
  first(count: number, afterTenant: string, fits: (task: Task) => boolean): Task[] {
    const chosen: Task[] = [];
    for (const priority of [...this.#levels.keys()].sort((a, b) => a - b)) {
      const level = this.#levels.get(priority) ?? new Map<string, Task[]>();
      const tenants = inTurn([...level.keys()].sort(compareText), afterTenant);
      const fitting = tenants.map((tenant) => firstOf(level.get(tenant) ?? [], count - chosen.length, fits));
      for (let round = 0; chosen.length < count; round += 1) {
        const next = fitting.flatMap((tasks) => tasks.slice(round, round + 1));
        if (next.length === 0) break;
        chosen.push(...next.slice(0, count - chosen.length));
      }
    }
    return chosen;
  }
}

function inTurn(tenants: readonly string[], afterTenant: string): readonly string[] {
  const first = tenants.findIndex((tenant) => compareText(tenant, afterTenant) > 0);
  return first < 0 ? tenants : [...tenants.slice(first), ...tenants.slice(0, first)];
}

function firstOf<Task>(tasks: readonly Task[], count: number, fits: (task: Task) => boolean): Task[] {
  const found: Task[] = [];
  for (const task of tasks) {
    if (found.length >= count) break;
    if (fits(task)) found.push(task);
  }
  return found;
}

/** Where a position stands, or would stand, in a list by position. */
function placeOf(tasks: readonly Waiting[], position: number): number {
  let low = 0;
  let high = tasks.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if ((tasks[middle] as Waiting).position < position) low = middle + 1;
    else high = middle;
  }
  return low;
}
