import assert from "node:assert/strict";
import { test } from "node:test";
import type { Attempt } from "../../src/engine/attempt.ts";
import { Suspects } from "../../src/engine/suspects.ts";

const attempt = (run: string, losses: number) => ({ run, effect: "0", activity: { losses } }) as unknown as Attempt;
const anyOne = () => true;

function stage() {
  const time = { now: 0 };
  const suspects = new Suspects({ now: () => time.now, wakeAt: () => () => {} }, () => {});
  const at = (now: number) => {
    time.now = now;
  };
  return { suspects, at, take: () => suspects.take(anyOne)?.run };
}

test("invariant 5: one that becomes suspect while another runs alone waits for its end, however long it has waited", () => {
  const { suspects, at, take } = stage();
  suspects.recovered();
  suspects.add(attempt("a", 3));
  at(1_000);
  assert.equal(take(), "a");
  suspects.add(attempt("b", 3));
  at(9_000);
  assert.equal(take(), undefined);
  suspects.ended("b/0");
  assert.equal(take(), undefined);
  suspects.ended("a/0");
  assert.equal(take(), "b");
});

test("invariant 5: none has its turn before a recovery has found all, and those that were lost least come first", () => {
  const { suspects, at, take } = stage();
  suspects.add(attempt("a", 4));
  at(9_000);
  assert.equal(take(), undefined);
  suspects.add(attempt("b", 3));
  at(10_000);
  suspects.recovered();
  assert.equal(take(), "b");
  suspects.ended("b/0");
  assert.equal(take(), "a");
});
