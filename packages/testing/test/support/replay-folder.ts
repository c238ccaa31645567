/** Checks the histories of a folder in a process of its own, whose heap is bounded from outside. */
import { step, workflow } from "@wovyr/sdk";
import { replay } from "@wovyr/testing";

export const long = workflow("long", async function* () {
  for (let round = 0; round < 200; round++) yield* step("round", async () => "x".repeat(200));
});

const [, file, folder] = process.argv;
if (file === import.meta.filename && folder !== undefined) console.log((await replay(long, folder)).text);
