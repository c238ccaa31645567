import assert from "node:assert/strict";
import { test } from "node:test";
import {
  ActivityError,
  activity,
  all,
  CancelledError,
  NonRetryableError,
  OutcomeUnknownError,
  RetryAfterError,
  settled,
  step,
  TimeoutError,
  workflow,
} from "@wovyr/sdk";
import type { HistoryFact, Turn } from "@wovyr/sdk/internal";
import { ExecutionRecord, explore, Gate } from "@wovyr/testing";
import { inCase, inEachCache } from "./case.ts";

const facts = (turns: readonly Turn[]): HistoryFact[] => turns.flatMap(({ events }) => [...events]);
const types = (turns: readonly Turn[]) => facts(turns).map(({ type }) => type);

function unknown(error: unknown): string {
  assert.ok(error instanceof ActivityError);
  assert.ok(error.cause instanceof OutcomeUnknownError);
  assert.equal(error.cause.code, "OUTCOME_UNKNOWN");
  return error.cause.cause instanceof TimeoutError ? error.cause.cause.timeout : error.cause.message;
}

/** A workflow that pays once at most, and says what came of it. */
function paying(body: (input: undefined, ctx: never) => Promise<string>, options: object = {}) {
  const pay = activity("pay", { semantics: "atMostOnce", ...options }, body as (input: undefined) => Promise<string>);
  return workflow("payer", async function* () {
    try {
      return yield* pay(undefined);
    } catch (error) {
      return unknown(error);
    }
  });
}

test("an attempt is recorded before it begins, and its result is recorded as ever", async () => {
  const payer = paying(async () => "paid");
  await inEachCache({ workflows: [payer], end: { everyAttemptExecuted: true } }, async (env) => {
    const run = await env.start(payer);
    assert.equal(await run.result(), "paid");
    assert.deepEqual(types(await env.turns(run.id)), [
      "InstanceStarted",
      "ActivityScheduled",
      "AttemptStarted",
      "ActivityCompleted",
      "InstanceCompleted",
    ]);
  });
});

test("steps may run once at most too, and a call may say so", async () => {
  const record = new ExecutionRecord();
  const pay = activity("pay", async () => record.note("pay"));
  const payer = workflow("payer", async function* () {
    yield* step("pay-by-step", () => record.note("step"), { semantics: "atMostOnce" });
    yield* pay().with({ semantics: "atMostOnce" });
    yield* pay();
  });
  await inCase({ workflows: [payer] }, async (env) => {
    const run = await env.start(payer);
    await run.result();
    assert.deepEqual(
      facts(await env.turns(run.id)).flatMap((fact) => (fact.type === "AttemptStarted" ? [fact.effect] : [])),
      ["0", "1"],
    );
  });
  assert.throws(() => pay().with({ semantics: "exactlyOnce" as never }), { code: "INVALID_OPTION" });
  assert.throws(() => activity("a", { semantics: "once" as never }, async () => 1), { code: "INVALID_OPTION" });
});

test("an attempt that was lost with its process is not made again: its outcome is unknown, and the workflow can say what then", async () => {
  const gate = new Gate<undefined, string>(() => "pay");
  const payer = paying(gate.body);
  await inCase({ workflows: [payer] }, async (env) => {
    const run = await env.start(payer);
    await gate.arrived();
    env.crash();
    gate.open("pay", "of a dead process");
    await env.restart();
    assert.match(
      (await run.result()) as string,
      /attempt 1 of activity "pay" was lost with its process, or with the lease .*; it may have done its work/,
    );
    assert.equal(gate.calls, 1);
    const failed = facts(await env.turns(run.id)).find((fact) => fact.type === "ActivityFailed");
    assert.equal(failed?.noRetry, "outcomeUnknown");
    assert.equal(failed?.failure.kind, "infrastructure");
  });
});

test("an attempt that was not recorded as begun has not run, and begins after a crash", async () => {
  const gate = new Gate<string, string>();
  const block = activity("block", gate.body);
  const pay = activity("pay", { semantics: "atMostOnce" }, gate.body);
  const payer = workflow("payer", async function* () {
    const [, paid] = yield* all([block("block"), pay("pay")]);
    return paid;
  });
  await inCase({ workflows: [payer], limits: { activities: 1 } }, async (env) => {
    const run = await env.start(payer);
    await gate.arrived("block");
    await env.settle();
    const state = await env.state(run.id);
    assert.equal(state.activities.get("0.1")?.state, "Scheduled");
    env.crash();
    gate.open("block", "of a dead process");
    await env.restart();
    await gate.arrived("pay");
    gate.open("pay", "paid");
    await gate.arrived("block");
    gate.open("block", "");
    assert.equal(await run.result(), "paid");
  });
});

for (const timeout of ["startToClose", "heartbeat", "scheduleToClose"] as const)
  test(`a ${timeout} timeout leaves the outcome unknown, with the timeout as cause; nothing is tried again`, async () => {
    const gate = new Gate<undefined, string>(() => "pay");
    const payer = paying(gate.body, {
      timeout: { [timeout]: "1m" },
      retry: { maxAttempts: 9, rules: [{ when: Error, retry: { maxAttempts: 9 } }] },
    });
    await inCase({ workflows: [payer] }, async (env) => {
      const run = await env.start(payer);
      await gate.arrived();
      await env.advance("1h");
      assert.equal(await run.result(), timeout);
      assert.equal(gate.calls, 1);
      gate.open("pay", "late");
    });
  });

test("one that is out of time while it waits for a place has not run: that is a timeout, and nothing unknown", async () => {
  const gate = new Gate<string, string>();
  const block = activity("block", gate.body);
  const pay = activity("pay", { semantics: "atMostOnce" }, gate.body);
  const payer = workflow("payer", async function* () {
    const outcomes = yield* settled([
      block("block"),
      pay("a").with({ timeout: { scheduleToStart: "1m" } }),
      pay("b").with({ timeout: { scheduleToClose: "2m" } }),
    ]);
    return outcomes
      .slice(1)
      .map((outcome) => outcome.status === "rejected" && ((outcome.reason as ActivityError).cause as TimeoutError).timeout);
  });
  await inCase({ workflows: [payer], limits: { activities: 1 } }, async (env) => {
    const run = await env.start(payer);
    await gate.arrived("block");
    await env.advance("5m");
    gate.open("block", "");
    assert.deepEqual(await run.result(), ["scheduleToStart", "scheduleToClose"]);
    assert.equal(gate.calls, 1);
  });
});

test("what it throws is final, unless a rule or a RetryAfterError says that nothing happened; each attempt is recorded before it begins", async () => {
  class NotSent extends Error {}
  const failing = (name: string, error: (attempt: number) => Error, retry: object) =>
    activity(name, { semantics: "atMostOnce", retry: { jitter: "none", ...retry } }, async (_: undefined, ctx) => {
      throw error(ctx.attempt);
    });
  const calls = [
    failing("plain", () => new Error("x"), { maxAttempts: 5 }),
    failing("ruled", () => new NotSent("x"), { maxAttempts: 3, rules: [{ when: NotSent, retry: {} }] }),
    failing("after", () => new RetryAfterError("x", "1m"), { maxAttempts: 2 }),
    failing("mixed", (attempt) => (attempt === 1 ? new NotSent("x") : new Error("sent, perhaps")), {
      maxAttempts: 5,
      rules: [{ when: NotSent, retry: {} }],
    }),
    failing("in-vain", () => new NonRetryableError("x"), { maxAttempts: 5, rules: [{ when: NonRetryableError, retry: {} }] }),
  ];
  const payer = workflow("payer", async function* () {
    const outcomes = yield* settled(calls.map((call) => call(undefined)));
    return outcomes.map((outcome) => outcome.status === "rejected" && (outcome.reason as ActivityError).attempts);
  });
  await inEachCache({ workflows: [payer], end: { everyAttemptExecuted: true } }, async (env) => {
    const run = await env.start(payer);
    assert.deepEqual(await run.result(), [1, 3, 2, 2, 1]);
    const final = facts(await env.turns(run.id)).flatMap((fact) =>
      fact.type === "ActivityFailed" && fact.retryAt === undefined ? [[fact.effect, fact.noRetry]] : [],
    );
    assert.deepEqual(Object.fromEntries(final), {
      "0.0": "atMostOnce",
      "0.1": "maxAttempts",
      "0.2": "maxAttempts",
      "0.3": "atMostOnce",
      "0.4": "permanent",
    });
  });
});

test("a retry that is due while no place is free is recorded when it begins: a crash before that loses nothing", async () => {
  const gate = new Gate<string, string>();
  const block = activity("block", gate.body);
  const pay = activity(
    "pay",
    { semantics: "atMostOnce", retry: { rules: [{ when: Error, retry: { initialDelay: "1s", jitter: "none" } }] } },
    gate.body,
  );
  const payer = workflow("payer", async function* () {
    return yield* pay("pay");
  });
  const blocker = workflow("blocker", async function* () {
    return yield* block("block");
  });
  await inCase({ workflows: [payer, blocker], limits: { activities: 1 } }, async (env) => {
    const run = await env.start(payer);
    await gate.arrived("pay");
    await env.start(blocker);
    await env.settle();
    gate.fail("pay", new Error("not sent"));
    await gate.arrived("block");
    await env.advance("1m");
    assert.equal((await env.state(run.id)).activities.get("0")?.state, "Retrying");
    env.crash();
    gate.open("block", "of a dead process");
    await env.restart();
    await env.until(() => gate.waiting.length > 0);
    for (let left = 2; left > 0; left -= 1) {
      await env.until(() => gate.waiting.length > 0);
      const next = gate.waiting[0] ?? "";
      gate.open(next, "done");
      await env.settle();
    }
    assert.equal(await run.result(), "done");
    assert.equal(facts(await env.turns(run.id)).filter(({ type }) => type === "AttemptStarted").length, 2);
  });
});

test("a graceful shutdown that has to give an attempt up leaves its outcome unknown; one that had not begun begins later", async () => {
  const gate = new Gate<string, string>();
  const pay = activity("pay", { semantics: "atMostOnce" }, gate.body);
  const payer = workflow("payer", async function* (name: string) {
    try {
      return yield* pay(name);
    } catch (error) {
      return unknown(error);
    }
  });
  await inCase({ workflows: [payer], limits: { activities: 1 } }, async (env) => {
    const [a, b] = [await env.start(payer, "a"), await env.start(payer, "b")];
    await gate.arrived("a");
    await env.settle();
    await env.stop();
    gate.open("a", "of the process that closed");
    await env.restart();
    assert.match(await a.result(), /was stopped when its process was shut down/);
    await gate.arrived("b");
    gate.open("b", "paid");
    assert.equal(await b.result(), "paid");
  });
});

test("a cancelled activity is not repeated, and leaves its place", async () => {
  const gate = new Gate<string, string>();
  const pay = activity("pay", { semantics: "atMostOnce" }, gate.body);
  const payer = workflow("payer", async function* (name: string) {
    return yield* pay(name);
  });
  await inCase({ workflows: [payer], limits: { activities: 1 } }, async (env) => {
    const runs = [];
    for (const name of ["a", "b", "c"]) runs.push(await env.start(payer, name));
    await gate.arrived("a");
    await runs[1]?.cancel({ mode: "immediate" });
    await runs[0]?.cancel();
    await assert.rejects(runs[0]?.result() ?? Promise.resolve(), (error: Error) => error.cause instanceof CancelledError);
    await gate.arrived("c");
    gate.open("c", "paid");
    assert.equal(await runs[2]?.result(), "paid");
    assert.deepEqual([gate.calls, gate.waiting], [2, ["a"]]);
    gate.open("a", "late");
  });
});

test("explored with every fault at every place: never twice, and what is not known is said", async () => {
  const ledger = new ExecutionRecord();
  const pay = activity("pay", { semantics: "atMostOnce" }, async (name: string, ctx) => {
    ledger.note(ctx.idempotencyKey);
    return name;
  });
  const payer = workflow("payer", async function* (name: string) {
    const outcomes = yield* settled([pay(`${name}1`), pay(`${name}2`)]);
    return outcomes.map((outcome) => (outcome.status === "fulfilled" ? outcome.value : unknown(outcome.reason) && "unknown"));
  });
  const seen = new Set<string>();
  await explore(payer, "x", {
    crashes: "everywhere",
    interleavings: 30,
    invariant: ({ output, attempts }) => {
      assert.ok(output !== undefined);
      for (const [index, outcome] of output.entries()) assert.ok(outcome === "unknown" || outcome === `x${index + 1}`, outcome);
      const keys = attempts.map(({ key }) => key);
      assert.equal(new Set(keys).size, keys.length, "an attempt began twice");
      seen.add(output.join());
    },
  });
  assert.ok(seen.has("x1,x2"));
  assert.ok(
    [...seen].some((outcome) => outcome.includes("unknown")),
    "a crash while it ran leaves an unknown outcome",
  );
});
