import assert from "node:assert/strict";
import { test } from "node:test";
import { Type } from "@sinclair/typebox";
import { ActivityError, ApiError, activity, all, map, NonRetryableError, race, sleep, step, WorkflowError, workflow } from "@wovyr/sdk";
import type { HistoryFact, Turn } from "@wovyr/sdk/internal";
import { historyText, type TestEnvironment } from "@wovyr/testing";
import { crashedAtEachWrite } from "../operations/crashing.ts";
import { inCase, inEachCache } from "./case.ts";

/** Whether the bank is open. */
let open = false;
const bank = { attempts: [] as number[] };
const charge = activity(
  "charge",
  { onExhausted: "pause", output: Type.String(), retry: { maxAttempts: 3, jitter: "none", initialDelay: "1s" } },
  async (amount: number, ctx) => {
    bank.attempts.push(ctx.attempt);
    if (!open) throw Object.assign(new Error("the bank is closed", { cause: new Error("503") }), { code: "BANK_CLOSED" });
    return `paid ${amount}`;
  },
);
const pay = workflow("pay", async function* (amount: number) {
  return yield* charge(amount);
});

const closedBank = () => {
  open = false;
  bank.attempts = [];
};
const facts = (turns: readonly Turn[]): HistoryFact[] => turns.flatMap((turn) => turn.events);
const code =
  (expected: string, text = /./) =>
  (error: unknown) => {
    assert.ok(error instanceof ApiError || error instanceof WorkflowError, String(error));
    assert.equal(error.code, expected);
    assert.match(error.message, text);
    return true;
  };
const letters = async (env: TestEnvironment, query: Parameters<TestEnvironment["client"]["deadLetters"]["list"]>[0] = {}) => {
  const found = [];
  for await (const letter of env.client.deadLetters.list(query)) found.push(letter);
  return found;
};
const onlyLetter = async (env: TestEnvironment) => {
  const all = await letters(env);
  assert.equal(all.length, 1);
  return all[0] as (typeof all)[number];
};
/** A run whose activity is paused. */
const stopped = async (env: TestEnvironment, id = "p1") => {
  const run = await env.start(pay, 7, { id });
  await env.advance("10s");
  return run;
};

test("an activity whose attempts are exhausted waits for a decision; its dead letter tells what happened", async () => {
  await inEachCache({ workflows: [pay] }, async (env) => {
    closedBank();
    const run = await stopped(env);
    const about = await run.describe();
    assert.equal(about.status, "Waiting");
    assert.deepEqual(
      about.activities.map(({ name, state, attempt, lastFailure }) => [name, state, attempt, lastFailure?.message]),
      [["charge", "Paused", 3, "the bank is closed"]],
    );
    const letter = await onlyLetter(env);
    assert.equal(about.activities[0]?.deadLetter, letter.id);
    const { kind, workflow, instanceId, runId, effect, name, attempts, decisions } = letter;
    assert.deepEqual(
      { kind, workflow, instanceId, runId, effect, name, attempts, decisions },
      {
        kind: "activity",
        workflow: "pay",
        instanceId: "p1",
        runId: run.runId,
        effect: "0",
        name: "charge",
        attempts: 3,
        decisions: ["retry", "resolve", "fail"],
      },
    );
    assert.equal(letter.failure.code, "BANK_CLOSED");
    assert.equal(letter.failure.cause?.message, "503");
    assert.match(letter.failure.stack ?? "", /the bank is closed/);
    const details = await env.client.deadLetters.get(letter.id);
    assert.equal(details.input, 7);
    assert.deepEqual(
      details.failures.map(({ attempt, failure }) => [attempt, failure.message]),
      [1, 2, 3].map((attempt) => [attempt, "the bank is closed"]),
    );
    assert.ok(details.firstFailedAt < details.lastFailedAt);
    assert.deepEqual(details.lastFailedAt, letter.at);
    assert.equal(details.version, "1");
    await env.advance("30d");
    assert.equal((await run.describe()).status, "Waiting");
    await run.terminate();
    assert.deepEqual(await letters(env), []);
  });
});

test("retried, it has fresh attempts: they go on counting, and its policy counts anew; exhausted once more, it is another dead letter", async () => {
  await inEachCache({ workflows: [pay] }, async (env) => {
    closedBank();
    const run = await stopped(env);
    const first = await onlyLetter(env);
    await env.client.deadLetters.retry(first.id, { note: "they say it works" });
    await env.advance("10s");
    const second = await onlyLetter(env);
    assert.notEqual(second.id, first.id);
    assert.equal(second.attempts, 6);
    await assert.rejects(env.client.deadLetters.retry(first.id), code("DEAD_LETTER_DECIDED", /decided "retry" \("they say it works"\)/));
    await assert.rejects(env.client.deadLetters.get(first.id), code("DEAD_LETTER_DECIDED"));
    open = true;
    await env.client.deadLetters.retry(second.id);
    assert.equal(await run.result(), "paid 7");
    assert.deepEqual(bank.attempts, [1, 2, 3, 4, 5, 6, 7]);
    assert.deepEqual(await letters(env), []);
    const decisions = facts(await env.turns("p1")).filter((fact) => fact.type === "ActivityDecided");
    assert.deepEqual(
      decisions.map(({ effect, attempt, decision, note }) => [effect, attempt, decision, note]),
      [
        ["0", 3, "retry", "they say it works"],
        ["0", 6, "retry", undefined],
      ],
    );
    await assert.rejects(env.client.deadLetters.fail(second.id), code("DEAD_LETTER_DECIDED", /"retry"/));
  });
});

test("resolved, it completes with what was said, as its schema has it; what does not fit changes nothing", async () => {
  await inEachCache({ workflows: [pay] }, async (env) => {
    closedBank();
    const run = await stopped(env);
    const { id } = await onlyLetter(env);
    const before = (await env.turns("p1")).length;
    await assert.rejects(env.client.deadLetters.resolve(id, { output: 5 }), (error: Error & { code?: string }) => {
      assert.equal(error.code, "INVALID_INPUT");
      assert.match(error.message, /output of activity "charge"/);
      return true;
    });
    await assert.rejects(env.client.deadLetters.resolve(id), { code: "INVALID_INPUT" });
    assert.equal((await env.turns("p1")).length, before);
    assert.equal((await onlyLetter(env)).id, id);
    await env.client.deadLetters.resolve(id, { output: "paid by hand", note: "4711", idempotencyKey: "k" });
    assert.equal(await run.result(), "paid by hand");
    await env.client.deadLetters.resolve(id, { output: "paid by hand", note: "4711", idempotencyKey: "k" });
    await assert.rejects(
      env.client.deadLetters.resolve(id, { output: "paid twice", note: "4711", idempotencyKey: "k" }),
      code("IDEMPOTENCY_CONFLICT"),
    );
    assert.deepEqual(bank.attempts, [1, 2, 3]);
  });
});

test("failed, the workflow gets the failure with its causes", async () => {
  await inEachCache({ workflows: [pay] }, async (env) => {
    closedBank();
    const run = await stopped(env);
    await env.client.deadLetters.fail((await onlyLetter(env)).id, { note: "the customer gave up" });
    await assert.rejects(run.result(), (error: WorkflowError) => {
      const failed = error.cause as ActivityError;
      assert.ok(failed instanceof ActivityError);
      assert.equal(failed.attempts, 3);
      assert.equal((failed.cause as Error & { code?: string }).code, "BANK_CLOSED");
      assert.equal(((failed.cause as Error).cause as Error).message, "503");
      return true;
    });
    assert.deepEqual(await letters(env), []);
  });
});

test("of two people who decide at once, one decides and the other is told so", async () => {
  await inCase({ workflows: [pay] }, async (env) => {
    closedBank();
    const run = await stopped(env);
    const { id } = await onlyLetter(env);
    const outcomes = await Promise.allSettled([
      env.client.deadLetters.resolve(id, { output: "by Ann" }),
      env.client.deadLetters.fail(id, { note: "by Bob" }),
    ]);
    assert.deepEqual(
      outcomes.map(({ status }) => status),
      ["fulfilled", "rejected"],
    );
    code("DEAD_LETTER_DECIDED", /somebody decided "resolve"/)((outcomes[1] as PromiseRejectedResult).reason);
    assert.equal(await run.result(), "by Ann");
  });
});

test("unknown ids, and decisions that mean nothing, are refused", async () => {
  await inCase({ workflows: [pay] }, async (env) => {
    closedBank();
    const run = await stopped(env);
    const { id } = await onlyLetter(env);
    const { deadLetters } = env.client;
    for (const unknown of [
      "nothing",
      "a3.0~nowhere",
      `a2.0~${run.runId}`,
      `a3.1~${run.runId}`,
      `c1.-t0~${run.runId}`,
      `a3.-dzz~${run.runId}`,
    ]) {
      await assert.rejects(deadLetters.get(unknown), code("DEAD_LETTER_NOT_FOUND"), unknown);
      await assert.rejects(deadLetters.retry(unknown), code("DEAD_LETTER_NOT_FOUND"), unknown);
    }
    await assert.rejects(deadLetters.get("no name!"), { code: "INVALID_NAME" });
    await assert.rejects(deadLetters.discard(id), code("DECISION_NOT_POSSIBLE", /retry, resolve, fail/));
    await assert.rejects(deadLetters.retry(id, { output: 1 } as never), { code: "INVALID_OPTION" });
    await assert.rejects(letters(env, { kind: "nothing" as never }), { code: "INVALID_OPTION" });
    assert.equal((await onlyLetter(env)).id, id);
    await run.terminate();
    await assert.rejects(deadLetters.retry(id), code("DEAD_LETTER_DECIDED", /nobody waits for it any more/));
  });
});

test("a failure that is final by rule pauses as well; the call goes over the activity, and that over the workflow", async () => {
  const broken = async () => {
    throw new NonRetryableError("no");
  };
  const pauses = activity("pauses", { onExhausted: "pause" }, broken);
  const plain = activity("plain", broken);
  const fails = activity("fails", { onExhausted: "fail" }, broken);
  const flow = workflow("flow", { onExhausted: "pause" }, async function* () {
    return yield* all([
      pauses(),
      plain(),
      fails().with({ onExhausted: "pause" }),
      step("inline", broken),
      (async function* () {
        for (const call of [pauses().with({ onExhausted: "fail" }), fails()])
          try {
            yield* call;
          } catch (error) {
            assert.ok(error instanceof ActivityError);
          }
      })(),
    ]);
  });
  await inEachCache({ workflows: [flow] }, async (env) => {
    const run = await env.start(flow);
    await env.settle();
    const { activities } = await run.describe();
    assert.deepEqual(
      activities.map(({ name, state }) => `${name} ${state}`),
      ["pauses Paused", "plain Paused", "fails Paused", "inline Paused"],
    );
    for (const { deadLetter = "" } of activities) await env.client.deadLetters.resolve(deadLetter, { output: 1 });
    assert.deepEqual(await run.result(), [1, 1, 1, 1, undefined]);
  });
});

test("everything else of the run goes on, and what is paused may lose a race or be cancelled with its run", async () => {
  let finished = 0;
  const flow = workflow("flow", async function* (how: "race" | "map" | "cancel") {
    if (how === "race") return yield* race([charge(1), sleep("1h")]);
    const results = yield* map([1, 2, 3], async function* (amount) {
      if (amount === 2) return yield* charge(amount);
      yield* sleep("1h");
      finished += 1;
      return String(amount);
    });
    return results.join();
  });
  await inEachCache({ workflows: [flow] }, async (env) => {
    closedBank();
    finished = 0;
    const raced = await env.start(flow, "race");
    await env.advance("10s");
    assert.equal((await letters(env)).length, 1);
    assert.deepEqual(await raced.result(), { winner: 1, value: undefined });
    assert.deepEqual(await letters(env), []);
    const mapped = await env.start(flow, "map");
    await env.advance("2h");
    assert.equal(finished, 2);
    assert.equal((await mapped.describe()).status, "Waiting");
    await env.client.deadLetters.resolve((await onlyLetter(env)).id, { output: "by hand" });
    assert.equal(await mapped.result(), "1,by hand,3");
    const cancelled = await env.start(flow, "map");
    await env.advance("10s");
    const { id } = await onlyLetter(env);
    await cancelled.cancel();
    await assert.rejects(cancelled.result(), (error: WorkflowError) => error.status === "Cancelled");
    assert.deepEqual(await letters(env), []);
    await assert.rejects(env.client.deadLetters.retry(id), code("DEAD_LETTER_DECIDED", /nobody waits/));
  });
});

test("a pause ends when the time of all attempts is over, or that of the run", async () => {
  const slow = charge(1).with({ timeout: { scheduleToClose: "1h" } });
  const limited = workflow("limited", async function* () {
    return yield* slow;
  });
  const short = workflow("short", { timeout: { run: "1h" } }, async function* () {
    return yield* charge(1);
  });
  await inEachCache({ workflows: [limited, short] }, async (env) => {
    closedBank();
    const run = await env.start(limited);
    const other = await env.start(short);
    await env.advance("30m");
    assert.equal((await letters(env)).length, 2);
    await env.restart();
    await env.advance("31m");
    assert.deepEqual(await letters(env), []);
    await assert.rejects(run.result(), (error: WorkflowError) => {
      assert.match(String((error.cause as Error).cause), /took longer than scheduleToClose, 3600000 ms/);
      return true;
    });
    await assert.rejects(other.result(), (error: WorkflowError) => error.status === "TimedOut");
    // After a decision the time of all attempts goes on.
    const again = await env.start(limited);
    await env.advance("50m");
    await env.client.deadLetters.retry((await onlyLetter(env)).id);
    await env.advance("10s");
    await env.advance("20m");
    await assert.rejects(again.result(), /scheduleToClose/);
    assert.deepEqual(await letters(env), []);
  });
});

test("what runs once at most waits for a person when nobody knows its outcome", async () => {
  let calls = 0;
  const transfer = activity("transfer", { semantics: "atMostOnce", onExhausted: "pause", timeout: { startToClose: "1m" } }, async () => {
    calls += 1;
    if (calls === 1) await new Promise(() => {});
    return "done";
  });
  const flow = workflow("flow", async function* () {
    return yield* transfer();
  });
  await inCase({ workflows: [flow] }, async (env) => {
    const run = await env.start(flow);
    await env.advance("2m");
    const letter = await onlyLetter(env);
    assert.equal(letter.failure.code, "OUTCOME_UNKNOWN");
    await env.client.deadLetters.retry(letter.id, { note: "the bank knows of nothing" });
    assert.equal(await run.result(), "done");
    assert.equal(calls, 2);
  });
});

test("a decision for a run that was tried again does not reach the next one", async () => {
  const again = workflow(
    "again",
    { retry: { maxAttempts: 2, initialDelay: "1s", jitter: "none" }, timeout: { run: "1h" } },
    async function* () {
      return yield* charge(1);
    },
  );
  await inCase({ workflows: [again] }, async (env) => {
    closedBank();
    const run = await env.start(again);
    await env.advance("10s");
    const first = await onlyLetter(env);
    await env.advance("61m");
    const second = await onlyLetter(env);
    assert.notEqual(second.runId, first.runId);
    assert.equal(second.effect, first.effect);
    await assert.rejects(env.client.deadLetters.resolve(first.id, { output: "late" }), code("DEAD_LETTER_DECIDED", /nobody waits/));
    await env.client.deadLetters.resolve(second.id, { output: "in time" });
    assert.equal(await run.result(), "in time");
  });
});

test("what undoes is not paused by what the workflow says of its activities", async () => {
  const undo = activity("undo", async () => {
    throw new NonRetryableError("closed");
  });
  const trip = workflow("trip", { onExhausted: "pause" }, async function* () {
    yield* step("book", async () => 1).compensate(() => undo());
    throw new RangeError("no seats");
  });
  await inEachCache({ workflows: [trip] }, async (env) => {
    const run = await env.start(trip);
    await env.settle();
    const stuck = await onlyLetter(env);
    assert.equal((await run.describe()).compensations[0]?.deadLetter, stuck.id);
    assert.deepEqual([stuck.kind, stuck.effect, stuck.name, stuck.decisions], ["compensation", "~0", "book", ["retry", "resolve", "fail"]]);
    await env.client.deadLetters.retry(stuck.id, { note: "once more" });
    await env.settle();
    const again = await onlyLetter(env);
    assert.notEqual(again.id, stuck.id);
    await assert.rejects(env.client.deadLetters.resolve(stuck.id), code("DEAD_LETTER_DECIDED", /"retry" \("once more"\)/));
    assert.deepEqual(
      (await env.client.deadLetters.get(again.id)).failures.map(({ attempt }) => attempt),
      [1, 2],
    );
    await env.client.deadLetters.fail(again.id);
    await assert.rejects(run.result(), (error: WorkflowError) => error.status === "CompensationFailed");
    assert.deepEqual(await letters(env), []);
  });
});

test("dead letters are found by kind, workflow, name, instance, code and time", async () => {
  const other = workflow("other", async function* () {
    return yield* step("lonely", async () => Promise.reject(new NonRetryableError("no")), { onExhausted: "pause" });
  });
  await inCase({ workflows: [pay, other] }, async (env) => {
    closedBank();
    const runs = [];
    for (let index = 0; index < 7; index += 1) runs.push(await env.start(pay, index, { id: `p${index}` }));
    await env.advance("10s");
    const between = new Date(env.clock.now());
    runs.push(await env.start(other, undefined, { id: "o" }));
    await env.settle();
    const ids = async (query: Parameters<typeof letters>[1]) => (await letters(env, query)).map(({ instanceId }) => instanceId).sort();
    assert.deepEqual(await ids({ workflow: other }), ["o"]);
    assert.deepEqual(await ids({ name: "lonely" }), ["o"]);
    assert.deepEqual(await ids({ instanceId: "p3" }), ["p3"]);
    assert.equal((await ids({ code: "BANK_CLOSED" })).length, 7);
    assert.deepEqual(await ids({ code: "NON_RETRYABLE", kind: "activity" }), ["o"]);
    assert.deepEqual(await ids({ kind: "event" }), []);
    assert.deepEqual(await ids({ since: between }), ["o"]);
    assert.equal((await ids({ until: between })).length, 7);
    assert.equal((await letters(env)).length, 8);
    for (const run of runs) await run.terminate();
  });
});

test("with a crash at every write: nothing is lost, and nothing that was recorded is done again", async () => {
  for (const decision of ["retry", "resolve", "fail"] as const) {
    const crashes = await crashedAtEachWrite({ workflows: [pay] }, async ({ env, begin, insist }) => {
      closedBank();
      begin();
      const run = await insist(() => env.start(pay, 7, { id: "p1", idempotencyKey: "start" }));
      for (let waited = 0; waited < 60; waited += 1) {
        if (!env.running) await env.restart();
        await env.advance("1s");
      }
      if (!env.running) await env.restart();
      await env.settle();
      const letter = await onlyLetter(env);
      open = true;
      const before = bank.attempts.length;
      const options = { note: "by Ann", idempotencyKey: "decided", ...(decision === "resolve" && { output: "by hand" }) };
      await insist(() => env.client.deadLetters[decision](letter.id, options));
      await env.settle();
      if (!env.running) await env.restart();
      const outcome = await run.result().catch((error: WorkflowError) => (error.cause as Error).name);
      assert.equal(outcome, { retry: "paid 7", resolve: "by hand", fail: "ActivityError" }[decision]);
      if (decision !== "retry") assert.equal(bank.attempts.length, before);
      const decisions = facts(await env.turns("p1")).filter(({ type }) => type === "ActivityDecided");
      assert.equal(decisions.length, 1);
      assert.deepEqual(await letters(env), []);
    });
    assert.ok(crashes >= 8, `${decision}: ${crashes}`);
  }
});

test("a fork, and a reset, of a run whose activity is paused wait for decisions of their own", async () => {
  const limited = workflow("limited", async function* () {
    return yield* charge(1).with({ timeout: { scheduleToClose: "1d" } });
  });
  await inEachCache({ workflows: [limited] }, async (env) => {
    closedBank();
    const run = await env.start(limited, undefined, { id: "t" });
    await env.advance("10s");
    const fork = await run.fork({ at: "last" });
    await env.settle();
    const next = await run.reset({ to: "last" });
    await env.settle();
    const found = await letters(env);
    assert.deepEqual(found.map(({ runId }) => runId).sort(), [fork.runId, next.runId].sort());
    const ofFork = found.find(({ runId }) => runId === fork.runId);
    await env.client.deadLetters.resolve(ofFork?.id ?? "", { output: "by hand" });
    assert.equal(await fork.result(), "by hand");
    assert.equal((await onlyLetter(env)).runId, next.runId);
    await env.advance("25h");
    await assert.rejects(next.result(), /scheduleToClose/);
    assert.deepEqual(await letters(env), []);
  });
});

test("while its run is paused a decision is recorded, and its code hears of it when the run goes on", async () => {
  await inEachCache({ workflows: [pay] }, async (env) => {
    closedBank();
    const run = await stopped(env);
    const { id } = await onlyLetter(env);
    await run.pause();
    await env.client.deadLetters.resolve(id, { output: "by hand" });
    await env.restart();
    await env.settle();
    assert.equal((await run.describe()).status, "Paused");
    assert.deepEqual(await letters(env), []);
    await assert.rejects(env.client.deadLetters.retry(id), { code: "DEAD_LETTER_DECIDED" });
    await run.resume();
    assert.equal(await run.result(), "by hand");
  });
});

test("an activity of a paused run that is to be tried again begins when the run goes on", async () => {
  await inEachCache({ workflows: [pay] }, async (env) => {
    closedBank();
    const run = await stopped(env);
    const { id } = await onlyLetter(env);
    await run.pause();
    open = true;
    const before = env.executions.total;
    await env.client.deadLetters.retry(id);
    await env.settle();
    assert.equal(env.executions.total, before);
    await env.restart();
    await env.settle();
    assert.equal(env.executions.total, before);
    await run.resume();
    await run.result();
    assert.equal(env.executions.total, before + 1);
  });
});

test("a decision on an activity that keeps ending its process: it runs alone, and its losses count on", async () => {
  let deaths = 0;
  const deadly = activity("deadly", { onExhausted: "pause" }, async () => {
    deaths += 1;
    if (deaths <= 8) {
      environment?.crash();
      await new Promise(() => {});
    }
    return "alive";
  });
  let environment: TestEnvironment | undefined;
  const flow = workflow("flow", async function* () {
    yield* sleep("1s");
    return yield* deadly();
  });
  await inCase({ workflows: [flow] }, async (env) => {
    environment = env;
    const run = await env.start(flow);
    await env.advance("1s");
    const live = async () => {
      for (let lives = 0; lives < 10; lives += 1) {
        // As long as what is suspect waits.
        await env.advance("10s");
        if (env.running) return;
        await env.restart();
      }
    };
    await live();
    const letter = await onlyLetter(env);
    assert.equal(letter.failure.code, "ATTEMPTS_LOST");
    assert.equal(deaths, 5);
    const retry = async (id: string) => {
      const retried = env.client.deadLetters.retry(id).catch((error: ApiError) => assert.equal(error.code, "UNREACHABLE"));
      await live();
      await retried;
    };
    await retry(letter.id);
    // It has as many losses as make it a suspect, and two more end it.
    assert.equal(deaths, 7);
    await retry((await onlyLetter(env)).id);
    assert.equal(await run.result(), "alive");
    assert.equal(deaths, 9);
  });
});

test("what is paused and no longer wanted leaves nothing behind, while its run goes on", async () => {
  const flow = workflow("flow", async function* () {
    const limited = () => charge(1).with({ timeout: { scheduleToClose: "1d" } });
    const raced = yield* race([limited(), sleep("1m")]);
    const resolved = yield* limited();
    yield* sleep("1h");
    return [raced.winner, resolved];
  });
  await inEachCache({ workflows: [flow] }, async (env) => {
    closedBank();
    const rows = async () => (await env.bareStore.listTimers(env.engine.ownership.shards, 8.64e15, 100)).map(({ effect }) => effect);
    const run = await env.start(flow);
    await env.advance("10s");
    const { id } = await onlyLetter(env);
    assert.deepEqual((await rows()).sort(), ["0.0!close", "0.1"]);
    await env.advance("55s");
    const next = await onlyLetter(env);
    assert.notEqual(next.id, id);
    await env.client.deadLetters.resolve(next.id, { output: "by hand" });
    assert.deepEqual(await letters(env), []);
    assert.deepEqual(await rows(), ["2"]);
    assert.deepEqual(await run.result(), [1, "by hand"]);
  });
});

test("a run that only waits for a decision is at rest: it is listed as waiting, and takes no place", async () => {
  const transfer = activity("transfer", { semantics: "atMostOnce", onExhausted: "pause" }, async () => Promise.reject(new Error("no")));
  const flow = workflow("flow", async function* () {
    return yield* transfer();
  });
  await inCase({ workflows: [flow, pay], limits: { activities: 1 } }, async (env) => {
    open = true;
    const run = await env.start(flow, undefined, { id: "t" });
    await env.settle();
    await env.restart();
    await env.settle();
    const waiting = [];
    for await (const { id } of env.client.list({ status: "Waiting" })) waiting.push(id);
    assert.deepEqual(waiting, ["t"]);
    await run.describe();
    assert.equal(await env.execute(pay, 3), "paid 3");
    await run.terminate();
  });
});

test("what is resolved is what the activity's schema makes of it, and the same decision is known by what was said", async () => {
  const trimmed = {
    "~standard": { version: 1, vendor: "test", validate: (value: unknown) => ({ value: String(value).trim() }) },
  } as const;
  const read = activity("read", { onExhausted: "pause", output: trimmed as never, retry: { maxAttempts: 1 } }, (async () => {
    throw new Error("no");
  }) as never);
  const flow = workflow("flow", async function* () {
    return (yield* read(undefined as never)) as unknown;
  });
  await inEachCache({ workflows: [flow] }, async (env) => {
    const run = await env.start(flow);
    await env.settle();
    const { id } = await onlyLetter(env);
    for (let again = 0; again < 2; again += 1) await env.client.deadLetters.resolve(id, { output: "  by hand ", idempotencyKey: "k" });
    assert.equal(await run.result(), "by hand");
  });
});

test("the kit says what a run waits for that nobody decides on, and where the decisions are", async () => {
  await inCase({ workflows: [pay] }, async (env) => {
    closedBank();
    const run = await env.start(pay, 7);
    await assert.rejects(
      run.result(),
      /waits for a decision on activity "charge", which failed \(the bank is closed\) and is paused: retry, resolve or fail its dead letter/,
    );
    assert.match(
      historyText(await env.history(run.id)),
      /> ActivityFailed \[0\] attempt 3 Error "the bank is closed" .*paused \(no retry: maxAttempts\)/,
    );
    for await (const { id } of env.deadLetters.list()) await env.deadLetters.resolve(id, { output: "by hand" });
    assert.equal(await run.result(), "by hand");
    assert.match(historyText(await env.history(run.id)), /> ActivityDecided \[0\] attempt 3 resolve "by hand"/);
  });
});

test("an exported run whose activity is paused waits for its decision where it was imported", async () => {
  const lines: string[] = [];
  await inCase({ workflows: [pay] }, async (env) => {
    closedBank();
    const run = await stopped(env);
    await env.client.deadLetters.retry((await onlyLetter(env)).id, { note: "once more" });
    await env.advance("10s");
    for await (const line of run.export()) lines.push(line);
  });
  await inCase({ workflows: [pay] }, async (env) => {
    await env.client.import(lines);
    await env.settle();
    const letter = await onlyLetter(env);
    assert.deepEqual([letter.instanceId, letter.attempts, letter.failure.code], ["p1", 6, "BANK_CLOSED"]);
    await env.client.deadLetters.resolve(letter.id, { output: "by hand" });
    assert.equal(await env.client.handle(pay, "p1").result(), "by hand");
  });
});

test("parked is something else: such runs are listed by their status, told with the reason, and are no dead letters", async () => {
  let version = 1;
  const flow = workflow("flow", async function* () {
    if (version === 1) yield* sleep("1h");
    else yield* step("other", async () => 1);
    return "done";
  });
  await inCase({ workflows: [flow] }, async (env) => {
    const run = await env.start(flow, undefined, { id: "f" });
    await env.settle();
    version = 2;
    await env.restart();
    await env.advance("2h");
    const parked = [];
    for await (const { id } of env.client.list({ status: "Parked" })) parked.push(id);
    assert.deepEqual(parked, ["f"]);
    assert.equal((await run.describe()).parked?.code, "HISTORY_DIVERGED");
    assert.deepEqual(await letters(env), []);
    version = 1;
    await run.resume();
    assert.equal(await run.result(), "done");
  });
});

test("values of dead letters and decisions pass the codec; an output that cannot be stored is refused, and the run goes on waiting", async () => {
  const upsideDown = async (payload: string) => {
    if (payload.includes("poison")) throw new Error("no key for this");
    return [...payload].reverse().join("");
  };
  const leaking = activity("leaking", { onExhausted: "pause", retry: { maxAttempts: 1 } }, async (_: string): Promise<string> => {
    throw Object.assign(new Error("no"), { secret: "the pin is 1234" });
  });
  const flow = workflow("flow", async function* () {
    return yield* leaking("my card");
  });
  await inCase({ workflows: [flow], codec: { name: "upside-down", encode: upsideDown, decode: upsideDown } }, async (env) => {
    const run = await env.start(flow);
    await env.settle();
    const letter = await onlyLetter(env);
    assert.deepEqual(letter.failure.fields, { secret: "the pin is 1234" });
    assert.equal((await env.client.deadLetters.get(letter.id)).input, "my card");
    const stored = await env.bareStore.getDeadLetter({ tenant: "default", run: run.runId, effect: "0" });
    assert.ok(!stored?.failure.includes("1234"));
    await assert.rejects(env.client.deadLetters.resolve(letter.id, { output: "poison" }), { code: "PAYLOAD_UNSERIALIZABLE" });
    assert.equal((await onlyLetter(env)).id, letter.id);
    await env.client.deadLetters.resolve(letter.id, { output: "by hand" });
    assert.equal(await run.result(), "by hand");
    assert.ok(!JSON.stringify(await env.bareStore.readHistory({ tenant: "default", run: run.runId }, 1, 100)).includes("by hand"));
  });
});
