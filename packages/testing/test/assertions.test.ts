import assert, { AssertionError } from "node:assert/strict";
import { test } from "node:test";
import { activity, all, awaitEvent, child, event, sideEffect, sleep, timeout, workflow } from "@wovyr/sdk";
import type { HistoryEvent } from "@wovyr/sdk/client";
import {
  assertCalled,
  assertEffects,
  assertHistory,
  assertNotCalled,
  assertNothingOpen,
  type CalledFake,
  createTestEnvironment,
  effectsOf,
} from "@wovyr/testing";

const Paid = event("paid");
const reserve = activity("reserve", async (input: { id: string; count: number }) => `r-${input.id}`);
const ship = workflow("ship", async function* () {
  yield* sleep("1h");
});
const order = workflow("order", async function* (id: string) {
  const reserved = yield* reserve({ id, count: 2 });
  yield* sideEffect(() => 1);
  yield* all([awaitEvent(Paid, { timeout: "2 days" }), sleep("3 days"), child(ship)]);
  yield* timeout(sleep("5s"), "1 minute");
  yield* awaitEvent(Paid);
  return reserved;
});

async function play(until: "open" | "closed" | "terminated"): Promise<HistoryEvent[]> {
  await using env = await createTestEnvironment({ workflows: [order, ship] });
  const run = await env.start(order, "1");
  await env.settle();
  if (until === "terminated") {
    await run.terminate({ reason: "enough" });
    await env.settle();
  }
  if (until === "closed") {
    await run.send(Paid, undefined);
    await run.send(Paid, undefined);
    await run.result();
  }
  return env.history(run.id);
}

const closed = await play("closed");
const open = await play("open");

/** The error that a check throws. */
function thrown(check: () => void): AssertionError {
  try {
    check();
  } catch (error) {
    assert.ok(error instanceof AssertionError, String(error));
    return error;
  }
  throw new Error("nothing was thrown");
}

test("shapes are found in their order, others may lie between", () => {
  assertHistory(closed, [
    { type: "InstanceStarted", workflow: "order", input: "1" },
    { type: "ActivityScheduled", name: "reserve", input: { id: "1" } },
    (found) => found.data.output === "r-1",
    { type: /^Timer/, purpose: "timeout" },
    { type: "InstanceCompleted", output: /^r-/ },
  ]);
  assertHistory(closed, [{ name: "reserve", input: ({ count }: { count: number }) => count > 1, seq: 2 }]);
});

test("what is missing is named, with the place and a difference of one line", () => {
  const error = thrown(() =>
    assertHistory(closed, [{ type: "InstanceStarted" }, { type: "InstanceCompleted" }, { type: "ActivityScheduled", name: "reserve" }]),
  );
  assert.match(
    error.message,
    /^event 3 of 3, \{ type: "ActivityScheduled", name: "reserve" \}, is not after event \d+ \(< InstanceCompleted "r-1"\)/,
  );
  assert.match(error.message, /\+ actual - expected/);
  const [actual, expected] = [error.actual, error.expected] as [string[], string[]];
  assert.equal(expected.length, actual.length + 1);
  assert.ok(error.stack?.includes("assertions.test.ts"));
  assert.match(thrown(() => assertHistory([], [{ type: "X" }])).message, /is not in the history/);
});

test("exact shapes follow one another", () => {
  assertHistory(closed, [{ type: "InstanceStarted" }, { type: "ActivityScheduled" }, { type: "ActivityCompleted" }], { exact: true });
  assertHistory(closed, [{ type: "ActivityCompleted" }, { type: "SideEffectRecorded" }], { exact: true });
  const error = thrown(() => assertHistory(closed, [{ type: "InstanceStarted" }, { type: "ActivityCompleted" }], { exact: true }));
  assert.match(error.message, /^event 2 of 2 was to be \{ type: "ActivityCompleted" \}, and there is < ActivityScheduled \[0\] reserve/);
  assert.throws(() => assertHistory(closed, []), { code: "INVALID_OPTION" });
});

const lines = [
  "activity reserve",
  "side effect",
  "event paid (timeout 2d)",
  "sleep 3d",
  "child ship",
  "sleep 5s",
  "timeout 1m",
  "event paid",
];

test("effects are listed in the order in which they were asked for", () => {
  assert.deepEqual(effectsOf(closed), lines);
  assertEffects(closed, lines);
  const error = thrown(() => assertEffects(closed, lines.toSpliced(1, 1)));
  assert.match(error.message, /did not ask for these effects[\s\S]*\+ {3}'side effect'/);
  assert.deepEqual(error.actual, lines);
});

test("a run that left nothing open passes; else what is open is named", async () => {
  assertNothingOpen(closed);
  assertNothingOpen(await play("terminated"));
  const error = thrown(() => assertNothingOpen(open));
  assert.match(
    error.message,
    /the run is not closed: it is Waiting, with timer timeout \[2\.0!timeout\], timer sleep \[2\.1\], event paid \[2\.0\], child ship \[2\.2\] open/,
  );
  const last = open.length + 1;
  const cut = [...open, { seq: last, turn: last, type: "InstanceCompleted", at: new Date("2026-01-02T00:00:00Z"), data: { output: 1 } }];
  assert.match(thrown(() => assertNothingOpen(cut)).message, /^the run is closed \(Completed\), with timer timeout .* left open/);
});

const fake: CalledFake = {
  target: "activity reserve",
  calls: [
    { input: { id: "1", count: 2 }, attempt: 1 },
    { input: { id: "1", count: 2 }, attempt: 2 },
    { input: { id: "2", count: 1 }, attempt: 1 },
  ],
};
const idle: CalledFake = { target: "activity refund", calls: [] };

test("calls are asserted by shape and by number", () => {
  assertCalled(fake);
  assertCalled(fake, { id: "1" });
  assertCalled(fake, { id: "1" }, { times: 2 });
  assertCalled(fake, undefined, { times: 3 });
  assertCalled(fake, { id: "3" }, { times: 0 });
  assertNotCalled(idle);
  assertNotCalled(fake, { id: "3" });
});

test("calls that are not as expected are listed", () => {
  assert.equal(
    thrown(() => assertCalled(fake, { id: "3" })).message,
    'activity reserve was to be called with { id: "3" }; the 3 calls were\n  { id: "1", count: 2 }\n  { id: "1", count: 2 } (attempt 2)\n  { id: "2", count: 1 }',
  );
  const often = thrown(() => assertCalled(fake, { id: "2" }, { times: 2 }));
  assert.match(often.message, /^activity reserve was to be called 2 times with \{ id: "2" \}, and was so once; the 3 calls were/);
  assert.deepEqual([often.actual, often.expected], [1, 2]);
  assert.equal(thrown(() => assertCalled(idle)).message, "activity refund was to be called; there was no call");
  assert.match(thrown(() => assertNotCalled(fake)).message, /^activity reserve was not to be called; the 3 calls were/);
  assert.throws(() => assertCalled(fake, {}, { times: -1 }), { code: "INVALID_OPTION" });
  const many = { target: "x", calls: Array.from({ length: 30 }, (_, input) => ({ input, attempt: 1 })) };
  assert.match(thrown(() => assertCalled(many, "y")).message, /and 10 more$/);
});
