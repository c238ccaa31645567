import type { TurnWrite } from "../../engine/ports/store.ts";
import { turnProblem } from "../storable.ts";

/** What a flush says to other databases, as `wovyr.commit_outbox_1` reads it; undefined when it says nothing. `order`: the turns by their place. */
export function outboxItems(order: readonly TurnWrite[]): string | undefined {
  let items: object[] | undefined;
  for (const [index, turn] of order.entries()) {
    const { tenant, run, shard, outbox = [] } = turn;
    if (outbox.length === 0) continue;
    const problem = turnProblem(turn);
    if (problem !== undefined) throw problem;
    items ??= [];
    for (const { name, target, parcel } of outbox)
      items.push({ turn: index + 1, tenant, run, shard, name, target, parcel: JSON.stringify(parcel) });
  }
  return items && JSON.stringify(items);
}
