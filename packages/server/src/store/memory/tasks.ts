import type { TaskStore } from "../../engine/ports/tasks.ts";
import { checkTask, checkWorker } from "../storable-task.ts";
import type { Tables } from "./tables.ts";

/** Task queues over the tables of a memory store; `open` throws when it is closed. */
export function memoryTasks(open: () => Tables, now: () => number): TaskStore {
  return {
    claim: async (claim) => open().tasks.claim(claim, now()),
    renew: async (renewals) => {
      const { tasks } = open();
      for (const { details } of renewals) checkTask({ details });
      return tasks.renew(renewals, now());
    },
    release: async (tokens) => open().tasks.release(tokens, now()),
    settle: async (settlements) => {
      const tables = open();
      for (const { digest, fact } of settlements) checkTask({ digest, fact });
      return tables.tasks.settle(settlements, now()).map(({ settled, message }) => {
        if (message !== undefined && tables.isOpen(message)) tables.deliver(message);
        return settled;
      });
    },
    sweep: async (shards, limit) => open().tasks.sweep(shards, limit, now()),
    depths: async () => open().tasks.depths(),
    waiting: async (asked) => open().tasks.waiting(asked, now()),
    ofRun: async (key) => open().tasks.ofRun(key),
    expire: async (age) => open().tasks.expire(now() - age),
    saveWorkers: async (workers) => {
      const { tasks } = open();
      for (const worker of workers) checkWorker(worker);
      tasks.saveWorkers(workers, now());
    },
    takers: async () => open().tasks.takers(now()),
    listWorkers: async (page) => open().tasks.listWorkers(page, now()),
  };
}
