import assert from "node:assert/strict";
import { test } from "node:test";
import { WovyrError } from "@wovyr/sdk";
import { Waiters } from "../../src/engine/waiters.ts";

test("those who wait are counted once, however they end", () => {
  const waiters = new Waiters<number>(3);
  const told: number[] = [];
  const wait = (run: string) => {
    const forget: () => void = waiters.add(run, {
      tell: (value) => {
        told.push(value);
        forget();
      },
      giveUp: () => forget(),
    });
    return forget;
  };
  wait("a");
  wait("a");
  const given = wait("b");
  assert.throws(() => wait("c"), { code: "OVERLOADED" });
  waiters.tell("a", 1);
  assert.deepEqual([waiters.count, told], [1, [1, 1]]);
  given();
  given();
  assert.equal(waiters.count, 0);
  wait("a");
  waiters.giveUp(new WovyrError("over", { code: "SHUTTING_DOWN" }));
  assert.equal(waiters.count, 0);
  for (const run of ["a", "b", "c"]) wait(run);
  assert.throws(() => wait("d"), { code: "OVERLOADED" });
});
