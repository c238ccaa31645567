import assert from "node:assert/strict";
import { test } from "node:test";
import { awaitEvent, event, Type, workflow } from "@wovyr/sdk";
import { checkEndOfCase, createTestEnvironment, SeededRandom } from "@wovyr/testing";
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
  const least = { bytes: (length: number) => new Uint8Array(length), fraction: () => 0 };
  assert.equal(runIdAfter("260101000000zzzzzzzzz9", now, least), "260101000000zzzzzzzzza");
  assert.equal(runIdAfter("2601010000009zzzzzzzzz", Date.UTC(2025, 11, 31), least), "260101000000a000000000");
  assert.equal(runIdAfter("26010100000zzzzzzzzzzz", Date.UTC(2025, 11, 31), least), "2601010000100000000000");
});

test("ids that are made after one and the same run are different ones, whoever makes them and whatever the clock says", () => {
  const made = new Set<string>();
  const [one, other] = [new SeededRandom(1), new SeededRandom(2)];
  for (const now of [Date.UTC(2026, 0, 1), Date.UTC(2025, 0, 1)])
    for (let time = 0; time < 500; time++) for (const random of [one, other]) made.add(runIdAfter("260101000000zzzzzzz000", now, random));
  assert.equal(made.size, 2_000);
});

test("a run that is reset after a restart at the same moment gets a name that no other run has, whatever the seed", async () => {
  const Item = event("item", Type.Number());
  const waiting = workflow("waiting", async function* (left: number, ctx) {
    yield* awaitEvent(Item);
    return left === 0 ? "end" : yield* ctx.continueAsNew(left - 1);
  });
  for (let seed = 1; seed <= 20; seed++) {
    await using env = await createTestEnvironment({ workflows: [waiting], seed });
    const run = await env.start(waiting, 1, { id: "w" });
    for (let time = 0; time < 4; time++) {
      await env.settle();
      await env.handle(waiting, "w").fork({ at: "first", id: `fork-${time}` });
      await env.restart();
      await env.handle(waiting, "w").reset({ to: "last" });
    }
    await run.send(Item, 1);
    await env.restart();
    await env.handle(waiting, "w").send(Item, 2);
    assert.equal(await env.handle(waiting, "w").result(), "end", `seed ${seed}`);
    const runs: string[] = [];
    for await (const { runId } of env.handle(waiting, "w").runs()) runs.push(runId);
    assert.equal(new Set(runs).size, 6);
    assert.deepEqual(runs, [...runs].sort().reverse());
    await checkEndOfCase(env);
  }
});
