import assert from "node:assert/strict";
import { test } from "node:test";
import {
  ApiError,
  activity,
  CompensationError,
  type CompensationOptions,
  child,
  NonRetryableError,
  saga,
  sleep,
  WorkflowError,
  workflow,
} from "@wovyr/sdk";
import type { HistoryFact, Turn } from "@wovyr/sdk/internal";
import { ExecutionRecord, type TestEnvironment } from "@wovyr/testing";
import { inCase, inEachCache } from "./case.ts";

const record = new ExecutionRecord();
/** What cannot be undone at present. */
const broken = new Set<string>();
const book = activity("book", async (what: string) => what);
const undo = activity("undo", async (what: string) => {
  record.note(what);
  if (broken.has(what)) throw new NonRetryableError(`${what} is closed today`);
});

const facts = (turns: readonly Turn[]): HistoryFact[] => turns.flatMap((turn) => turn.events);
const since = (begin: number): readonly string[] => record.order.slice(begin);
const code = (expected: string) => (error: unknown) => error instanceof ApiError && error.code === expected;
const ended = (status: string, cause?: RegExp) => (error: unknown) => {
  assert.ok(error instanceof WorkflowError);
  assert.equal(error.status, status);
  if (cause !== undefined) assert.match(String(error.cause), cause);
  return true;
};
const statesOf = async (run: Pick<Awaited<ReturnType<TestEnvironment["start"]>>, "describe">) => {
  const { compensations } = await run.describe();
  return compensations.map(({ effect, state, tries }) => `${effect} ${state} ${tries}`);
};

const trip = (compensation: CompensationOptions = {}) =>
  workflow("trip", { compensation }, async function* () {
    for (const what of ["a", "b", "c"]) yield* book(what).compensate((booked) => undo(booked));
    throw new RangeError("no seats");
  });

test("H047 a compensation that fails for good stays visible until somebody decides; retried, it runs anew, and the others follow", async () => {
  await inEachCache({ workflows: [trip()] }, async (env) => {
    broken.add("b");
    const begin = record.total;
    const run = await env.start(trip());
    await env.settle();
    const about = await run.describe();
    assert.equal(about.status, "Compensating");
    assert.deepEqual(
      about.compensations.map(({ effect, undoes, name, state, tries, failure }) => [effect, undoes, name, state, tries, failure?.message]),
      [
        ["~2", "2", "book", "done", 1, undefined],
        ["~1", "1", "book", "stuck", 1, 'activity "undo" failed after 1 attempt: b is closed today'],
        ["~0", "0", "book", "pending", 0, undefined],
      ],
    );
    assert.ok(
      env.logs.some(
        ({ level, message }) =>
          level === "error" &&
          message ===
            'what "book" (effect 1) did could not be undone, and compensation ~1 waits to be retried, skipped or resolved: activity "undo" failed after 1 attempt: b is closed today',
      ),
    );
    await run.retryCompensation("~1", { note: "the hotel is open again" });
    await env.settle();
    assert.deepEqual(await statesOf(run), ["~2 done 1", "~1 stuck 2", "~0 pending 0"]);
    broken.clear();
    await run.retryCompensation("~1");
    await assert.rejects(run.result(), ended("Compensated", /RangeError: no seats/));
    assert.deepEqual(await statesOf(run), ["~2 done 1", "~1 done 3", "~0 done 1"]);
    assert.deepEqual(since(begin), ["c", "b", "b", "b", "a"]);
    // Each try is an activity of its own, with its own idempotency key.
    assert.deepEqual(
      facts(await env.turns(run.id)).flatMap((fact) => (fact.type === "ActivityScheduled" && fact.name === "undo" ? [fact.effect] : [])),
      ["~2/0", "~1/0", "~1#1/0", "~1#2/0", "~0/0"],
    );
    const decisions = facts(await env.turns(run.id)).filter((fact) => fact.type === "CompensationDecided");
    assert.deepEqual(
      decisions.map(({ effect, decision, note }) => [effect, decision, note]),
      [
        ["~1", "retry", "the hotel is open again"],
        ["~1", "retry", undefined],
      ],
    );
  });
});

test("what is resolved counts as undone, what is skipped does not: the run says so, and keeps what it failed with", async () => {
  await inEachCache({ workflows: [trip()] }, async (env) => {
    broken.add("b").add("a");
    const [resolved, skipped] = [await env.start(trip()), await env.start(trip())];
    await env.settle();
    for (const run of [resolved, skipped]) await run.resolveCompensation("~1", { note: "paid back by hand" });
    await env.settle();
    assert.deepEqual(await statesOf(resolved), ["~2 done 1", "~1 resolved 1", "~0 stuck 1"]);
    await resolved.resolveCompensation("~0");
    await assert.rejects(resolved.result(), ended("Compensated", /no seats/));
    await skipped.skipCompensation("~0", { note: "not worth it" });
    await assert.rejects(skipped.result(), (error: WorkflowError) => {
      ended("CompensationFailed", /RangeError: no seats/)(error);
      const { compensation } = error;
      assert.ok(compensation instanceof CompensationError);
      assert.deepEqual(compensation.failures, [{ effect: "~0", undoes: "0", name: "book", outcome: "skipped" }]);
      assert.match(String(compensation.errors[0]), /a is closed today/);
      assert.match(compensation.message, /not everything was undone: the compensation of "book" \(effect 0\) was skipped/);
      return true;
    });
    const about = await skipped.describe();
    assert.equal(about.failure?.message, "no seats");
    assert.match(about.compensation?.message ?? "", /not everything was undone/);
    assert.equal(about.compensations[2]?.note, "not worth it");
    broken.clear();
  });
});

test("H047 with `onFailure: fail` the others are undone all the same, and the run ends as CompensationFailed with what is left", async () => {
  for (const order of ["reverse", "parallel"] as const)
    await inEachCache({ workflows: [trip({ onFailure: "fail", order })] }, async (env) => {
      broken.add("b");
      const begin = record.total;
      const run = await env.start(trip({ onFailure: "fail", order }));
      await assert.rejects(run.result(), (error: WorkflowError) => {
        ended("CompensationFailed", /no seats/)(error);
        assert.deepEqual((error.compensation as CompensationError).failures, [
          { effect: "~1", undoes: "1", name: "book", outcome: "failed" },
        ]);
        return true;
      });
      assert.deepEqual(since(begin), ["c", "b", "a"]);
      assert.deepEqual(await statesOf(run), ["~2 done 1", "~1 failed 1", "~0 done 1"]);
      await assert.rejects(run.retryCompensation("~1"), code("INSTANCE_CLOSED"));
      broken.clear();
    });
});

test("in parallel the others do not wait for one that is stuck, and several may be", async () => {
  await inEachCache({ workflows: [trip({ order: "parallel" })] }, async (env) => {
    broken.add("c").add("b");
    const begin = record.total;
    const run = await env.start(trip({ order: "parallel" }));
    await env.settle();
    assert.deepEqual(await statesOf(run), ["~2 stuck 1", "~1 stuck 1", "~0 done 1"]);
    broken.clear();
    await run.retryCompensation("~1");
    await run.skipCompensation("~2");
    await assert.rejects(run.result(), ended("CompensationFailed"));
    assert.deepEqual([...since(begin)].sort(), ["a", "b", "b", "c"]);
  });
});

const lettersOf = async (env: TestEnvironment) =>
  (await env.bareStore.listDeadLetters("default", {}, { limit: 10 })).map(
    ({ id, workflow, effect, kind, name, attempts, failure }) =>
      `${id} ${workflow} ${effect} ${kind} ${name} ${attempts}: ${JSON.parse(failure).message}`,
  );

test("H047 what is stuck is a dead letter until somebody has decided, and its run is found as one that compensates", async () => {
  await inEachCache({ workflows: [trip()] }, async (env) => {
    broken.add("b").add("a");
    const run = await env.start(trip(), undefined, { id: "t" });
    await env.settle();
    const statuses = async () => {
      const found: string[] = [];
      for await (const { id, status } of env.client.list({ status: ["Compensating"] })) found.push(`${id} ${status}`);
      return found;
    };
    assert.deepEqual(await statuses(), ["t Compensating"]);
    const letter = (effect: string, tries: number, what: string) =>
      `t trip ${effect} compensation book ${tries}: activity "undo" failed after 1 attempt: ${what} is closed today`;
    assert.deepEqual(await lettersOf(env), [letter("~1", 1, "b")]);
    await run.retryCompensation("~1");
    await env.settle();
    assert.deepEqual(await lettersOf(env), [letter("~1", 2, "b")]);
    await run.skipCompensation("~1");
    await env.settle();
    assert.deepEqual(await lettersOf(env), [letter("~0", 1, "a")]);
    broken.clear();
    await run.retryCompensation("~0");
    await assert.rejects(run.result(), ended("CompensationFailed"));
    assert.deepEqual(await lettersOf(env), []);
    assert.deepEqual(await statuses(), []);
  });
});

test("H047 a saga's dead letter goes when it was decided on, or with its run", async () => {
  const within = workflow("within", async function* () {
    yield* saga(async function* () {
      yield* book("b").compensate((what) => undo(what));
      throw new Error("in the saga");
    });
  });
  await inEachCache({ workflows: [within] }, async (env) => {
    broken.add("b");
    const [decided, ended] = [await env.start(within, undefined, { id: "decided" }), await env.start(within, undefined, { id: "ended" })];
    await env.settle();
    assert.equal((await lettersOf(env)).length, 2);
    await decided.resolveCompensation("~0");
    await env.settle();
    assert.match((await lettersOf(env)).join(), /^ended within ~0 compensation book 1: [^,]*$/);
    await ended.terminate();
    await env.settle();
    assert.deepEqual(await lettersOf(env), []);
    broken.clear();
  });
});

test("what could not be undone is stored through the codec wherever it is told: in histories and in dead letters", async () => {
  const leaks = activity("leaks", async () => {
    throw Object.assign(new NonRetryableError("refused"), { account: "4711" });
  });
  const leaking = (onFailure: "pause" | "fail") =>
    workflow("leaking", { compensation: { onFailure } }, async function* () {
      yield* book("a").compensate(() => leaks());
      throw new Error("enough");
    });
  const parent = workflow("parent", async function* () {
    yield* child(leaking("fail"));
  });
  const seen = new Set<string>();
  const codec = {
    name: "base64",
    encode: async (payload: string) => {
      if (payload.includes("4711")) seen.add("encoded");
      return Buffer.from(payload).toString("base64");
    },
    decode: async (payload: string) => Buffer.from(payload, "base64").toString(),
  };
  const storedOf = async (env: TestEnvironment, run: string) => {
    const rows = await env.bareStore.readHistory({ tenant: "default", run }, 1, Number.MAX_SAFE_INTEGER);
    return rows.map(({ events }) => events).join("\n");
  };
  await inCase({ workflows: [parent, leaking("fail")], codec }, async (env) => {
    const run = await env.start(parent);
    await assert.rejects(run.result());
    const turns = await env.turns(run.id);
    const failed = facts(turns).find((fact) => fact.type === "ChildFailed");
    assert.match(failed?.compensation?.fields ?? "", /4711/);
    const started = facts(turns).find((fact) => fact.type === "ChildStarted");
    for (const stored of [await storedOf(env, run.runId), await storedOf(env, started?.run ?? "")]) {
      assert.match(stored, /not everything was undone/);
      assert.doesNotMatch(stored, /4711/);
    }
  });
  await inCase({ workflows: [leaking("pause")], codec }, async (env) => {
    const run = await env.start(leaking("pause"));
    await env.settle();
    const [letter] = await env.bareStore.listDeadLetters("default", {}, { limit: 10 });
    assert.match(letter?.failure ?? "", /refused/);
    assert.doesNotMatch(letter?.failure ?? "", /4711/);
    await run.terminate();
  });
  assert.ok(seen.has("encoded"));
});

test("a decision is taken once, and only on what is stuck", async () => {
  await inEachCache({ workflows: [trip()] }, async (env) => {
    broken.add("b");
    const run = await env.start(trip());
    await env.settle();
    await assert.rejects(run.skipCompensation("~7"), code("COMPENSATION_NOT_FOUND"));
    await assert.rejects(run.skipCompensation("~2"), code("COMPENSATION_NOT_STUCK"));
    await assert.rejects(run.skipCompensation("~1/0"), (error: { code?: string }) => error.code === "INVALID_NAME");
    await run.retryCompensation("~1", { idempotencyKey: "first" });
    await env.settle();
    await run.retryCompensation("~1", { idempotencyKey: "first" });
    await env.settle();
    assert.deepEqual(await statesOf(run), ["~2 done 1", "~1 stuck 2", "~0 pending 0"]);
    await assert.rejects(run.skipCompensation("~1", { idempotencyKey: "first" }), code("IDEMPOTENCY_CONFLICT"));
    await run.terminate();
    await assert.rejects(run.result(), ended("Terminated"));
    broken.clear();
  });
});

test("H047 retries of what undoes are the workflow's, over those of the activity and under those of the call", async () => {
  let attempts = 0;
  const flaky = activity("flaky", { retry: { maxAttempts: 2, initialDelay: "1s", jitter: "none" } }, async (succeeds: number) => {
    attempts += 1;
    if (attempts < succeeds) throw new Error(`attempt ${attempts}`);
  });
  const retried = workflow(
    "retried",
    { compensation: { retry: { maxAttempts: 4, initialDelay: "1h", backoff: "fixed" } } },
    async function* () {
      yield* book("x").compensate(() => flaky(3).with({ retry: { jitter: "none", maxAttempts: 3 } }));
      try {
        yield* flaky(9);
      } finally {
        attempts = 0;
      }
    },
  );
  await inCase({ workflows: [retried] }, async (env) => {
    const began = env.now().getTime();
    await assert.rejects(env.execute(retried), ended("Compensated", /flaky.*2 attempts/));
    assert.equal(attempts, 3);
    assert.equal(env.now().getTime() - began, 1_000 + 2 * 3_600_000);
  });
});

test("what is stuck outlives its process, and so does a decision", async () => {
  await inCase({ workflows: [trip()] }, async (env) => {
    broken.add("b");
    const run = await env.start(trip());
    await env.settle();
    await env.restart();
    await env.settle();
    assert.deepEqual(await statesOf(run), ["~2 done 1", "~1 stuck 1", "~0 pending 0"]);
    broken.clear();
    await run.retryCompensation("~1");
    await env.restart();
    await assert.rejects(run.result(), ended("Compensated"));
  });
});

test("a saga that cannot be undone holds its error back until it is decided on; a run that fails later says what is left", async () => {
  const inner = workflow("inner", async function* () {
    yield* book("outer").compensate((what) => undo(what));
    try {
      yield* saga(async function* () {
        yield* book("b").compensate((what) => undo(what));
        throw new Error("in the saga");
      });
    } catch (error) {
      assert.ok(error instanceof CompensationError);
      assert.match(String(error.cause), /in the saga/);
      throw error;
    }
  });
  await inEachCache({ workflows: [inner] }, async (env) => {
    broken.add("b");
    const run = await env.start(inner);
    await env.settle();
    const { status, compensations } = await run.describe();
    assert.equal(status, "Waiting");
    assert.deepEqual(
      compensations.map(({ effect, state }) => [effect, state]),
      [["~1", "stuck"]],
    );
    await run.skipCompensation("~1");
    await assert.rejects(run.result(), (error: WorkflowError) => {
      ended("CompensationFailed", /CompensationError/)(error);
      assert.equal((error.compensation as CompensationError).failures[0]?.outcome, "skipped");
      return true;
    });
    assert.deepEqual(await statesOf(run), ["~0 done 1"]);
    broken.clear();
  });
});

test("a child that could not undo everything tells its parent", async () => {
  const parent = workflow("parent", async function* () {
    try {
      yield* child(trip({ onFailure: "fail" }));
    } catch (error) {
      assert.ok(error instanceof WorkflowError);
      return [error.status, (error.cause as Error).message, error.compensation?.message];
    }
    return [];
  });
  await inEachCache({ workflows: [parent, trip({ onFailure: "fail" })] }, async (env) => {
    broken.add("a");
    const [status, cause, compensation] = await env.execute(parent);
    assert.equal(status, "CompensationFailed");
    assert.equal(cause, "no seats");
    assert.match(compensation ?? "", /"book" \(effect 0\) failed: activity "undo" failed after 1 attempt: a is closed today/);
    broken.clear();
  });
});

test("what undoes may be wrong itself: it is told like any mistake, and the run waits", async () => {
  const wrong = workflow("wrong", async function* () {
    yield* book("a").compensate(() => undefined as never);
    yield* book("b").compensate(() => {
      throw new TypeError("typo");
    });
    yield* book("c").compensate(async function* () {
      yield 5 as never;
      yield* sleep(1);
    });
    throw new Error("enough");
  });
  await inEachCache({ workflows: [wrong] }, async (env) => {
    const run = await env.start(wrong);
    for (const [effect, message] of [
      ["~2", /may yield only effects/],
      ["~1", /typo/],
      ["~0", /What undoes effect 0 returned neither an effect nor an async generator/],
    ] as const) {
      await env.settle();
      const { compensations } = await run.describe();
      const stuck = compensations.find(({ state }) => state === "stuck");
      assert.equal(stuck?.effect, effect);
      assert.match(stuck?.failure?.message ?? "", message);
      await run.skipCompensation(effect);
    }
    await assert.rejects(run.result(), ended("CompensationFailed"));
  });
  assert.throws(() => book("x").compensate((async () => {}) as never), /not an async function/);
  assert.throws(() => book("x").compensate("undo" as never), /takes a function/);
  assert.throws(() => book("x").compensate(() => undo("x"), { when: "later" as never }), /must be one of completed, started/);
  assert.throws(() => book("x").compensate(() => undo("x"), { order: "parallel" } as never), /has no option "order"/);
  assert.throws(() => saga(book("x"), { on: "sometimes" as never }), /`on` of saga must be one of/);
  assert.throws(() => trip({ order: "forward" as never }), /`order` of the compensation of workflow trip must be one of/);
  assert.throws(() => trip({ onFailure: "ignore" as never }), /`onFailure` of the compensation of workflow trip/);
  assert.throws(() => trip({ retry: { maxAttempts: 0 } }), /retry.maxAttempts/);
});

test("a run that undoes and whose code is gone waits for it; an immediate cancellation changes nothing, a termination ends it", async () => {
  const slow = workflow("slow", async function* () {
    yield* book("a").compensate(async function* (what) {
      yield* sleep("1h");
      yield* undo(what);
    });
    throw new Error("enough");
  });
  await inCase({ workflows: [slow] }, async (env) => {
    const [run, other] = [await env.start(slow), await env.start(slow)];
    await env.settle();
    await env.restart({ workflows: [trip()] });
    for (const { id } of [run, other]) await env.client.handle(id).cancel({ mode: "immediate" });
    await env.settle();
    await env.client.handle(other.id).terminate();
    await assert.rejects(other.result(), ended("Terminated"));
    await env.restart({ workflows: [slow] });
    await assert.rejects(run.result(), ended("Compensated", /enough/));
  });
});

test("the kit says that a run waits for a decision", async () => {
  await inCase({ workflows: [trip()] }, async (env) => {
    broken.add("b");
    const run = await env.start(trip());
    await assert.rejects(run.result(), /waits for a decision on compensation ~1 of "book", which failed \(.*b is closed today\)/);
    broken.clear();
    await run.terminate();
  });
});
