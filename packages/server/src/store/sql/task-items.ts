import type { TurnWrite } from "../../engine/ports/store.ts";
import { lastPerEffect } from "../last-per-effect.ts";
import { turnProblem } from "../storable.ts";

/** What a flush says of tasks, as `wovyr.commit_tasks_1` reads it; undefined when it says nothing. `order`: the turns by their place. */
export function taskItems(order: readonly TurnWrite[]): string | undefined {
  let items: object[] | undefined;
  for (const [index, turn] of order.entries()) {
    const { tenant, run, shard, tasks = [], tasksDone = [] } = turn;
    if (tasks.length === 0 && tasksDone.length === 0) continue;
    const problem = turnProblem(turn);
    if (problem !== undefined) throw problem;
    items ??= [];
    items.push({ turn: index + 1, tenant, run, shard, done: tasksDone, tasks: [...lastPerEffect(tasks)] });
  }
  return items && JSON.stringify(items);
}
