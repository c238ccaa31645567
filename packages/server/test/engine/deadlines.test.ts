import assert from "node:assert/strict";
import { test } from "node:test";
import { Deadlines } from "../../src/engine/deadlines.ts";
import type { Clock } from "../../src/engine/ports/clock.ts";

function handClock(): Clock & { readonly timers: number; advance(by: number): void } {
  let now = 0;
  const timers = new Set<{ readonly at: number; readonly wake: () => void }>();
  return {
    now: () => now,
    wakeAt(at, wake) {
      const timer = { at, wake };
      timers.add(timer);
      return () => timers.delete(timer);
    },
    get timers() {
      return timers.size;
    },
    advance(by) {
      const end = now + by;
      for (;;) {
        const next = [...timers].filter(({ at }) => at <= end).sort((a, b) => a.at - b.at)[0];
        if (next === undefined) break;
        timers.delete(next);
        now = next.at;
        next.wake();
      }
      now = end;
    },
  };
}

test("a call that has no answer is late at its second, one that has is not, and no timer outlives the last", async () => {
  const clock = handClock();
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
  clock.advance(1_999);
  assert.equal(clock.timers, 1);
  clock.advance(1);
  await assert.rejects(late, /late after 2500/);
  assert.equal(clock.timers, 1, "the other one waits");
  answer("there");
  assert.equal(await answered, "there");
  assert.equal(clock.timers, 0, "a process that waits for nothing more can end");

  await assert.rejects(deadlines.within(1_000, Promise.reject(new Error("no"))), /no/);
  assert.equal(clock.timers, 0);
  const again = deadlines.within(3_000, never);
  clock.advance(3_000);
  await assert.rejects(again, /late after 3000/);
  assert.equal(clock.timers, 0);
});
