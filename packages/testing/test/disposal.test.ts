import assert from "node:assert/strict";
import { test } from "node:test";
import { activity, sleep, workflow } from "@wovyr/sdk";
import { createTestEnvironment, fake } from "@wovyr/testing";
import { outcomeOf } from "./support/outcome-of.ts";

const nap = workflow("nap", async function* () {
  yield* sleep("1 day");
  return "up";
});

test("disposal rejects whoever waits, and says for what", async () => {
  const env = await createTestEnvironment({ workflows: [nap], autoSkip: false });
  const run = await env.start(nap, undefined, { id: "n" });
  const waits = {
    "the result of n": run.result(),
    'env.sleep("1h")': env.sleep("1h"),
    "a condition": env.until(() => false),
    "env.advance": env.advance("1h"),
    "the answer to describe() of n": run.describe(),
  };
  const told = Object.entries(waits).map(async ([what, wait]) => {
    const error: unknown = await wait.then(
      () => "it came",
      (error: Error) => error.message,
    );
    assert.ok(String(error).startsWith(`the environment was disposed while the test waited for ${what}`), String(error));
  });
  await env[Symbol.asyncDispose]();
  await Promise.all(told);
  await env[Symbol.asyncDispose]();
});

test("whatever is asked of a disposed environment is rejected, and tells why", async () => {
  const env = await createTestEnvironment({ workflows: [nap] });
  const run = await env.start(nap);
  await env[Symbol.asyncDispose]();
  const message = "this environment has been disposed; did you forget an `await`?";
  const calls: (() => Promise<unknown>)[] = [
    () => env.start(nap),
    () => env.execute(nap),
    () => run.result(),
    () => run.describe(),
    () => env.advance("1h"),
    () => env.advanceTo(new Date("2027-01-01")),
    () => env.sleep("1h"),
    () => env.until(() => true),
    () => env.settle(),
    () => env.history(run.id),
    () => env.restart(),
    () => env.stop(),
    () => env.evict(),
    () => env.insist(() => env.start(nap)),
  ];
  for (const call of calls) await assert.rejects(call, { message }, String(call));
});

test("a condition after one that was rejected is waited for", async () => {
  await using env = await createTestEnvironment({ workflows: [nap] });
  for (let time = 0; time < 5; time++)
    await assert.rejects(
      env.until(() => false),
      /the condition does not hold/,
    );
  const run = await env.start(nap);
  await assert.rejects(
    env.until(() => {
      throw new RangeError("wrong");
    }),
    RangeError,
  );
  assert.equal(await run.result(), "up");
});

test("a condition may be asynchronous: it is asked again when its answer has come", async () => {
  await using env = await createTestEnvironment({ workflows: [nap] });
  const run = await env.start(nap);
  let asked = 0;
  let open = 0;
  await env.until(async () => {
    asked += 1;
    open += 1;
    assert.equal(open, 1, "one at a time");
    const { status } = await run.describe();
    open -= 1;
    return status === "Completed";
  });
  assert.ok(asked >= 2);
  assert.equal(env.now().toISOString(), "2026-01-02T00:00:00.000Z");
  await env.until(() => new Promise((resolve) => setTimeout(resolve, 10, true)));
  await assert.rejects(
    env.until(async () => false),
    /the condition does not hold/,
  );
  await assert.rejects(
    env.until(async () => {
      throw new RangeError("wrong");
    }),
    RangeError,
  );
  await assert.rejects(env.until(true as never), { code: "INVALID_OPTION" });
});

const head = `
import assert from "node:assert/strict";
import { test } from "node:test";
import { activity, sleep, workflow } from "@wovyr/sdk";
import { createTestEnvironment, fake } from "@wovyr/testing";
const nap = workflow("nap", async function* () { yield* sleep("1 day"); });
const work = activity("work", async () => "real");
const one = workflow("one", async function* () { return yield* work(); });
`;

test("a forgotten await fails the test that forgot it, and no other", () => {
  for (const call of ["env.start(nap)", "env.execute(nap)", 'env.advance("2 days")', "env.restart()"]) {
    const { text } = outcomeOf(`${head}
test("forgets", async () => {
  await using env = await createTestEnvironment({ workflows: [nap] });
  ${call};
});
test("innocent", async () => {
  await using env = await createTestEnvironment({ workflows: [nap] });
  await env.execute(nap);
});
`);
    assert.match(text, /not ok 1 - forgets/, call);
    assert.match(text, /\nok 2 - innocent/, call);
    assert.match(text, /disposed while the test waited for .*did you forget an `await`/, call);
  }
});

test("what an activity of a disposed environment leaves behind is blamed on nobody else", () => {
  const { text } = outcomeOf(`${head}
test("gone", async () => {
  const careless = fake(work, async () => { setTimeout(() => void Promise.reject(new Error("late")), 30); return "fake"; });
  await using env = await createTestEnvironment({ workflows: [one], fakes: [careless] });
  await env.execute(one);
});
test("innocent", async () => {
  await using env = await createTestEnvironment({ workflows: [nap] });
  await new Promise((resolve) => setTimeout(resolve, 100));
  await env.execute(nap);
});
`);
  assert.match(text, /\nok 2 - innocent/);
  assert.match(text, /after its test environment was disposed: unhandled rejection in activity "work"/);
});

test("what is wrong with the fakes fails the test, also where the workflow catches it", async () => {
  const work = activity("work", async () => "real");
  const careful = workflow("careful", async function* () {
    try {
      yield* work();
      return yield* work();
    } catch {
      return "caught";
    }
  });
  const trouble = async (options: object, message: RegExp) => {
    const env = await createTestEnvironment({ workflows: [careful], ...options });
    await assert.rejects(env.execute(careful), message);
    await env[Symbol.asyncDispose]();
  };
  await trouble({ unfaked: "refuse" }, /activity "work" has no fake/);
  await trouble({ fakes: [fake(work, [])] }, /has 0 answers and was asked for one more/);
  const misspelt = fake("wrok", async () => "fake");
  const env = await createTestEnvironment({ workflows: [careful], fakes: [misspelt], strictFakes: true });
  assert.equal(await env.execute(careful), "real");
  assert.deepEqual(env.unusedFakes, [misspelt]);
  await assert.rejects(env[Symbol.asyncDispose](), /the fake of activity "wrok" was never called/);
});

test("a gate whose call never comes says so when the process ends", () => {
  const { code, text } = outcomeOf(`${head.replace("fake }", "fake, Gate }")}
test("waits", async () => {
  const gate = new Gate();
  await using env = await createTestEnvironment({ workflows: [one], fakes: [fake(work, gate.body)] });
  await gate.arrived("x");
});
`);
  assert.equal(code, 1);
  assert.match(text, /waits for gate\.arrived\("x"\), and no call comes.*env\.until\(\(\) => gate\.waiting\.includes\("x"\)\)/);
});
