/** What orchestrators and workers in processes of their own agree on. */
import { appendFileSync } from "node:fs";
import { setTimeout as pause } from "node:timers/promises";
import { activity, map, Type, workflow } from "@wovyr/sdk";

export type Job = { readonly n: number; readonly milliseconds: number };

export const queue = "work";

/** Says where it ran. */
export const work = activity.contract("work", {
  queue,
  input: Type.Object({ n: Type.Number(), milliseconds: Type.Number() }),
  output: Type.Object({ n: Type.Number(), worker: Type.String() }),
});

export const single = workflow("single", async function* (job: Job) {
  return yield* work(job);
});

export const many = workflow("many", async function* (count: number) {
  const outcomes = yield* map([...Array(count).keys()], (n) => work({ n, milliseconds: 0 }), { concurrency: 1_000 });
  return outcomes.map(({ n }) => n);
});

/** Records in a file that it began and that it ended. */
export const recorded = (file: string, worker: string) =>
  work.implement(async ({ n, milliseconds }, { signal, attempt }) => {
    appendFileSync(file, `began ${n} ${attempt} ${worker}\n`);
    if (milliseconds > 0) await pause(milliseconds, undefined, { signal });
    appendFileSync(file, `ended ${n} ${attempt} ${worker}\n`);
    return { n, worker };
  });
