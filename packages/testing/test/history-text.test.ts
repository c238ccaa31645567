import assert from "node:assert/strict";
import { test } from "node:test";
import { activity, all, awaitEvent, child, event, NonRetryableError, race, sideEffect, sleep, Type, timeout, workflow } from "@wovyr/sdk";
import type { HistoryEvent } from "@wovyr/sdk/client";
import { createTestEnvironment, historyText } from "@wovyr/testing";

const Paid = event("paid", Type.Object({ amount: Type.Number() }));
const reserve = activity(
  "reserve",
  { retry: { maxAttempts: 2, initialDelay: "5s", jitter: "none" } },
  async (input: { id: string }, ctx) => {
    if (ctx.attempt === 1) throw new RangeError("no room");
    return `r-${input.id}`;
  },
);
const note = activity("note", async (_input: unknown) => {});
const final = activity("final", async () => {
  throw new NonRetryableError("never");
});
const ship = workflow("ship", async function* (address: string) {
  yield* sleep("90m");
  return address;
});
const order = workflow("order", { variables: () => ({ seen: new Set<string>() }) }, async function* (input: { id: string; on: Date }, ctx) {
  ctx.variables.seen.add("start");
  const reservation = yield* reserve({ id: input.id });
  yield* sideEffect(() => 42);
  const token = ctx.uuid();
  yield* note({ token, at: ctx.now(), ms: ctx.now().getTime(), iso: ctx.now().toISOString(), on: input.on, run: ctx.runId });
  const [paid] = yield* all([awaitEvent(Paid, { timeout: "2 days" }), child(ship, "Main St"), sleep("3d2h")]);
  yield* race({ fast: timeout(sleep("1 hour"), "1 day"), slow: awaitEvent(Paid) });
  yield* note({ big: 12345678901234567890n, map: new Map([["a", 1]]), set: new Set([1]), nothing: undefined, token });
  yield* note("x".repeat(1_000));
  try {
    yield* final();
  } catch {}
  return { reservation, amount: paid.amount };
});

async function played(clock: string, seed: number): Promise<HistoryEvent[]> {
  await using env = await createTestEnvironment({ workflows: [order, ship], clock: new Date(clock), seed });
  const run = await env.start(order, { id: "1", on: new Date("2030-05-05T00:00:00Z") });
  await env.advance("1 hour");
  await run.send(Paid, { amount: 5 });
  await run.result();
  return env.history(run.id);
}

const expected = `
+0         > InstanceStarted order@1 { id: "1", on: Date(2030-05-05T00:00:00.000Z) } as run-1
           < ActivityScheduled [0] reserve { id: "1" }
           < VariablesChanged { seen: Set { "start" } }
+0         > ActivityFailed [0] attempt 1 RangeError "no room" retry in 5s
+5s        > AttemptStarted [0] attempt 2
+5s        > ActivityCompleted [0] attempt 2 "r-1"
           < SideEffectRecorded [1] 42
           < ActivityScheduled [2] note { token: "uuid-1", at: Date(+5s), ms: time(+5s), iso: "+5s", on: Date(2030-05-05T00:00:00.000Z), run: "run-1" }
+5s        > ActivityCompleted [2] undefined
           < EventAwaited [3.0] paid
           < TimerStarted [3.0!timeout] timeout 2d
           < ChildStarted [3.1] ship@1 "Main St" as run-2 onParentClose terminate
           < TimerStarted [3.2] sleep 3d 2h
+1h        > EventReceived paid { amount: 5 } (message-1)
           < EventConsumed [3.0] (message-1)
           < EffectCancelled [3.0!timeout]
+1h 30m 5s > ChildCompleted [3.1] "Main St"
+3d 2h 5s  > TimerFired [3.2]
           < TimerStarted [4.0.0] sleep 1h
           < TimerStarted [4.0!timeout] timeout 1d
           < EventAwaited [4.1] paid
+3d 3h 5s  > TimerFired [4.0.0]
           < EffectCancelled [4.0!timeout]
           < EffectCancelled [4.1]
           < ActivityScheduled [5] note { big: 12345678901234567890n, map: Map { "a" => 1 }, set: Set { 1 }, nothing: undefined, token: "uuid-1" }
+3d 3h 5s  > ActivityCompleted [5] undefined
           < ActivityScheduled [6] note "${"x".repeat(199)}… (1002 characters)
+3d 3h 5s  > ActivityCompleted [6] undefined
           < ActivityScheduled [7] final undefined
+3d 3h 5s  > ActivityFailed [7] attempt 1 NonRetryableError "never" (NON_RETRYABLE) (no retry: permanent)
           < InstanceCompleted { reservation: "r-1", amount: 5 }`;

test("a history is text that shows turns, effects, values and times from the start on", async () => {
  assert.equal(`\n${historyText(await played("2026-01-01T00:00:00Z", 1))}`, expected);
});

test("the text is the same whenever the workflow runs, whatever ids it gets", async () => {
  const first = await played("2026-01-01T00:00:00Z", 1);
  const later = await played("2027-03-04T05:06:07.089Z", 2);
  assert.notDeepEqual(first, later);
  assert.equal(historyText(later), historyText(first));
});

test("without times nothing is left that differs in real time", async () => {
  const text = historyText(await played("2026-01-01T00:00:00Z", 1), { times: false });
  assert.match(text, /^- > InstanceStarted order@1/);
  assert.match(text, /\n {2}< ActivityScheduled \[0\] reserve/);
  assert.match(text, /"no room" retry\n/);
});

const at = new Date("2026-01-01T00:00:00Z");
const one = (type: string, data: Record<string, unknown>): string => historyText([{ seq: 1, turn: 1, type, at, data }]);

test("whatever a payload is, it is one line", () => {
  type Ring = { name: string; self?: Ring };
  const ring: Ring = { name: "a\nb" };
  ring.self = ring;
  const line = one("InstanceCompleted", {
    output: [
      ring,
      -0,
      Number.NaN,
      null,
      new Error("no", { cause: 1 }),
      /a/g,
      Uint8Array.of(1),
      new URL("http://a/b"),
      {},
      [],
      new Map(),
      new Set(),
      { "a b": new Date(Number.NaN) },
    ],
  });
  assert.equal(
    line,
    '+0 < InstanceCompleted [{ name: "a\\nb", self: [circular] }, -0, NaN, null, Error("no") { cause: 1 }, /a/g, Uint8Array [1], URL(http://a/b), {}, [], Map {}, Set {}, { "a b": Date(invalid) }]',
  );
});

test("a payload that refers to itself in many ways is bounded in work and in length", () => {
  let value: unknown = "leaf";
  for (let depth = 0; depth < 60; depth++) value = { a: value, b: value };
  const line = one("InstanceCompleted", { output: value });
  assert.ok(line.length < 300, String(line.length));
  assert.match(line, /more than \d+ characters/);
});

test("directories of source lines and stacks are left out of failures", () => {
  const failure = {
    name: "DeterminismError",
    message: "asks for x at file:///home/me/app/order.ts:12:3 now",
    stack: "at /secret",
    cause: { name: "Error", message: "deep" },
  };
  assert.equal(one("Parked", { failure }), '+0 > Parked DeterminismError "asks for x at order.ts:12:3 now" because of Error "deep"');
  assert.equal(
    one("InstanceFailed", { failure: { name: "Error", message: "x", thrown: { a: 1 } } }),
    "+0 < InstanceFailed thrown { a: 1 }",
  );
});

test("events and fields of later versions are shown by their names", () => {
  assert.equal(one("QueryAnswered", { effect: "3", digest: "d", name: "who", more: 1 }), '+0 > QueryAnswered [3] name "who" more 1');
  assert.equal(one("TimerFired", { effect: "3", due: at, late: true }), "+0 > TimerFired [3] late true");
});

test("a history that came as plain JSON reads alike", async () => {
  const events = (await played("2026-01-01T00:00:00Z", 1)).slice(0, 4);
  assert.deepEqual(
    historyText(JSON.parse(JSON.stringify(events)))
      .split("\n")
      .slice(1, 2),
    historyText(events).split("\n").slice(1, 2),
  );
  assert.equal(historyText([]), "");
});
