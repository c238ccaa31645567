import assert from "node:assert/strict";
import { test } from "node:test";
import { SeededRandom } from "@wovyr/testing";
import { newRunId, runIdAfter } from "../../src/engine/run-id.ts";

test("run ids sort by the time at which they were made, and a later run of a chain after the one before it", () => {
  const random = new SeededRandom(7);
  const now = Date.UTC(2026, 0, 1);
  assert.ok(newRunId(now, random) < newRunId(now + 1, random));
  let run = newRunId(now, random);
  for (let next = 0; next < 2_000; next++) {
    const after = runIdAfter(run, now, random);
    assert.ok(after > run && after.length === run.length && /^[0-9a-z]+$/.test(after), `${after} after ${run}`);
    run = after;
  }
  assert.equal(runIdAfter("260101000000zzzzzzzzz9", now, random), "260101000000zzzzzzzzza");
  assert.equal(runIdAfter("2601010000009zzzzzzzzz", Date.UTC(2025, 11, 31), random), "260101000000a000000000");
});
