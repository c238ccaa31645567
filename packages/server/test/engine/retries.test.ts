import assert from "node:assert/strict";
import { test } from "node:test";
import {
  ActivityError,
  activity,
  all,
  awaitEvent,
  type BackoffContext,
  event,
  NonRetryableError,
  RetryAfterError,
  type RetryPolicy,
  settled,
  sleep,
  step,
  Type,
  workflow,
} from "@wovyr/sdk";
import type { HistoryFact, Turn } from "@wovyr/sdk/internal";
import { ExecutionRecord, type TestEnvironment } from "@wovyr/testing";
import { inCase, inEachCache } from "./case.ts";

type Failed = Extract<HistoryFact, { type: "ActivityFailed" }>;
const failures = (turns: readonly Turn[]) =>
  turns.flatMap(({ at, events }) =>
    events.filter((fact): fact is Failed => fact.type === "ActivityFailed").map((fact) => ({ at, ...fact })),
  );
const delays = (turns: readonly Turn[]) => failures(turns).map(({ at, retryAt }) => (retryAt === undefined ? undefined : retryAt - at));

const flat: RetryPolicy = { jitter: "none", initialDelay: "1s", maxAttempts: 4 };
const down = (policy?: RetryPolicy) =>
  activity("down", policy === undefined ? {} : { retry: policy }, async () => {
    throw new Error("down");
  });

async function failedRun(env: TestEnvironment, id: string) {
  const { failure, status } = await env.client.handle(id).describe();
  assert.equal(status, "Failed");
  return failure;
}

test("a policy is merged from the engine, the workflow, the activity and the call, option by option, later over earlier", async () => {
  const call = down({ backoff: "fixed", maxAttempts: 3 });
  const caller = workflow("caller", { activityRetry: { initialDelay: "2s", maxAttempts: 9, jitter: "none" } }, async function* () {
    const outcomes = yield* settled([
      call(),
      call().with({ retry: { maxAttempts: 2, initialDelay: "5s" } }),
      step("bare", () => Promise.reject(new Error("bare"))),
    ]);
    return outcomes.map((outcome) => (outcome.status === "rejected" ? (outcome.reason as ActivityError).attempts : 0));
  });
  await inCase({ workflows: [caller], retry: { initialDelay: "1m", jitter: "full", factor: 3, maxAttempts: 7 } }, async (env) => {
    const run = await env.start(caller);
    assert.deepEqual(await run.result(), [3, 2, 9]);
    const turns = await env.turns(run.id);
    const of = (effect: string) =>
      delays(turns.map((turn) => ({ ...turn, events: turn.events.filter((fact) => "effect" in fact && fact.effect === effect) })));
    assert.deepEqual(of("0.0"), [2_000, 2_000, undefined], "fixed of the activity, 2 s of the workflow");
    assert.deepEqual(of("0.1"), [5_000, undefined], "5 s and 2 attempts of the call");
    assert.deepEqual(
      of("0.2"),
      [2_000, 6_000, 18_000, 54_000, 60_000, 60_000, 60_000, 60_000, undefined],
      "the engine's factor, the workflow's rest",
    );
  });
});

test("every attempt is in history with its failure, its kind and when the next one is due, and describe shows the last", async () => {
  const call = activity("call", { retry: flat }, async (_: undefined, ctx) => {
    if (ctx.attempt < 3) throw Object.assign(new Error(`attempt ${ctx.attempt}`), { code: ctx.attempt === 1 ? "ECONNRESET" : "BUSY" });
    return ctx.attempt;
  });
  const caller = workflow("caller", async function* () {
    return yield* call(undefined);
  });
  await inEachCache({ workflows: [caller], autoSkip: false }, async (env) => {
    const run = await env.start(caller);
    await env.advance(0);
    const began = env.now().getTime();
    const { activities } = await run.describe();
    assert.equal(activities[0]?.state, "Retrying");
    assert.equal(activities[0]?.lastFailure?.kind, "infrastructure");
    assert.deepEqual(activities[0]?.nextRetryAt, new Date(began + 1_000));
    await env.advance("1m");
    assert.equal(await run.result(), 3);
    const recorded = failures(await env.turns(run.id)).map(({ attempt, failure, retryAt, noRetry }) => ({
      attempt,
      kind: failure.kind,
      code: failure.code,
      retryAt,
      noRetry,
    }));
    assert.deepEqual(recorded, [
      { attempt: 1, kind: "infrastructure", code: "ECONNRESET", retryAt: began + 1_000, noRetry: undefined },
      { attempt: 2, kind: "transient", code: "BUSY", retryAt: began + 3_000, noRetry: undefined },
    ]);
  });
});

test("rules, classifiers and RetryAfterError decide what follows a failure, and history says why nothing did", async () => {
  class Declined extends Error {}
  const throwing = (name: string, error: () => unknown, retry: RetryPolicy, classify?: (error: unknown) => "permanent" | undefined) =>
    activity(name, { retry, ...(classify && { classify }) }, async () => {
      throw error();
    });
  const calls = [
    throwing("rule", () => new Declined("no"), { ...flat, rules: [{ when: Declined, retry: false }] }),
    throwing("overridden", () => new Declined("no"), {
      ...flat,
      rules: [
        { when: "Declined", retry: false },
        { when: Declined, retry: { maxAttempts: 2, initialDelay: "7s" } },
      ],
    }),
    throwing(
      "classified",
      () => new Error("no"),
      flat,
      () => "permanent",
    ),
    throwing("by-the-engine", () => new Error("HTTP 404"), flat),
    throwing("after", () => new RetryAfterError("busy", "1h"), { ...flat, maxAttempts: 2 }),
    throwing("in-vain", () => new NonRetryableError("no"), flat),
    throwing("too-late", () => new Error("x"), { ...flat, maxDuration: "2s" }),
  ];
  const caller = workflow("caller", async function* () {
    const outcomes = yield* settled(calls.map((call) => call()));
    return outcomes.map((outcome) => {
      assert.ok(outcome.status === "rejected" && outcome.reason instanceof ActivityError);
      return [outcome.reason.attempts, outcome.reason.kind];
    });
  });
  const classify = (error: unknown) => (error instanceof Error && error.message.includes("404") ? ("permanent" as const) : undefined);
  await inEachCache({ workflows: [caller], classify }, async (env) => {
    const run = await env.start(caller);
    assert.deepEqual(await run.result(), [
      [1, "transient"],
      [2, "transient"],
      [1, "permanent"],
      [1, "permanent"],
      [2, "transient"],
      [1, "permanent"],
      [2, "transient"],
    ]);
    const final = failures(await env.turns(run.id)).filter(({ retryAt }) => retryAt === undefined);
    const reasons = Object.fromEntries(final.map(({ effect, noRetry }) => [effect, noRetry]));
    assert.deepEqual(reasons, {
      "0.0": "rule",
      "0.1": "maxAttempts",
      "0.2": "permanent",
      "0.3": "permanent",
      "0.4": "maxAttempts",
      "0.5": "permanent",
      "0.6": "maxDuration",
    });
    const after = failures(await env.turns(run.id)).find(({ effect, retryAt }) => effect === "0.4" && retryAt !== undefined);
    assert.equal((after?.retryAt ?? 0) - (after?.at ?? 0), 3_600_000, "longer than maxDelay");
  });
});

test("decorrelated jitter and a backoff function go by the delay before, which history holds: a restart changes nothing", async () => {
  const seen: BackoffContext[] = [];
  const own = down({
    maxAttempts: 5,
    maxDelay: "1h",
    backoff: (context) => {
      seen.push(context);
      return context.previousDelay === 0 ? 1_000 : context.previousDelay * 10;
    },
  });
  const jittered = down({ maxAttempts: 8, jitter: "decorrelated", initialDelay: 100, maxDelay: "10s" });
  const caller = workflow("caller", async function* () {
    yield* settled([own(), jittered()]);
  });
  const played = async (restart: boolean) => {
    seen.length = 0;
    return inCase({ workflows: [caller] }, async (env) => {
      const run = await env.start(caller);
      for (let crash = 0; restart && crash < 6; crash += 1) {
        await env.advance("700ms");
        env.crash();
        await env.restart();
      }
      await run.result();
      const turns = await env.turns(run.id);
      const of = (effect: string) =>
        delays(turns.map((turn) => ({ ...turn, events: turn.events.filter((fact) => "effect" in fact && fact.effect === effect) })));
      assert.deepEqual(of("0.0"), [1_000, 10_000, 100_000, 1_000_000, undefined]);
      assert.deepEqual(
        seen.map(({ attempt, previousDelay, kind }) => [attempt, previousDelay, kind]),
        [
          [1, 0, "transient"],
          [2, 1_000, "transient"],
          [3, 10_000, "transient"],
          [4, 100_000, "transient"],
        ],
      );
      let before = 0;
      for (const delay of of("0.1").slice(0, -1) as number[]) {
        assert.ok(delay >= 100 && delay <= Math.min(10_000, Math.max(100, before * 3)), `${delay} after ${before}`);
        before = delay;
      }
    });
  };
  await played(false);
  await played(true);
});

test("counters survive a restart in the middle, and a policy that has changed applies to what is decided from then on", async () => {
  const record = new ExecutionRecord();
  const version = (policy: RetryPolicy) => {
    const call = activity("call", { retry: policy }, async (_: undefined, ctx) => {
      record.note(`attempt ${ctx.attempt}`);
      throw new Error("down");
    });
    return workflow("caller", async function* () {
      try {
        yield* call(undefined);
      } catch (error) {
        return (error as ActivityError).attempts;
      }
      return 0;
    });
  };
  const caller = version({ ...flat, initialDelay: "1h", maxAttempts: 3 });
  await inCase({ workflows: [caller] }, async (env) => {
    env.autoSkip = false;
    const run = await env.start(caller);
    await env.advance("1h");
    env.crash();
    await env.restart({ workflows: [version({ ...flat, maxAttempts: 5, backoff: "fixed", initialDelay: "1m" })] });
    await env.advance("30m");
    assert.equal(record.total, 2, "the time of an attempt that was decided stays");
    await env.advance("90m");
    assert.equal(await run.result(), 5);
    assert.deepEqual(
      record.order,
      [1, 2, 3, 4, 5].map((attempt) => `attempt ${attempt}`),
    );
    assert.deepEqual(delays(await env.turns(run.id)), [3_600_000, 3_600_000, 60_000, 60_000, undefined]);
  });
});

const Go = event("go", Type.Number());

test("a retry budget is the run's: the failure that comes when it is used up is final, and says so", async () => {
  const call = activity("call", { retry: { ...flat, maxAttempts: 10 } }, async (_: string) => {
    throw new Error("down");
  });
  const caller = workflow("caller", { retryBudget: 5 }, async function* () {
    const outcomes = yield* settled([call("a"), call("b"), call("c")]);
    return outcomes.map((outcome) => {
      assert.ok(outcome.status === "rejected" && outcome.reason instanceof ActivityError);
      const { attempts, code, message, cause } = outcome.reason;
      return { attempts, code, message, cause: String(cause) };
    });
  });
  for (const crash of [false, true])
    await inCase({ workflows: [caller] }, async (env) => {
      const run = await env.start(caller);
      if (crash) {
        await env.advance("1s");
        env.crash();
        await env.restart();
      }
      const errors = await run.result();
      assert.equal(
        errors.reduce((sum, { attempts }) => sum + attempts, 0),
        8,
        "three attempts and five retries",
      );
      for (const error of errors) {
        assert.equal(error.code, "RETRY_BUDGET_EXHAUSTED");
        assert.match(error.message, /failed after \d attempts \(the run's retry budget is used up\): down/);
        assert.equal(error.cause, "Error: down");
      }
      assert.ok(failures(await env.turns(run.id)).filter(({ noRetry }) => noRetry === "retryBudget").length === 3);
    });
});

test("a retry budget goes on when a run continues as new, and a run that is tried again has the whole of it", async () => {
  let failing = 0;
  const call = activity("call", { retry: { ...flat, maxAttempts: 10 } }, async (n: number, ctx) => {
    failing += 1;
    if (ctx.attempt <= n) throw new Error("down");
    return ctx.attempt;
  });
  const chained = workflow("chained", { retryBudget: 5 }, async function* (n: number, ctx) {
    yield* call(2);
    if (n < 2) yield* ctx.continueAsNew(n + 1);
    return n;
  });
  const tried = workflow("tried", { retryBudget: 3, retry: { maxAttempts: 2, jitter: "none" } }, async function* () {
    yield* call(9);
  });
  await inCase({ workflows: [chained, tried] }, async (env) => {
    await assert.rejects(env.execute(chained, 0, { id: "chained" }), /retry budget is used up/);
    assert.equal(failing, 3 + 3 + 2, "two runs of two retries each, and the third run had one left");
    assert.equal((await failedRun(env, "chained"))?.code, "RETRY_BUDGET_EXHAUSTED");
    failing = 0;
    await assert.rejects(env.execute(tried, undefined, { id: "tried" }), /retry budget is used up/);
    assert.equal(failing, 4 + 4);
  });
});

test("H069 with a single attempt a failure after an event fails the run at once", async () => {
  for (const error of [new Error("plain"), new NonRetryableError("in vain")]) {
    const call = activity("call", { retry: { maxAttempts: 1 } }, async () => {
      throw error;
    });
    const waiter = workflow("waiter", async function* () {
      yield* awaitEvent(Go);
      yield* call();
    });
    await inEachCache({ workflows: [waiter] }, async (env) => {
      const run = await env.start(waiter);
      await env.settle();
      const began = env.now().getTime();
      await run.send(Go, 1);
      await assert.rejects(run.result(), { name: "WorkflowError", status: "Failed" });
      assert.ok(env.now().getTime() - began < 1_000);
      assert.match((await failedRun(env, run.id))?.message ?? "", /failed after 1 attempt/);
    });
  }
});

test("H070 branches that all fail are tried as often as each policy says, with the delays of each", async () => {
  const record = new ExecutionRecord();
  const call = activity("call", async (name: string) => {
    record.note(name);
    throw new Error(name);
  });
  const caller = workflow("caller", async function* () {
    const outcomes = yield* settled(
      [0, 1, 2, 3, 4].map((index) =>
        call(`${index}`).with({ retry: { maxAttempts: 3, backoff: "fixed", jitter: "none", initialDelay: (index + 1) * 1_000 } }),
      ),
    );
    return outcomes.map(({ status }) => status);
  });
  await inCase({ workflows: [caller] }, async (env) => {
    const run = await env.start(caller);
    assert.deepEqual(await run.result(), Array(5).fill("rejected"));
    assert.equal(record.total, 15);
    const turns = await env.turns(run.id);
    for (const index of [0, 1, 2, 3, 4]) {
      const mine = turns.map((turn) => ({
        ...turn,
        events: turn.events.filter((fact) => "effect" in fact && fact.effect === `0.${index}`),
      }));
      assert.deepEqual(delays(mine), [(index + 1) * 1_000, (index + 1) * 1_000, undefined]);
    }
  });
});

test("H002 a RetryAfterError without a proper time fails the activity with an error that names it, and hangs nobody", async () => {
  const call = activity("call", async () => {
    throw new RetryAfterError("busy", Number.NaN);
  });
  const caller = workflow("caller", async function* () {
    try {
      yield* call();
    } catch (error) {
      const { kind, cause } = error as ActivityError;
      return [kind, (cause as { code?: string }).code];
    }
    return [];
  });
  await inCase({ workflows: [caller] }, async (env) => assert.deepEqual(await env.execute(caller), ["permanent", "INVALID_DURATION"]));
});

test("functions of a policy that throw are passed over, and the log says so", async () => {
  const call = activity(
    "call",
    {
      classify: () => {
        throw new Error("bad classifier");
      },
      retry: {
        maxAttempts: 2,
        backoff: () => {
          throw new Error("bad backoff");
        },
        rules: [
          {
            when: () => {
              throw new Error("bad rule");
            },
            retry: false,
          },
        ],
      },
    },
    async () => {
      throw new Error("down");
    },
  );
  const caller = workflow("caller", async function* () {
    const [outcome] = yield* settled([call()]);
    return outcome.status === "rejected" && (outcome.reason as ActivityError).attempts;
  });
  await inCase({ workflows: [caller] }, async (env) => {
    assert.equal(await env.execute(caller), 2);
    const lines = env.logs
      .filter(({ level }) => level === "error")
      .map(({ message, data }) => `${message}: ${(data as { error: Error }).error.message}`);
    for (const [what, why] of [
      ["`classify`", "bad classifier"],
      ["`retry.backoff`", "bad backoff"],
      ["a rule of `retry`", "bad rule"],
    ])
      assert.ok(lines.includes(`${what} of activity "call" does not work and was passed over: ${why}`), lines.join("\n"));
  });
});

test("many activities that fail again and again lose no attempt", async () => {
  const record = new ExecutionRecord();
  const call = activity("call", { retry: { maxAttempts: 5, initialDelay: "1s" } }, async (n: number, ctx) => {
    record.note(`${n}`);
    if (ctx.attempt <= 3) throw new Error("not yet");
    return n;
  });
  const wide = workflow("wide", async function* (count: number) {
    const values = yield* all(Array.from({ length: count }, (_, n) => call(n)));
    yield* sleep("1s");
    return values.reduce((sum, value) => sum + value, 0);
  });
  await inCase({ workflows: [wide] }, async (env) => {
    assert.equal(await env.execute(wide, 500), (499 * 500) / 2);
    for (let n = 0; n < 500; n += 1) assert.equal(record.count(`${n}`), 4);
  });
});

test("H066 attempt 2,000 of an activity is scheduled at the cap, like every one since the cap was reached", async () => {
  let attempts = 0;
  const stubborn = activity(
    "stubborn",
    { retry: { maxAttempts: 5_000, initialDelay: "1s", factor: 10, maxDelay: "1h", jitter: "none" } },
    async () => {
      attempts += 1;
      if (attempts <= 2_000) throw new Error("not yet");
      return attempts;
    },
  );
  const patient = workflow("patient", async function* () {
    return yield* stubborn();
  });
  await inCase({ workflows: [patient] }, async (env) => {
    const run = await env.start(patient);
    assert.equal(await run.result(), 2_001);
    const waits = delays(await env.turns(run.id));
    assert.equal(waits.length, 2_000);
    assert.deepEqual(waits.slice(0, 4), [1_000, 10_000, 100_000, 1_000_000]);
    assert.ok(waits.slice(4).every((delay) => delay === 3_600_000));
  });
});
