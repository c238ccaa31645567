import assert from "node:assert/strict";
import { test } from "node:test";
import { activity, child, event, sleep, workflow } from "@wovyr/sdk";
import {
  assertCalled,
  assertEffects,
  assertHistory,
  assertNotCalled,
  checkEndOfCase,
  createTestEnvironment,
  fake,
  Gate,
  historyText,
  saveHistory,
  tcpProxy,
} from "@wovyr/testing";

const work = activity("work", async (n: number) => n);
const nap = workflow("nap", async function* () {
  yield* sleep("1 day");
});

test("options of an environment that cannot be are refused, with what to do", async () => {
  const wrong = (options: unknown, message: RegExp) =>
    assert.rejects(createTestEnvironment(options as never), (error: Error & { code?: string }) => {
      assert.ok(error.code === "INVALID_OPTION" || error.code === "INVALID_DURATION", String(error.stack));
      assert.match(error.message, message);
      return true;
    });
  await wrong(undefined, /takes options/);
  await wrong({}, /`workflows` of createTestEnvironment must be a list/);
  await wrong({ workflows: nap }, /must be a list of workflows/);
  await wrong({ workflows: [work] }, /the activity "work": activities are not registered/);
  await wrong({ workflows: [undefined] }, /item 0 of `workflows`/);
  await wrong({ workflows: [nap], evictAlway: true }, /no option "evictAlway"/);
  await wrong({ workflows: [nap], evictAlways: 1 }, /evictAlways/);
  await wrong({ workflows: [nap], autoSkip: "yes" }, /autoSkip/);
  await wrong({ workflows: [nap], limits: { foo: 1 } }, /no option "foo"/);
  await wrong({ workflows: [nap], limits: { activities: -1 } }, /activities must be a whole number of at least 1, not -1/);
  await wrong({ workflows: [nap], fakes: fake(work, []) }, /`fakes` must be a list/);
  await wrong({ workflows: [nap], fakes: [() => 1] }, /takes what `fake/);
  await wrong({ workflows: [nap], unfaked: "no" }, /"run" or "refuse", not "no"/);
  await wrong({ workflows: [nap], clock: "2025-01-01" }, /`clock` must be a valid Date/);
  await wrong({ workflows: [nap], clock: new Date(Number.NaN) }, /an invalid Date/);
  await wrong({ workflows: [nap], seed: Number.NaN }, /`seed` must be a whole number/);
  await wrong({ workflows: [nap], store: {} }, /`store` must be a store/);
  await wrong({ workflows: [nap], codec: {} }, /payload codec/);
  await wrong({ workflows: [nap], lease: "long" }, /lease/);
  await wrong({ workflows: [nap], patience: 0 }, /patience/);
  await wrong({ workflows: [nap], determinismGuard: "maybe" }, /determinismGuard/);
  await using env = await createTestEnvironment({ workflows: [nap] });
  await assert.rejects(env.restart({ workflow: [nap] } as never), /no option "workflow"/);
  await assert.rejects(env.restart({ workflows: [work] as never }), /the activity "work"/);
});

test("time goes where it can: forward, to a moment whose zone is told", async () => {
  await using env = await createTestEnvironment({ workflows: [nap] });
  await env.advanceTo("2026-02-01T00:00:00+01:00");
  assert.equal(env.now().toISOString(), "2026-01-31T23:00:00.000Z");
  await assert.rejects(env.advanceTo(new Date("2020-01-01")), { code: "INVALID_OPTION", message: /cannot go back/ });
  await assert.rejects(env.advanceTo("2026-03-01T00:00:00"), { code: "INVALID_OPTION", message: /zone/ });
  await assert.rejects(env.advanceTo("soon"), { code: "INVALID_OPTION" });
  await assert.rejects(env.advanceTo(undefined as never), { code: "INVALID_OPTION" });
  await assert.rejects(env.advance("soon" as never), { code: "INVALID_DURATION" });
  await assert.rejects(env.sleep(-1), { code: "INVALID_DURATION" });
});

test("fakes, gates and assertions refuse what they cannot take", async () => {
  const Go = event("go");
  const wrong = (make: () => unknown, message: RegExp) => assert.throws(make, { code: "INVALID_OPTION", message });
  wrong(() => fake("", async () => 1), /what is faked/);
  wrong(() => (fake as (...args: unknown[]) => unknown)(work, async (n: number) => n, { after: "1h" }), /takes no `after`/);
  wrong(() => fake(Go, () => {}, { afer: "1h" } as never), /no option "afer"/);
  wrong(() => fake(Go, [new Error("no") as never]), /an Error is none/);
  wrong(() => fake(fake(work, []) as never, []), /itself the fake of activity "work"/);
  wrong(() => new Gate(5 as never), /function/);
  wrong(() => assertCalled(work as never), /only fakes note their calls/);
  wrong(() => assertNotCalled(undefined as never), /takes what fake/);
  wrong(() => assertCalled(fake(work, []), 1, { time: 2 } as never), /no option "time"/);
  const promised = Promise.resolve([]) as never;
  wrong(() => assertHistory(promised, [{ type: "x" }]), /a promise \(is an `await` missing\?\)/);
  wrong(() => assertEffects([], "activity work" as never), /list of lines/);
  wrong(() => historyText(promised), /a promise/);
  wrong(() => historyText([], { time: false } as never), /no option "time"/);
  await assert.rejects(checkEndOfCase(undefined as never), { code: "INVALID_OPTION" });
  await assert.rejects(saveHistory("x.json", 5 as never), { code: "INVALID_OPTION" });
  await assert.rejects(saveHistory("x.json", promised), /a promise/);
  await assert.rejects(saveHistory("x.json", []), /no event/);
  await assert.rejects(tcpProxy(undefined as never), { code: "INVALID_OPTION" });
});

test("a run that waits for a child without code, or for other code, says so first", async () => {
  const part = workflow("part", async function* () {});
  const parent = workflow("parent", async function* () {
    yield* child(part);
  });
  const other = workflow("parent", async function* () {
    yield* work(1);
  });
  await using env = await createTestEnvironment({ workflows: [parent] });
  const run = await env.start(parent, undefined, { id: "p" });
  await assert.rejects(
    run.result(),
    /p will never end: .*child ".*", whose workflow "part" is not registered: add it to `workflows`, or fake it/,
  );
  await env.restart({ workflows: [other] });
  await env.evict();
  await assert.rejects(run.result(), {
    code: "HISTORY_DIVERGED",
    message: /^The code of workflow "parent" no longer matches .*\(p is parked/,
  });
});
