import assert from "node:assert/strict";
import { test } from "node:test";
import { VirtualClock } from "@wovyr/testing";
import { Deadlines } from "../../src/engine/deadlines.ts";

test("a call that has no answer is late at its second, one that has is not, and no timer outlives the last", async () => {
  const clock = new VirtualClock(0);
  const deadlines = new Deadlines(clock, (most) => new Error(`late after ${most}`));
  const never = new Promise<never>(() => {});
  let answer: (value: string) => void = () => {};
  const late = deadlines.within(2_500, never);
  const answered = deadlines.within(
    60_000,
    new Promise<string>((resolve) => {
      answer = resolve;
    }),
  );
  assert.equal(clock.next, 1_000);
  clock.advance(2_000);
  await assert.rejects(late, /late after 2500/);
  assert.equal(clock.next, 3_000, "the other one waits");
  answer("there");
  assert.equal(await answered, "there");
  assert.equal(clock.next, undefined, "a process that waits for nothing more can end");

  await assert.rejects(deadlines.within(1_000, Promise.reject(new Error("no"))), /no/);
  assert.equal(clock.next, undefined);
  const again = deadlines.within(3_000, never);
  clock.advance(3_000);
  await assert.rejects(again, /late after 3000/);
  assert.equal(clock.next, undefined);
});
