/** Runs and events as dead letters, and decisions on many at once. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { activity, all, awaitEvent, event, send, sleep, step, Type, type WorkflowError, WovyrError, workflow } from "@wovyr/sdk";
import type { DeadLetterQuery, DecideAllOptions } from "@wovyr/sdk/client";
import type { TestEnvironment } from "@wovyr/testing";
import { routedOperations } from "../../src/engine/routed-operations.ts";
import { crashedAtEachWrite } from "../operations/crashing.ts";
import { inCase, inEachCache } from "./case.ts";

let open = false;
const calls: number[] = [];
const charge = activity("charge", { onExhausted: "pause", output: Type.String(), retry: { maxAttempts: 1 } }, async (amount: number) => {
  calls.push(amount);
  if (!open) throw Object.assign(new Error("the bank is closed"), { code: "BANK_CLOSED" });
  return `paid ${amount}`;
});
const pay = workflow("pay", async function* (amount: number) {
  return yield* charge(amount);
});
const closedBank = () => {
  open = false;
  calls.length = 0;
};

const code = (expected: string) => (error: unknown) => error instanceof WovyrError && error.code === expected;
const letters = async (env: TestEnvironment, query: DeadLetterQuery = {}) => {
  const found = [];
  for await (const letter of env.client.deadLetters.list(query)) found.push(letter);
  return found;
};
const finished = async (
  env: TestEnvironment,
  decision: "retry" | "resolve" | "fail" | "discard",
  of: object,
  options: DecideAllOptions = {},
) => {
  const id = await env.client.deadLetters.decideAll(decision, of, options);
  await env.until(async () => (await env.client.batches.get(id)).closedAt !== undefined);
  const { status, done, failed, failures } = await env.client.batches.get(id);
  return { status, done, failed, codes: failures.map((failure) => failure.code) };
};

test("a run that failed is a dead letter where its workflow says so; retried, it is a new run of its id, started once", async () => {
  let broken = true;
  const flow = workflow("flow", { deadLetter: true }, async function* (amount: number) {
    const isBroken = yield* step("look", async () => broken);
    if (isBroken) throw Object.assign(new RangeError("no seats"), { code: "NO_SEATS" });
    return amount * 2;
  });
  const plain = workflow("plain", async function* () {
    throw new Error("not kept");
  });
  await inEachCache({ workflows: [flow, plain] }, async (env) => {
    broken = true;
    await assert.rejects(env.execute(plain));
    const run = await env.start(flow, 21, { id: "f", attributes: { color: "red" }, memo: { by: "me" } });
    await assert.rejects(run.result());
    const [letter, none] = await letters(env);
    assert.equal(none, undefined);
    assert.deepEqual(
      [letter?.kind, letter?.name, letter?.instanceId, letter?.runId, letter?.failure.code, letter?.decisions],
      ["workflow", "flow", "f", run.runId, "NO_SEATS", ["retry", "discard"]],
    );
    const id = letter?.id ?? "";
    assert.equal((await env.client.deadLetters.get(id)).input, 21);
    await assert.rejects(env.client.deadLetters.resolve(id, { output: 1 }), code("DECISION_NOT_POSSIBLE"));
    broken = false;
    await env.client.deadLetters.retry(id, { note: "fixed" });
    const again = env.client.handle(flow, "f");
    assert.equal(await again.result(), 42);
    const about = await again.describe();
    assert.deepEqual([about.attributes, about.memo], [{ color: "red" }, { by: "me" }]);
    assert.deepEqual(await letters(env), []);
    await assert.rejects(env.client.deadLetters.retry(id), code("DEAD_LETTER_DECIDED"));
    await assert.rejects(env.client.deadLetters.get(id), code("DEAD_LETTER_DECIDED"));
  });
});

test("a run that timed out, or undid what it did, is one as well; one that was cancelled or terminated, or is tried again, is not", async () => {
  const late = workflow("late", { deadLetter: true, timeout: { run: "1m" } }, async function* () {
    yield* sleep("1h");
  });
  const undone = workflow("undone", { deadLetter: true }, async function* (fails: boolean) {
    yield* step("book", async () => 1).compensate(() => step("unbook", async () => {}));
    if (fails) throw new Error("no seats");
    yield* sleep("1h");
  });
  const again = workflow("again", { deadLetter: true, retry: { maxAttempts: 2, initialDelay: "1s" } }, async function* () {
    throw new Error("twice");
  });
  await inEachCache({ workflows: [late, undone, again] }, async (env) => {
    await assert.rejects(env.execute(late), { status: "TimedOut" });
    await assert.rejects(env.execute(undone, true), { status: "Compensated" });
    const cancelled = await env.start(undone, false);
    await env.settle();
    await cancelled.cancel({ mode: "compensate" });
    await assert.rejects(cancelled.result(), { status: "Compensated" });
    const terminated = await env.start(late);
    await terminated.terminate();
    await assert.rejects(env.execute(again));
    assert.deepEqual((await letters(env)).map(({ name, attempts }) => [name, attempts]).sort(), [
      ["again", 2],
      ["late", 1],
      ["undone", 1],
    ]);
    assert.deepEqual(await finished(env, "discard", { kind: "workflow" }), { status: "Completed", done: 3, failed: 0, codes: [] });
    assert.deepEqual(await letters(env), []);
  });
});

const Ping = event("ping", Type.Number());
const listener = workflow("listener", { events: [Ping] }, async function* () {
  return yield* awaitEvent(Ping);
});
const sender = workflow("sender", async function* (to: string) {
  yield* send(to, Ping, 7);
  return "sent";
});

test("of those who decide at once on an event or a run one is heard: what was discarded is not done", async () => {
  const failing = workflow("failing", { deadLetter: true }, async function* () {
    throw new Error("no");
  });
  await inEachCache({ workflows: [listener, sender, failing] }, async (env) => {
    const { deadLetters } = env.client;
    const twice = async (id: string, first: "retry" | "discard", second: "retry" | "discard") => {
      const outcomes = await Promise.allSettled([deadLetters[first](id), deadLetters[second](id)]);
      assert.deepEqual(
        outcomes.map(({ status }) => status),
        ["fulfilled", "rejected"],
      );
      await assert.rejects(deadLetters.retry(id), code("DEAD_LETTER_DECIDED"));
    };
    await env.execute(sender, "late");
    const [event] = await letters(env, { kind: "event" });
    const late = await env.start(listener, undefined, { id: "late" });
    await twice(event?.id ?? "", "discard", "retry");
    await env.settle();
    assert.equal((await late.describe()).status, "Waiting");
    await env.execute(sender, "late");
    const run = await env.start(failing, undefined, { id: "failing" });
    await assert.rejects(run.result());
    const [letter] = await letters(env, { kind: "workflow" });
    await twice(letter?.id ?? "", "discard", "retry");
    await env.settle();
    assert.equal((await env.client.handle("failing").describe()).runId, run.runId);
  });
});

test("an event that reaches no run is a dead letter: sent again it arrives once, or it is discarded", async () => {
  await inEachCache({ workflows: [listener, sender] }, async (env) => {
    assert.equal(await env.execute(sender, "nobody", { id: "s" }), "sent");
    const [letter] = await letters(env, { kind: "event", name: "ping" });
    const id = letter?.id ?? "";
    assert.deepEqual([letter?.workflow, letter?.instanceId, letter?.failure.code], ["sender", "s", "INSTANCE_NOT_FOUND"]);
    assert.deepEqual((await env.client.deadLetters.get(id)).input, { to: "nobody", event: "ping", payload: 7 });
    await assert.rejects(env.client.deadLetters.retry(id), code("INSTANCE_NOT_FOUND"));
    assert.equal((await letters(env)).length, 1);
    const run = await env.start(listener, undefined, { id: "nobody" });
    await env.client.deadLetters.retry(id);
    assert.equal(await run.result(), 7);
    assert.deepEqual(await letters(env), []);
    // It has ended now.
    await env.execute(sender, "nobody");
    const [closed] = await letters(env);
    assert.equal(closed?.failure.code, "INSTANCE_CLOSED");
    await env.client.deadLetters.discard(closed?.id ?? "", { note: "too late" });
    assert.deepEqual(await letters(env), []);
    assert.ok(env.logs.some(({ message, data }) => /decided on: discard/.test(message) && (data as { note?: string }).note === "too late"));
  });
});

test("many are decided on alike, each once, and what stands in the way of one is told", async () => {
  await inCase({ workflows: [pay] }, async (env) => {
    closedBank();
    const count = 1_050;
    const starts = Array.from({ length: count }, (_, amount) => ({ input: amount, id: `p${amount}` }));
    await env.client.startBatch(pay, starts);
    await env.settle();
    open = true;
    const retried = await finished(env, "retry", { workflow: pay, code: "BANK_CLOSED" }, { note: "Monday" });
    assert.deepEqual(retried, { status: "Completed", done: count, failed: 0, codes: [] });
    await env.settle();
    assert.deepEqual(await letters(env), []);
    assert.equal(calls.length, 2 * count);
    for (const amount of [0, 500, count - 1]) assert.equal(await env.client.handle(pay, `p${amount}`).result(), `paid ${amount}`);
  });
});

test("what is exhausted once more by a decision on many is left for the next one", async () => {
  await inCase({ workflows: [pay] }, async (env) => {
    closedBank();
    const runs = [];
    for (let amount = 0; amount < 3; amount += 1) runs.push(await env.start(pay, amount));
    await env.settle();
    assert.equal((await finished(env, "retry", {})).done, 3);
    await env.settle();
    const left = await letters(env);
    assert.deepEqual([...new Set(left.map(({ attempts }) => attempts))], [2]);
    assert.equal(calls.length, 6);
    const ids = left.map(({ id }) => id);
    const wrong = await finished(env, "resolve", { ids }, { output: 5 });
    assert.deepEqual([wrong.done, wrong.failed, wrong.codes], [0, 3, ["INVALID_INPUT", "INVALID_INPUT", "INVALID_INPUT"]]);
    const some = await finished(env, "resolve", { ids: ["a1.0~none", ...ids.slice(1)] }, { output: "by hand" });
    assert.deepEqual([some.done, some.failed, some.codes], [2, 1, ["DEAD_LETTER_NOT_FOUND"]]);
    assert.deepEqual(
      (await letters(env)).map(({ id }) => id),
      ids.slice(0, 1),
    );
    assert.equal((await finished(env, "fail", { name: "charge" })).done, 1);
    const outcomes = await Promise.allSettled(runs.map((run) => run.result()));
    assert.deepEqual(outcomes.map(({ status }) => status).sort(), ["fulfilled", "fulfilled", "rejected"]);
    const { deadLetters } = env.client;
    await assert.rejects(deadLetters.decideAll("retry", { ids, name: "charge" }), code("INVALID_OPTION"));
    await assert.rejects(deadLetters.decideAll("retry", { ids: [] }), code("INVALID_OPTION"));
    await assert.rejects(deadLetters.decideAll("retry", { ids: Array.from({ length: 1_001 }, () => "a1.0~x") }), code("INVALID_OPTION"));
    await assert.rejects(deadLetters.decideAll("fail", {}, { output: 1 }), code("INVALID_OPTION"));
    await assert.rejects(deadLetters.decideAll("skip" as never, {}), code("INVALID_OPTION"));
  });
});

test("several of one run are decided on by one batch", async () => {
  const pair = workflow("pair", async function* () {
    return yield* all([charge(1), charge(2)]);
  });
  await inCase({ workflows: [pair] }, async (env) => {
    closedBank();
    const run = await env.start(pair);
    await env.settle();
    open = true;
    assert.equal((await finished(env, "retry", {}, { note: "both" })).done, 2);
    assert.deepEqual(await run.result(), ["paid 1", "paid 2"]);
  });
});

test("a decision on many goes on after a crash at every write, and does nothing twice", async () => {
  const crashes = await crashedAtEachWrite({ workflows: [pay] }, async ({ env, begin, insist }) => {
    closedBank();
    for (let amount = 0; amount < 3; amount += 1) await env.start(pay, amount, { id: `p${amount}` });
    await env.settle();
    open = true;
    begin();
    const id = await insist(() => env.client.deadLetters.decideAll("retry", { workflow: pay }, { idempotencyKey: "monday" }));
    for (let lives = 0; lives < 5; lives += 1) {
      await env.settle();
      if (!env.running) await env.restart();
      await env.advance("5m");
    }
    const { done, failed } = await env.client.batches.get(id);
    assert.deepEqual([done, failed], [3, 0]);
    for (let amount = 0; amount < 3; amount += 1) {
      assert.equal(await env.client.handle(pay, `p${amount}`).result(), `paid ${amount}`);
      const decisions = (await env.turns(`p${amount}`)).flatMap(({ events }) => events.filter(({ type }) => type === "ActivityDecided"));
      assert.equal(decisions.length, 1);
    }
    assert.deepEqual(await letters(env), []);
  });
  assert.ok(crashes >= 8, String(crashes));
});

test("another tenant sees nothing, and can decide on nothing", async () => {
  await inCase({ workflows: [pay] }, async (env) => {
    closedBank();
    const run = await env.start(pay, 1);
    await env.settle();
    const [letter] = await letters(env);
    const other = routedOperations("other", () => env.engine, new Map());
    assert.deepEqual((await other.listDeadLetters()).items, []);
    await assert.rejects(other.getDeadLetter(letter?.id ?? ""), code("DEAD_LETTER_NOT_FOUND"));
    await assert.rejects(other.decideDeadLetter(letter?.id ?? "", "retry"), code("DEAD_LETTER_NOT_FOUND"));
    await env.client.deadLetters.fail(letter?.id ?? "");
    await assert.rejects(run.result(), (error: WorkflowError) => error.status === "Failed");
  });
});

test("runs and events are decided on once by a batch that crashes at every write", async () => {
  const gone = workflow("gone", { deadLetter: true }, async function* () {
    throw new Error("no");
  });
  const crashes = await crashedAtEachWrite({ workflows: [gone, sender] }, async ({ env, begin, insist }) => {
    for (let n = 0; n < 3; n += 1) {
      await assert.rejects(env.execute(gone));
      await env.execute(sender, "nobody");
    }
    assert.equal((await letters(env)).length, 6);
    begin();
    const id = await insist(() => env.client.deadLetters.decideAll("discard", {}, { idempotencyKey: "monday" }));
    for (let lives = 0; lives < 5; lives += 1) {
      await env.settle();
      if (!env.running) await env.restart();
      await env.advance("5m");
    }
    const { done, failed } = await env.client.batches.get(id);
    assert.deepEqual([done, failed], [6, 0]);
    assert.deepEqual(await letters(env), []);
  });
  assert.ok(crashes >= 4, String(crashes));
});
