/**
 * Random programs on the engine and on the model.
 *
 * 1. After every turn, what a program has come to is what the model says.
 */
import { test } from "node:test";
import fc from "fast-check";
import { play } from "./case.ts";
import { program } from "./program.ts";
import { options, runs, seed } from "./seed.ts";
import { choice } from "./steps.ts";

test("whatever a program yields and in whatever order it is answered, every turn comes to what the language says", async (t) => {
  t.diagnostic(`seed ${seed}`);
  let [steps, turns] = [0, 0];
  await fc.assert(
    fc.asyncProperty(program, fc.array(choice, { maxLength: 30 }), async (tree, choices) => {
      const played = await play({ program: tree, choices, seed });
      steps += played.steps;
      turns += played.turns;
    }),
    options,
  );
  t.diagnostic(`${runs} programs, ${steps} steps, ${turns} turns`);
});
