/**
 * Task queues over several databases: a task lies with its run.
 *
 * 1. Claims go to one database after the other, each time beginning with the next, until there is enough; those that do not answer are passed over. So
 *    priorities, and turns of tenants, hold within each database.
 * 2. A token tells nothing of its database: all are asked. What none knows is refused only when all have said so.
 * 3. Workers are known to the first database.
 */

import { StoreUnavailableError } from "../../engine/ports/store.ts";
import type { ClaimedTask, QueueDepth, TaskSettled, TaskStore, WaitingQueue } from "../../engine/ports/tasks.ts";
import { compareText } from "../text-order.ts";
import { askAll, askThoseThere } from "./asking.ts";
import type { Database } from "./database.ts";

const never = Number.POSITIVE_INFINITY;

export function tasksOf(databases: readonly Database[], placeOf: (shard: number) => number): TaskStore {
  const [first] = databases as [Database];
  let turn = 0;
  const inTurn = (): readonly Database[] => {
    turn = (turn + 1) % databases.length;
    return [...databases.slice(turn), ...databases.slice(0, turn)];
  };
  return {
    async claim(claim) {
      const claimed: ClaimedTask[] = [];
      let failure: unknown;
      let answers = 0;
      for (const database of inTurn()) {
        const places = claim.places.slice(claimed.length);
        if (places.length === 0) break;
        try {
          claimed.push(...(await database.ask((store) => store.tasks.claim({ ...claim, places }))));
          answers += 1;
        } catch (error) {
          if (!(error instanceof StoreUnavailableError)) throw error;
          failure = error;
        }
      }
      if (claimed.length === 0 && answers === 0 && failure !== undefined) throw failure;
      return claimed;
    },

    async renew(renewals) {
      const held = await askThoseThere(databases, (store) => store.tasks.renew(renewals));
      return new Set(held.flatMap((tokens) => [...tokens]));
    },

    async release(tokens) {
      return (await askThoseThere(databases, (store) => store.tasks.release(tokens))).flat();
    },

    async settle(settlements) {
      const settled: (TaskSettled | undefined)[] = settlements.map(() => undefined);
      let failure: unknown;
      const asked = databases.map(async (database) => {
        try {
          const answers = await database.ask((store) => store.tasks.settle(settlements));
          for (const [at, answer] of answers.entries()) if (answer.kind !== "refused") settled[at] = answer;
        } catch (error) {
          if (!(error instanceof StoreUnavailableError)) throw error;
          failure = error;
        }
      });
      await Promise.all(asked);
      // It may be known to the one that does not answer.
      if (failure !== undefined && settled.includes(undefined)) throw failure;
      return settled.map((answer) => answer ?? { kind: "refused" });
    },

    async sweep(shards, limit) {
      let overdue: Awaited<ReturnType<TaskStore["sweep"]>>["overdue"] = [];
      let nextIn: number | undefined;
      let waits = false;
      for (const database of inTurn()) {
        const own = shards.filter((shard) => placeOf(shard) === database.place);
        if (own.length === 0 || overdue.length >= limit) continue;
        const swept = await database.ask((store) => store.tasks.sweep(own, limit - overdue.length));
        overdue = [...overdue, ...swept.overdue];
        waits ||= swept.waits;
        if (swept.nextIn !== undefined) nextIn = Math.min(nextIn ?? swept.nextIn, swept.nextIn);
      }
      return { overdue, ...(nextIn !== undefined && { nextIn }), waits };
    },

    async depths() {
      const queues = new Map<string, QueueDepth>();
      for (const depth of (await askAll(databases, (store) => store.tasks.depths())).flat())
        queues.set(depth.queue, sumOf(queues.get(depth.queue), depth));
      return [...queues.values()];
    },

    async waiting(asked) {
      const queues = new Map<string, WaitingQueue>();
      for (const found of (await askAll(databases, (store) => store.tasks.waiting(asked))).flat()) {
        const known = queues.get(found.queue);
        // So it is the same one each time, where tasks come in the order in which they were asked for.
        if (known === undefined || (found.late?.waited ?? -1) > (known.late?.waited ?? -1)) queues.set(found.queue, found);
      }
      return [...queues.values()].sort((a, b) => compareText(a.queue, b.queue)).slice(0, asked.limit);
    },

    async ofRun(key) {
      return (await askThoseThere(databases, (store) => store.tasks.ofRun(key))).flat();
    },

    async expire(age) {
      await askAll(databases, (store) => store.tasks.expire(age));
    },

    saveWorkers: (workers) => first.ask((store) => store.tasks.saveWorkers(workers)),
    takers: () => first.ask((store) => store.tasks.takers()),
    listWorkers: (page) => first.ask((store) => store.tasks.listWorkers(page)),
  };
}

function sumOf(known: QueueDepth | undefined, { queue, waiting, leased, oldestAt }: QueueDepth): QueueDepth {
  const oldest = Math.min(known?.oldestAt ?? never, oldestAt ?? never);
  return {
    queue,
    waiting: waiting + (known?.waiting ?? 0),
    leased: leased + (known?.leased ?? 0),
    ...(oldest !== never && { oldestAt: oldest }),
  };
}
