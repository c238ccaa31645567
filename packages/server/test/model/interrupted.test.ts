/**
 * Random programs on an engine that is evicted, crashed and let down by its store.
 *
 * 1. After every recovery, what a program has come to is what the model says, and nothing is lost or done twice.
 */
import { test } from "node:test";
import fc from "fast-check";
import { play } from "./case.ts";
import { interruption } from "./interruptions.ts";
import { program } from "./program.ts";
import { options, runs, seed } from "./seed.ts";
import { choice } from "./steps.ts";

const interruptions = fc.record({ evictAlways: fc.boolean(), each: fc.array(interruption, { maxLength: 12 }) });

test("whatever interrupts a program, every turn comes to what the language says, and nothing is lost", async (t) => {
  t.diagnostic(`seed ${seed}`);
  let [steps, turns, interrupted] = [0, 0, 0];
  await fc.assert(
    fc.asyncProperty(program, fc.array(choice, { maxLength: 30 }), interruptions, async (tree, choices, each) => {
      const played = await play({ program: tree, choices, seed }, each);
      steps += played.steps;
      turns += played.turns;
      interrupted += played.interruptions;
    }),
    options,
  );
  t.diagnostic(`${runs} programs, ${steps} steps, ${turns} turns, ${interrupted} interruptions`);
});
