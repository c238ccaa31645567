import assert from "node:assert/strict";
import { test } from "node:test";
import { activity, all, awaitEvent, event, race, sleep, Type, workflow } from "@wovyr/sdk";
import { encodePayload, type HistoryFact } from "@wovyr/sdk/internal";
import { Drive, started } from "./drive.ts";

const work = activity("work", async (n: number) => n);
const ping = event("ping", Type.Number());
const fired = (effect: string, due: number) => ({ type: "TimerFired", effect, due }) as const;
const done = (effect: string, output: unknown) =>
  ({ type: "ActivityCompleted", effect, attempt: 1, output: encodePayload(output) }) as const;

test("facts in, commands out: a turn holds what came in and everything that it caused, in order", async () => {
  const drive = new Drive(
    workflow("w", async function* (n: number) {
      const [value] = yield* all([work(n), sleep(5)]);
      return value;
    }),
  );
  const first = await drive.turn(100, started(7));
  assert.deepEqual(
    first.map((fact) => ("effect" in fact ? `${fact.type} ${fact.effect}` : fact.type)),
    ["InstanceStarted", "ActivityScheduled 0.0", "TimerStarted 0.1"],
  );
  assert.deepEqual((await drive.turn(105, fired("0.1", 105))).length, 1);
  assert.deepEqual((await drive.turn(106, done("0.0", 7))).at(-1), { type: "InstanceCompleted", output: encodePayload(7) });
});

test("H007 facts of one turn resolve in their order, whatever the order of the branches", async () => {
  for (const [order, winner] of [
    [["0.0", "0.1"], 0],
    [["0.1", "0.0"], 1],
  ] as const) {
    const drive = new Drive(
      workflow("w", async function* () {
        return (yield* race([work(1), work(2)])).winner;
      }),
    );
    await drive.turn(1, started());
    const end = await drive.turn(2, ...order.map((effect) => done(effect, effect)));
    assert.deepEqual(end.at(-2), { type: "InstanceCompleted", output: encodePayload(winner) });
  }
});

test("time within a turn stands still, and is the turn's", async () => {
  const drive = new Drive(
    workflow("w", async function* (_: undefined, ctx) {
      const seen = [ctx.now().getTime()];
      yield* sleep(50);
      seen.push(ctx.now().getTime());
      return seen;
    }),
  );
  const [, timer] = await drive.turn(1_000, started());
  const { line, ...fact } = timer as Extract<HistoryFact, { type: "TimerStarted" }>;
  assert.deepEqual(fact, { type: "TimerStarted", effect: "0", purpose: "sleep", due: 1_050 });
  assert.match(line ?? "", /^execution\.test\.ts:\d+$/);
  assert.deepEqual((await drive.turn(9_000, fired("0", 1_050))).at(-1), {
    type: "InstanceCompleted",
    output: encodePayload([1_000, 9_000]),
  });
});

test("a replay asks for exactly what is recorded, and a dropped execution runs no clean-up", async () => {
  let cleaned = 0;
  const program = workflow("w", async function* (_: undefined, ctx) {
    try {
      yield* work(ctx.random());
      return yield* awaitEvent(ping);
    } finally {
      cleaned += 1;
    }
  });
  const live = new Drive(program);
  await live.turn(1, started());
  await live.turn(2, done("0", 1));
  const again = new Drive(program);
  assert.equal(await again.replay(live.turns), undefined);
  assert.equal(cleaned, 0);
  await again.turn(3, { type: "EventReceived", message: "m", name: "ping", payload: encodePayload(5) });
  assert.deepEqual([again.execution.closed?.type, live.execution.closed, cleaned], ["InstanceCompleted", undefined, 1]);
});

test("H043 a step that has not ended when the microtasks have drained breaks the execution, and is never entered again", async () => {
  const drive = new Drive(
    workflow("w", async function* () {
      yield* sleep(1);
      await new Promise((resolve) => setImmediate(resolve));
      yield* sleep(1);
    }),
  );
  await drive.turn(1, started());
  await drive.turn(2, fired("0", 2));
  assert.match(drive.execution.broken?.message ?? "", /awaited something that is no effect.*execution\.test\.ts/);
  await new Promise((resolve) => setImmediate(resolve));
  assert.equal(drive.execution.takeFacts().length, 0);
});
