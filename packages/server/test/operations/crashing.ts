/** Cases in which the engine crashes at each of its writes in turn, before and after the store has done it. */
import { memoryStore } from "@wovyr/server/internal";
import { createFaultyStore, FaultPlan, type TestEnvironment, type TestEnvironmentOptions } from "@wovyr/testing";
import { inCase } from "../engine/case.ts";

const writing = ["commit", "importRun", "post", "deleteRuns", "addDeadLetter", "dropDeadLetters"] as const;
const mostWrites = 100;

export type Crashing = {
  readonly env: TestEnvironment;
  /** Crashes count from here on. */
  begin(): void;
  /** Makes a call until it is answered, over a restart if there has to be one. */
  insist<T>(call: () => Promise<T>): Promise<T>;
};

/** Plays `body` with a crash at its first write, its second, and so on, until it makes no more; resolves with how many there were. */
export async function crashedAtEachWrite(options: TestEnvironmentOptions, body: (crashing: Crashing) => Promise<void>): Promise<number> {
  let crashes = 0;
  for (const at of ["before", "after"] as const)
    for (let write = 1; write <= mostWrites; write += 1) {
      const plan = new FaultPlan();
      const crashed = await inCase({ ...options, store: createFaultyStore(memoryStore(), plan) }, async (env) => {
        let counted = Number.NEGATIVE_INFINITY;
        for (const method of writing)
          plan.watch(
            method,
            () => {
              counted += 1;
              if (counted === write) env.crash();
            },
            at,
          );
        const insist = async <T>(call: () => Promise<T>): Promise<T> => {
          const done = env.insist(call);
          // A call that fails while the engine is down is told when it is awaited.
          done.catch(() => {});
          await env.settle();
          if (!env.running) await env.restart();
          return done;
        };
        const begin = () => {
          counted = 0;
        };
        await body({ env, begin, insist });
        return env.crashes > 0;
      });
      if (!crashed) break;
      crashes += 1;
    }
  return crashes;
}
