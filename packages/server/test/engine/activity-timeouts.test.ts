import assert from "node:assert/strict";
import { test } from "node:test";
import { ActivityError, type ActivityTimeouts, activity, all, type RetryPolicy, settled, sleep, TimeoutError, workflow } from "@wovyr/sdk";
import type { HistoryFact, Turn } from "@wovyr/sdk/internal";
import { Gate } from "@wovyr/testing";
import { inCase, inEachCache } from "./case.ts";

const once: RetryPolicy = { maxAttempts: 1 };
const facts = (turns: readonly Turn[]): HistoryFact[] => turns.flatMap(({ events }) => [...events]);

/** What an activity failed with: which limit passed, how long it was, and after how many attempts. */
function told(reason: unknown) {
  assert.ok(reason instanceof ActivityError);
  assert.equal(reason.kind, "timeout");
  assert.ok(reason.cause instanceof TimeoutError);
  return { timeout: reason.cause.timeout, limit: reason.cause.limit, attempts: reason.attempts, message: reason.cause.message };
}

/** A workflow whose only activity blocks, and that returns what it failed with. */
function hanging(timeout: ActivityTimeouts, retry: RetryPolicy = once) {
  const gate = new Gate<undefined, string>(() => "work");
  const work = activity("work", { timeout, retry }, gate.body);
  const worker = workflow("worker", async function* () {
    try {
      return yield* work(undefined);
    } catch (error) {
      return told(error);
    }
  });
  return { gate, worker };
}

for (const [timeout, message] of [
  ["startToClose", 'attempt 1 of activity "work" took longer than startToClose, 90000 ms'],
  ["scheduleToClose", 'activity "work" took longer than scheduleToClose, 90000 ms over all attempts'],
  ["heartbeat", 'attempt 1 of activity "work" gave no sign of life within its heartbeat timeout, 90000 ms'],
] as const)
  test(`a ${timeout} timeout ends the attempt, says which it is and how long, and aborts the signal with it`, async () => {
    const { gate, worker } = hanging({ [timeout]: "90s" });
    await inCase({ workflows: [worker] }, async (env) => {
      const run = await env.start(worker);
      const { ctx } = await gate.arrived();
      const signal = ctx.signal;
      await env.advance("89999ms");
      assert.equal(signal.aborted, false);
      await env.advance("1ms");
      assert.deepEqual(await run.result(), { timeout, limit: 90_000, attempts: 1, message });
      assert.equal((signal.reason as TimeoutError).timeout, timeout);
      gate.open("work", "late");
    });
  });

test("a late result of an attempt that is out of time is refused, and logged with what it was", async () => {
  for (const how of ["open", "fail"] as const) {
    const { gate, worker } = hanging({ startToClose: "1m" });
    await inCase({ workflows: [worker], end: { everyAttemptExecuted: true } }, async (env) => {
      const run = await env.start(worker);
      await gate.arrived();
      await env.advance("1m");
      await run.result();
      const before = await env.turns(run.id);
      if (how === "open") gate.open("work", "late");
      else gate.fail("work", new Error("aborted"));
      await env.advance("1h");
      assert.deepEqual(await env.turns(run.id), before);
      const late = env.logs.filter(({ level, message }) => level === "warn" && message.includes("run out of time, and is refused"));
      assert.deepEqual(
        late.map(({ data }) => data),
        how === "fail"
          ? []
          : [
              {
                workflow: "worker",
                instance: run.id,
                run: run.runId,
                activity: "work",
                attempt: 1,
                timeout: "startToClose",
                limit: 60_000,
              },
            ],
      );
    });
  }
});

test("a timed-out attempt is tried again by the policy, until scheduleToClose is over, which counts from when the activity was scheduled", async () => {
  const { gate, worker } = hanging(
    { startToClose: "1m", scheduleToClose: "5m" },
    { maxAttempts: 99, initialDelay: "30s", backoff: "fixed", jitter: "none" },
  );
  await inCase({ workflows: [worker] }, async (env) => {
    const began = env.now().getTime();
    const run = await env.start(worker);
    for (let attempt = 1; attempt <= 3; attempt += 1) {
      await env.until(() => gate.calls === attempt);
      await env.advance("1m");
      gate.open("work", "late");
    }
    await env.until(() => gate.calls === 4);
    assert.equal(env.now().getTime() - began, 270_000);
    await env.advance("30s");
    const { timeout, attempts } = (await run.result()) as ReturnType<typeof told>;
    assert.deepEqual([timeout, attempts, env.now().getTime() - began], ["scheduleToClose", 4, 300_000]);
    gate.open("work", "late");
  });
});

test("a retry that would begin after scheduleToClose is not waited for", async () => {
  const failing = activity("failing", { timeout: { scheduleToClose: "1m" }, retry: { initialDelay: "2m", jitter: "none" } }, async () => {
    throw new Error("down");
  });
  const worker = workflow("worker", async function* () {
    const [outcome] = yield* settled([failing()]);
    return outcome.status === "rejected" && (outcome.reason as ActivityError).cause instanceof TimeoutError;
  });
  await inCase({ workflows: [worker] }, async (env) => {
    const began = env.now().getTime();
    const run = await env.start(worker);
    assert.equal(await run.result(), false, "it fails with what it failed with");
    assert.equal(env.now().getTime(), began);
    const failed = facts(await env.turns(run.id)).find((fact) => fact.type === "ActivityFailed");
    assert.equal(failed?.noRetry, "scheduleToClose");
  });
});

test("scheduleToStart is the time that an attempt waits for a place; it ends without having begun, and is not tried again", async () => {
  const gate = new Gate<string, string>();
  const slow = activity("slow", gate.body);
  const work = activity("work", { timeout: { scheduleToStart: "1m" } }, gate.body);
  const worker = workflow("worker", async function* () {
    const outcomes = yield* all([slow("slow"), settled([work("a"), work("b").with({ timeout: { scheduleToStart: "10m" } })])]);
    return outcomes[1].map((outcome) => (outcome.status === "fulfilled" ? outcome.value : told(outcome.reason)));
  });
  await inCase({ workflows: [worker], limits: { activities: 1 } }, async (env) => {
    const run = await env.start(worker);
    await gate.arrived("slow");
    await env.advance("5m");
    assert.deepEqual(gate.waiting, ["slow"]);
    gate.open("slow", "");
    await gate.arrived("b");
    gate.open("b", "b");
    assert.deepEqual(await run.result(), [
      {
        timeout: "scheduleToStart",
        limit: 60_000,
        attempts: 1,
        message: 'activity "work" waited longer than scheduleToStart, 60000 ms, for its attempt to begin',
      },
      "b",
    ]);
    assert.equal(env.executions.count(`${run.runId}/0.1.0`), 0);
  });
});

test("H003 H004 limits count from recorded times after a restart, and not anew", async () => {
  for (const [limits, left] of [
    [{ scheduleToClose: "10m" }, 240_000],
    [{ scheduleToClose: "10m", startToClose: "9m" }, 240_000],
    [{ startToClose: "9m" }, 540_000],
  ] as const) {
    const { gate, worker } = hanging(limits);
    await inCase({ workflows: [worker] }, async (env) => {
      const run = await env.start(worker);
      await gate.arrived();
      await env.advance("6m");
      env.crash();
      await env.restart();
      await gate.arrived();
      const restarted = env.now().getTime();
      await env.advance("20m");
      await run.result();
      const end = (await env.turns(run.id)).at(-1)?.at ?? 0;
      assert.equal(end - restarted, left, "the time of all attempts goes on; an attempt that begins anew has its own");
    });
  }
  const { gate, worker } = hanging({ scheduleToClose: "10m" });
  await inCase({ workflows: [worker] }, async (env) => {
    const run = await env.start(worker);
    await gate.arrived();
    env.crash();
    await env.advance("1h").catch(() => {});
    env.clock.advance(3_600_000);
    await env.restart();
    assert.equal(((await run.result()) as ReturnType<typeof told>).timeout, "scheduleToClose");
    assert.equal(gate.calls, 1, "what is out of time does not begin again");
  });
});

test("H065 the time that a run waits counts for no limit of an activity", async () => {
  const quick = activity("quick", { timeout: { startToClose: "5s", scheduleToClose: "5s", heartbeat: "1s" } }, async () => "quick");
  const waiter = workflow("waiter", async function* () {
    const first = yield* quick();
    yield* sleep("1h");
    return `${first} ${yield* quick()}`;
  });
  await inEachCache({ workflows: [waiter] }, async (env) => {
    const run = await env.start(waiter);
    assert.equal(await run.result(), "quick quick");
    assert.equal(facts(await env.turns(run.id)).filter(({ type }) => type === "ActivityFailed").length, 0);
  });
});

test("H068 an attempt that never settles is out of time and tried again, though its run was dropped from memory meanwhile", async () => {
  let calls = 0;
  const hangs = activity("hangs", { timeout: { startToClose: "1m" }, retry: { initialDelay: "1s", jitter: "none" } }, async () => {
    calls += 1;
    if (calls < 3) await new Promise(() => {});
    return calls;
  });
  const worker = workflow("worker", async function* () {
    return yield* hangs();
  });
  await inCase({ workflows: [worker], evictAlways: true }, async (env) => {
    const run = await env.start(worker);
    await env.advance("5m");
    assert.equal(await run.result(), 3);
  });
});

test("H002 H003 limits are checked where they are given", () => {
  for (const name of ["scheduleToStart", "startToClose", "scheduleToClose", "heartbeat"] as const)
    for (const value of [Number.NaN, Number.POSITIVE_INFINITY, -1, "abc", new Date(Number.NaN), {}, Number.MAX_SAFE_INTEGER, 1e21])
      assert.throws(() => activity("a", { timeout: { [name]: value as never } }, async () => 1), {
        code: "INVALID_DURATION",
        message: new RegExp(`^activity a: timeout\\.${name}: `),
      });
  assert.throws(() => activity("a", { timeout: { heartBeat: 1 } as never }, async () => 1), { code: "INVALID_OPTION" });
});

test("what ends with the time of all attempts has the last failure as its cause, also where it waited for a decision", async () => {
  const retry = { maxAttempts: 10, initialDelay: "1s", jitter: "none" } as const;
  let attempts = 0;
  const hangs = activity("hangs", { retry, timeout: { scheduleToClose: "1m" } }, async () => {
    attempts += 1;
    if (attempts > 1) return new Promise<never>(() => {});
    throw Object.assign(new Error("the real reason"), { code: "REAL" });
  });
  const refuses = activity("refuses", { retry: { maxAttempts: 1 }, onExhausted: "pause", timeout: { scheduleToClose: "1m" } }, async () => {
    throw Object.assign(new Error("the real reason"), { code: "REAL" });
  });
  const asking = workflow("asking", async function* (which: "hangs" | "refuses") {
    try {
      yield* which === "hangs" ? hangs() : refuses();
      return [];
    } catch (error) {
      const late = (error as ActivityError).cause as TimeoutError;
      return [late.timeout, (late.cause as { code?: string } | undefined)?.code];
    }
  });
  await inCase({ workflows: [asking] }, async (env) => {
    env.autoSkip = false;
    for (const which of ["hangs", "refuses"] as const) {
      const run = await env.start(asking, which);
      await env.advance("2s");
      await env.advance("1m");
      assert.deepEqual(await run.result(), ["scheduleToClose", "REAL"]);
    }
  });
});
