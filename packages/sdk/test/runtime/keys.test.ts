/** Which wait takes what was sent, and what was published. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { all, awaitEvent, event, sleep, Type, workflow } from "@wovyr/sdk";
import { encodePayload, foldHistory, type Incoming } from "@wovyr/sdk/internal";
import { Drive, started } from "./drive.ts";

const Paid = event("paid", Type.Number());
const sent = (message: string, value: unknown): Incoming => ({
  type: "EventReceived",
  message,
  name: "paid",
  payload: encodePayload(value),
});
const published = (message: string, value: unknown, position: number, key?: string): Incoming => ({
  ...(sent(message, value) as Extract<Incoming, { type: "EventReceived" }>),
  position,
  ...(key !== undefined && { key }),
});
const fired = (effect: string, due: number) => ({ type: "TimerFired", effect, due }) as const;

const three = workflow("w", async function* () {
  return yield* all({
    a: awaitEvent(Paid, { key: "a" }),
    b: awaitEvent(Paid, { key: "b" }),
    none: awaitEvent(Paid),
  });
});

test("what is published goes to the wait with its very key, and without a key to one without", async () => {
  const drive = new Drive(three);
  await drive.turn(1, started());
  await drive.turn(2, published("p1", 1, 1), published("p2", 2, 2, "b"), published("p3", 3, 3, "c"), published("p4", 4, 4, "a"));
  assert.deepEqual(drive.execution.closed, { type: "InstanceCompleted", output: encodePayload({ a: 4, b: 2, none: 1 }) });
  assert.equal(await new Drive(three).replay(drive.turns), undefined);
});

test("what is sent goes to the first wait of its name, with a key or without", async () => {
  const drive = new Drive(three);
  await drive.turn(1, started());
  await drive.turn(2, sent("m1", 1), sent("m2", 2), sent("m3", 3));
  assert.deepEqual(drive.execution.closed, { type: "InstanceCompleted", output: encodePayload({ a: 1, b: 2, none: 3 }) });
});

test("what nothing took stays for a wait with its key, in the order of arrival; no handler gets it", async () => {
  const handled: number[] = [];
  const late = workflow("w", async function* (_: undefined, ctx) {
    yield* sleep(10);
    ctx.on(Paid, (value) => void handled.push(value));
    const taken = [yield* awaitEvent(Paid, { key: "a" }), yield* awaitEvent(Paid), yield* awaitEvent(Paid, { key: "a" })];
    yield* sleep(10);
    return taken;
  });
  const drive = new Drive(late);
  await drive.turn(1, started());
  await drive.turn(
    2,
    published("p1", 1, 1, "b"),
    published("p2", 2, 2, "a"),
    sent("m1", 3),
    published("p3", 4, 3),
    published("p4", 5, 4, "a"),
  );
  await drive.turn(11, fired("0", 11));
  assert.deepEqual(handled, [3]);
  await drive.turn(30, fired("4", 30));
  assert.deepEqual(drive.execution.closed, { type: "InstanceCompleted", output: encodePayload([2, 4, 5]) });
  assert.deepEqual([...foldHistory(drive.turns).unread.values()], [{ name: "paid", key: "b", at: 2 }]);
});

test("the key of a wait is a part of what a replay compares", async () => {
  const waiting = (key: string | undefined) =>
    workflow("w", async function* () {
      return yield* awaitEvent(Paid, { key });
    });
  const live = new Drive(waiting("a"));
  await live.turn(1, started());
  assert.equal(await new Drive(waiting("a")).replay(live.turns), undefined);
  const other = await new Drive(waiting("b")).replay(live.turns);
  assert.match(other?.message ?? "", /recorded wait for event "paid" with the key "a".*asks for wait for event "paid" with the key "b"/);
  assert.match((await new Drive(waiting(undefined)).replay(live.turns))?.message ?? "", /asks for wait for event "paid" as effect 0/);
});

test("a run goes on as a new one with what it was told and did not take, and with how far it was told", async () => {
  const going = workflow("w", async function* (_: undefined, ctx) {
    yield* sleep(10);
    yield* ctx.continueAsNew(undefined as never);
  });
  const drive = new Drive(going);
  await drive.turn(1, started());
  await drive.turn(2, published("p1", 1, 7, "a"), published("p2", 2, 9, "a"), published("p3", 3, 8, "b"), published("p4", 4, 10));
  const end = (await drive.turn(11, fired("0", 11))).at(-1);
  assert.equal(end?.type, "InstanceContinuedAsNew");
  assert.deepEqual(
    end.carried?.map(({ message, key, position }) => [message, key, position]),
    [
      ["p1", "a", 7],
      ["p2", "a", 9],
      ["p3", "b", 8],
      ["p4", undefined, 10],
    ],
  );
  const state = foldHistory(drive.turns);
  assert.deepEqual(
    [...state.publications],
    [
      { name: "paid", key: "a", position: 9, at: 2 },
      { name: "paid", key: "b", position: 8, at: 2 },
    ],
  );
  const next = new Drive(three);
  await next.turn(20, {
    ...(started() as Extract<Incoming, { type: "InstanceStarted" }>),
    carried: end.carried ?? [],
    publications: [...state.publications],
  });
  assert.deepEqual(next.execution.closed, { type: "InstanceCompleted", output: encodePayload({ a: 1, b: 3, none: 4 }) });
  const after = foldHistory(next.turns);
  assert.deepEqual([after.lastPosition("paid", "a"), after.lastPosition("paid", "b"), after.lastPosition("paid", "c")], [9, 8, 0]);
  assert.deepEqual(
    [...after.publications].map(({ at }) => at),
    [2, 2],
  );
});
