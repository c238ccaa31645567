import assert from "node:assert/strict";
import { test } from "node:test";
import { activity, awaitEvent, event, sleep, workflow } from "@wovyr/sdk";
import { checkEndOfCase, createTestEnvironment, fake, Gate } from "@wovyr/testing";
import { outcomeOf } from "./support/outcome-of.ts";

const head = `
import assert from "node:assert/strict";
import { test } from "node:test";
import { activity, awaitEvent, event, sleep, workflow } from "@wovyr/sdk";
import { createTestEnvironment, fake } from "@wovyr/testing";
const work = activity("work", async () => "real");
const Go = event("go");
const one = workflow("one", async function* () { return yield* work(); });
`;

test("a rejection that a fake leaves unhandled fails the test that caused it, and no other", () => {
  const { code, text } = outcomeOf(`${head}
test("quiet before", async () => {
  await using env = await createTestEnvironment({ workflows: [one] });
  assert.equal(await env.execute(one), "real");
});
test("guilty", async () => {
  await using env = await createTestEnvironment({ workflows: [one], fakes: [fake(work, async () => { void Promise.reject(new RangeError("forgotten")); return "fake"; })] });
  await env.execute(one);
});
test("quiet after", async () => {
  await using env = await createTestEnvironment({ workflows: [one] });
  assert.equal(await env.execute(one), "real");
});
`);
  assert.equal(code, 1);
  assert.match(text, /ok 1 - quiet before/);
  assert.match(text, /not ok 2 - guilty/);
  assert.match(text, /ok 3 - quiet after/);
  assert.match(text, /forgotten/);
});

test("a test whose activity never ends fails at once and says what is running", () => {
  const { code, text } = outcomeOf(`${head}
test("stuck", async () => {
  await using env = await createTestEnvironment({ workflows: [one], fakes: [fake(work, () => new Promise(() => {}))] });
  await env.execute(one, undefined, { id: "i" });
});
`);
  assert.equal(code, 1);
  assert.match(
    text,
    /The test waits for the result of i: activity "work" \(attempt 1, instance i\) is running, and nothing in this process can end it/,
  );
});

test("a test that waits in manual mode, and moves no time, fails at once and says so", () => {
  const { code, text } = outcomeOf(`${head}
const nap = workflow("nap", async function* () { yield* sleep("1 day"); });
test("stuck", async () => {
  await using env = await createTestEnvironment({ workflows: [nap], autoSkip: false });
  await env.execute(nap);
});
`);
  assert.equal(code, 1);
  assert.match(text, /time is moved by hand here, and nobody moves it on/);
});

test("a deadlock fails at once: every run waits, and no timer is open", async () => {
  const Go = event("go");
  const patient = workflow("patient", async function* () {
    yield* awaitEvent(Go);
  });
  await using env = await createTestEnvironment({ workflows: [patient] });
  const began = performance.now();
  await assert.rejects(env.execute(patient, undefined, { id: "p" }), /p will never end: .*event "go" at .*trouble\.test\.ts:\d+/);
  assert.ok(performance.now() - began < 500);
});

test("whoever waits learns of an unhandled rejection at once, with the activity that caused it", async () => {
  const work = activity("work", async () => "real");
  const slow = workflow("slow", async function* () {
    yield* work();
    yield* sleep("1 day");
  });
  const careless = fake(work, async () => {
    void Promise.reject(new RangeError("forgotten"));
    return "fake";
  });
  const env = await createTestEnvironment({ workflows: [slow], fakes: [careless] });
  // The runner of this test must not take the rejection for its own.
  const listeners = process.listeners("unhandledRejection");
  const [own] = listeners.slice(-1);
  for (const listener of listeners) if (listener !== own) process.off("unhandledRejection", listener);
  try {
    await assert.rejects(
      env.execute(slow, undefined, { id: "s" }),
      /unhandled rejection in activity "work" \(attempt 1, instance s\): RangeError: forgotten/,
    );
    assert.equal(env.trouble.length, 1);
  } finally {
    for (const listener of listeners) if (listener !== own) process.on("unhandledRejection", listener);
    await env[Symbol.asyncDispose]();
  }
});

test("an event's fake that throws fails those who wait", async () => {
  const Go = event("go");
  const patient = workflow("patient", async function* () {
    yield* awaitEvent(Go);
  });
  const wrong = fake(Go, () => {
    throw new RangeError("wrong fake");
  });
  await using env = await createTestEnvironment({ workflows: [patient], fakes: [wrong] });
  await assert.rejects(env.execute(patient), /wrong fake/);
});

test("a node that wakes after its shards were taken can write nothing", async () => {
  const gate = new Gate<undefined, string>(() => "work");
  const work = activity("work", gate.body);
  const two = workflow("two", async function* () {
    const value = yield* work();
    yield* sleep("1 day");
    return value;
  });
  await using env = await createTestEnvironment({ workflows: [two] });
  const run = await env.start(two);
  await env.settle();
  const zombie = env.freeze();
  await env.restart();
  const result = run.result();
  await gate.arrived();
  gate.open("work", "of the frozen");
  gate.open("work", "done");
  assert.equal(await result, "done");
  await zombie.thaw();
  assert.deepEqual(env.trouble, []);
  await checkEndOfCase(env);
});
