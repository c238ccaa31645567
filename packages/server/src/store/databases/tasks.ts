/**
 * Task queues over several databases: a task lies with its run.
 *
 * 1. Claims go to one database after the other, each time beginning with the next, until there is enough; those that do not answer are passed over. So
 *    priorities, and turns of tenants, hold within each database.
 * 2. A token tells nothing of its database: all are asked. What none knows is refused only when all have said so.
 * 3. Workers are known to the first database.
 */

import { StoreUnavailableError } from "../../engine/ports/store.ts";
import type { ClaimedTask, TaskSettled, TaskStore } from "../../engine/ports/tasks.ts";
import { askAll, askThoseThere } from "./asking.ts";
import type { Database } from "./database.ts";

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
      for (const database of inTurn()) {
        const own = shards.filter((shard) => placeOf(shard) === database.place);
        if (own.length === 0 || overdue.length >= limit) continue;
        const swept = await database.ask((store) => store.tasks.sweep(own, limit - overdue.length));
        overdue = [...overdue, ...swept.overdue];
        if (swept.nextIn !== undefined) nextIn = Math.min(nextIn ?? swept.nextIn, swept.nextIn);
      }
      return { overdue, ...(nextIn !== undefined && { nextIn }) };
    },

    async depths() {
      const queues = new Map<string, { queue: string; waiting: number; leased: number }>();
      for (const { queue, waiting, leased } of (await askAll(databases, (store) => store.tasks.depths())).flat()) {
        const known = queues.get(queue);
        queues.set(queue, { queue, waiting: waiting + (known?.waiting ?? 0), leased: leased + (known?.leased ?? 0) });
      }
      return [...queues.values()];
    },

    async ofRun(key) {
      return (await askThoseThere(databases, (store) => store.tasks.ofRun(key))).flat();
    },

    async expire(age) {
      await askAll(databases, (store) => store.tasks.expire(age));
    },

    saveWorkers: (workers) => first.ask((store) => store.tasks.saveWorkers(workers)),
    listWorkers: (page) => first.ask((store) => store.tasks.listWorkers(page)),
  };
}
