import assert from "node:assert/strict";
import { test } from "node:test";
import { activity, awaitEvent, type Duration, event, sleep, sleepUntil, timeout, workflow } from "@wovyr/sdk";
import { systemClock } from "@wovyr/server/internal";
import { ExecutionRecord } from "@wovyr/testing";
import { inCase, inEachCache } from "./case.ts";

const day = 86_400_000;

test("H001 a long sleep ends at its time and not before, whatever the host timer can hold", async () => {
  for (const delay of [40 * day, 2 ** 31 - 1, 2 ** 31, 2 ** 31 + 1]) {
    const record = new ExecutionRecord();
    const note = activity("note", async (key: string) => record.note(key));
    const byDelay = workflow("byDelay", async function* (ms: number) {
      yield* sleep(ms);
      yield* note("delay");
    });
    const byDate = workflow("byDate", async function* (at: Date) {
      yield* sleepUntil(at);
      yield* note("date");
    });
    await inEachCache({ workflows: [byDelay, byDate], end: { everyAttemptExecuted: true } }, async (env) => {
      const before = record.total;
      await env.start(byDelay, delay);
      await env.start(byDate, new Date(env.now().getTime() + delay));
      await env.advance(day);
      assert.equal(record.total, before);
      await env.advance(delay - day - 1);
      assert.equal(record.total, before);
      await env.advance(1);
      assert.equal(record.total, before + 2);
    });
  }
});

test("H001 the system clock never arms a host timer that would overflow", (t) => {
  const delays: number[] = [];
  t.mock.method(globalThis, "setTimeout", (_run: () => void, delay: number) => {
    delays.push(delay);
    return undefined;
  });
  for (const delay of [40 * day, 2 ** 31 - 1, 2 ** 31, 2 ** 31 + 1, Number.MAX_SAFE_INTEGER])
    systemClock.wakeAt(Date.now() + delay, () => {});
  assert.equal(delays.length, 5);
  assert.ok(delays.every((delay) => delay > 0 && delay <= 2 ** 31 - 1));
});

const never = event("never");
const invalid: readonly unknown[] = [Number.NaN, Number.POSITIVE_INFINITY, -1, "abc", new Date(Number.NaN), {}, [], null];

test("H002 durations that are none are refused at the line that names them, and cost no event", async () => {
  const work = activity("work", async () => "done");
  const table: Record<string, (bad: unknown) => unknown> = {
    sleep: (bad) => sleep(bad as Duration),
    sleepUntil: (bad) => sleepUntil((typeof bad === "object" ? bad : "abc") as Date),
    awaitEvent: (bad) => awaitEvent(never, { timeout: bad as Duration }),
    timeout: (bad) => timeout(sleep("1s"), bad as Duration),
    retry: (bad) => work(undefined as never).with({ retry: { initialDelay: bad as Duration } }),
    activityTimeout: (bad) => work(undefined as never).with({ timeout: { startToClose: bad as Duration } }),
  };
  const caught = workflow("caught", async function* () {
    const codes: string[] = [];
    for (const make of Object.values(table))
      for (const bad of invalid) {
        try {
          yield make(bad);
          codes.push("accepted");
        } catch (error) {
          codes.push((error as { code: string }).code);
        }
      }
    return codes;
  });
  await inEachCache({ workflows: [caught] }, async (env) => {
    const run = await env.start(caught);
    const codes = await run.result();
    assert.deepEqual([...new Set(codes)], ["INVALID_DURATION"]);
    const [turn, ...others] = await env.turns(run.id);
    assert.equal(others.length, 0);
    assert.deepEqual(
      turn?.events.map((fact) => fact.type),
      ["InstanceStarted", "InstanceCompleted"],
    );
  });
});

test("H003 an activity timeout beyond what time can hold is refused, and a very long one is kept", async () => {
  const work = activity("work", async () => "done");
  for (const bad of [Number.MAX_SAFE_INTEGER, 1e21]) {
    assert.throws(() => work(undefined as never).with({ timeout: { startToClose: bad } }), { code: "INVALID_DURATION" });
    assert.throws(() => sleep(bad), { code: "INVALID_DURATION" });
  }
  const patient = workflow("patient", async function* () {
    return yield* work(undefined as never).with({ timeout: { startToClose: 100 * 365 * day } });
  });
  await inCase({ workflows: [patient] }, async (env) => assert.equal(await env.execute(patient), "done"));
});

for (const [variant, away] of [
  ["after the due time", "15s"],
  ["after a week", "7 days"],
] as const)
  test(`H004 a sleep that fell due while nothing ran goes on at the restart, ${variant}, once`, async () => {
    const record = new ExecutionRecord();
    const note = activity("note", async () => record.note("woken"));
    const napper = workflow("napper", async function* (_: undefined, ctx) {
      const began = ctx.now().getTime();
      yield* sleep("5s");
      const slept = ctx.now().getTime() - began;
      yield* note(undefined as never);
      return slept;
    });
    await inCase({ workflows: [napper] }, async (env) => {
      env.autoSkip = false;
      const run = await env.start(napper);
      await env.advance("1s");
      await env.stop();
      await env.advance(away);
      await env.restart();
      await env.settle();
      assert.equal(record.count("woken"), 1);
      assert.ok((await run.result()) >= 5_000);
      const fired = (await env.turns(run.id)).flatMap((turn) => turn.events).filter((fact) => fact.type === "TimerFired");
      assert.deepEqual(fired, [{ type: "TimerFired", effect: "0", due: Date.parse("2026-01-01T00:00:05Z") }]);
    });
  });
