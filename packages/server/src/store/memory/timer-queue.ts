/**
 * The timers of one shard, by due time.
 *
 * 1. Setting and removing cost O(log n); listing the `k` earliest costs O(k log k), however many there are.
 * 2. A removed timer stays in the heap as dead until it reaches the top or half of the heap is dead.
 */
import type { TimerRow } from "../../engine/ports/store.ts";
import { compareText } from "../text-order.ts";
import { Heap } from "./heap.ts";

export type Timer = TimerRow & { dead: boolean };

export function compareTimers(a: TimerRow, b: TimerRow): number {
  return a.due - b.due || compareText(a.run, b.run) || compareText(a.effect, b.effect) || compareText(a.tenant, b.tenant);
}

export class TimerQueue {
  readonly #heap = new Heap<Timer>(compareTimers);
  #dead = 0;

  add(row: TimerRow): Timer {
    const timer = { ...row, dead: false };
    this.#heap.push(timer);
    return timer;
  }

  remove(timer: Timer): void {
    timer.dead = true;
    this.#dead += 1;
    while (this.#heap.peek()?.dead) {
      this.#heap.pop();
      this.#dead -= 1;
    }
    if (this.#dead > 64 && this.#dead * 2 > this.#heap.size) {
      this.#heap.filter((each) => !each.dead);
      this.#dead = 0;
    }
  }

  get heap(): Heap<Timer> {
    return this.#heap;
  }
}

type Place = {
  readonly heap: Heap<Timer>;
  readonly place: number;
  readonly timer: Timer;
};

/** The earliest `limit` timers of many queues that are due at `until` or before, in order. */
export function earliest(queues: readonly TimerQueue[], until: number, limit: number): TimerRow[] {
  const front = new Heap<Place>((a, b) => compareTimers(a.timer, b.timer));
  const look = (heap: Heap<Timer>, place: number): void => {
    const timer = heap.at(place);
    if (timer !== undefined && timer.due <= until) front.push({ heap, place, timer });
  };
  for (const queue of queues) look(queue.heap, 0);
  const rows: TimerRow[] = [];
  while (rows.length < limit) {
    const next = front.pop();
    if (next === undefined) break;
    const { tenant, run, shard, effect, due } = next.timer;
    if (!next.timer.dead) rows.push({ tenant, run, shard, effect, due });
    look(next.heap, 2 * next.place + 1);
    look(next.heap, 2 * next.place + 2);
  }
  return rows;
}
