import assert from "node:assert/strict";
import { describe, it } from "node:test";
import * as w from "../../src/index.ts";

const Order = w.Type.Object({ id: w.Type.String() });
// biome-ignore lint/suspicious/noExplicitAny: mistakes that TypeScript would catch
const untyped = w as any;

class OutOfStock extends Error {}

describe("an activity", () => {
  const run = async (order: { id: string }) => order.id;
  const reserve = w.activity(
    "reserve",
    { input: Order, retry: { maxAttempts: 3 }, timeout: { startToClose: "30s" }, errors: [OutOfStock] },
    run,
  );

  it("is a frozen function that knows its definition", () => {
    assert.equal(reserve.activity, "reserve");
    assert.equal(reserve.name, "reserve");
    assert.deepEqual(reserve.definition, {
      name: "reserve",
      input: Order,
      retry: { maxAttempts: 3 },
      timeout: { startToClose: "30s" },
      errors: [OutOfStock],
      run,
    });
    for (const part of [reserve, reserve.definition, reserve.definition.retry, reserve.definition.timeout, reserve.definition.errors]) {
      assert.ok(Object.isFrozen(part));
    }
  });

  it("does not change when its options are changed afterwards", () => {
    const options = { retry: { maxAttempts: 3 }, errors: [OutOfStock] };
    const made = w.activity("a", options, async () => {});
    options.retry.maxAttempts = 9;
    options.errors.pop();
    assert.equal(made.definition.retry?.maxAttempts, 3);
    assert.equal(made.definition.errors?.length, 1);
  });

  it("makes an effect with its input, which is not validated yet", () => {
    const effect = reserve({ id: 5 } as never);
    assert.equal(effect.kind, "activity");
    assert.equal(effect.definition, reserve.definition);
    assert.deepEqual(effect.input, { id: 5 });
    assert.deepEqual(effect.options, {});
  });

  it("needs neither options nor input", () => {
    const ping = w.activity("ping", () => "pong");
    assert.equal(ping().input, undefined);
    assert.deepEqual(Object.keys(ping.definition), ["name", "run"]);
  });

  it("may be declared first and implemented later", () => {
    const contract = w.activity.contract("render", { input: Order, output: w.Type.String() });
    assert.equal(contract.definition.run, undefined);
    assert.equal(contract({ id: "1" }).definition, contract.definition);
    const implemented = contract.implement(run);
    assert.deepEqual(implemented.definition, { ...contract.definition, run });
    assert.ok(Object.isFrozen(implemented.definition));
  });

  const wrong: readonly [string, () => unknown, string, RegExp][] = [
    [
      "a generator function",
      () => untyped.activity("a", async function* () {}),
      "INVALID_DEFINITION",
      /activity a is a generator function.*async \(input, ctx\)/,
    ],
    ["a sync generator function", () => untyped.activity("a", function* () {}), "INVALID_DEFINITION", /generator function/],
    ["no function", () => untyped.activity("a", {}), "INVALID_DEFINITION", /activity a has no function/],
    ["no function after options", () => untyped.activity("a", {}, "x"), "INVALID_DEFINITION", /has no function/],
    ["a name with a space", () => untyped.activity("a b", () => 1), "INVALID_NAME", /the name of an activity/],
    ["no name", () => untyped.activity(() => 1), "INVALID_NAME", /the name of an activity/],
    [
      "an unknown option",
      () => untyped.activity("a", { retries: 3 }, () => 1),
      "INVALID_OPTION",
      /activity a has no option "retries"; it takes input, output, retry, timeout, semantics, onExhausted, classify, circuitBreaker, queue, requires, priority, concurrency, rateLimit, errors/,
    ],
    ["options that are none", () => untyped.activity("a", 5, () => 1), "INVALID_OPTION", /options of activity a/],
    [
      "a schema that is none",
      () => untyped.activity("a", { input: { type: "string" } }, () => 1),
      "INVALID_DEFINITION",
      /the input of activity a must be/,
    ],
    [
      "a bad retry policy",
      () => untyped.activity("a", { retry: { maxAttempts: 0 } }, () => 1),
      "INVALID_OPTION",
      /^activity a: retry\.maxAttempts/,
    ],
    ["a bad timeout", () => untyped.activity("a", { timeout: -1 }, () => 1), "INVALID_OPTION", /^activity a: /],
    ["a bad breaker", () => untyped.activity("a", { circuitBreaker: {} }, () => 1), "INVALID_OPTION", /^activity a: circuitBreaker\./],
    [
      "H003 a bad timeout",
      () => untyped.activity("a", { timeout: { startToClose: 1e21 } }, () => 1),
      "INVALID_DURATION",
      /timeout\.startToClose/,
    ],
    ["errors that are none", () => untyped.activity("a", { errors: [Date] }, () => 1), "INVALID_DEFINITION", /classes that extend Error/],
    [
      "errors that are instances",
      () => untyped.activity("a", { errors: [new Error("x")] }, () => 1),
      "INVALID_DEFINITION",
      /classes that extend Error/,
    ],
    ["a bad contract", () => untyped.activity.contract("a", { input: 5 }), "INVALID_DEFINITION", /the input of activity a/],
    ["a bad implementation", () => untyped.activity.contract("a").implement(function* () {}), "INVALID_DEFINITION", /generator function/],
  ];
  for (const [name, define, code, message] of wrong) it(`is refused: ${name}`, () => assert.throws(define, { code, message }));
});

describe("a workflow", () => {
  const run = async function* (order: { id: string }) {
    return order.id;
  };

  it("is a frozen object that knows its definition", () => {
    const variables = () => ({ stage: "new" });
    const made = w.workflow("fulfil", { version: "1.2.0", input: Order, variables, errors: [OutOfStock] }, run);
    assert.equal(made.name, "fulfil");
    assert.equal(made.version, "1.2.0");
    assert.deepEqual(made.definition, { name: "fulfil", version: "1.2.0", input: Order, variables, errors: [OutOfStock], run });
    assert.ok(Object.isFrozen(made) && Object.isFrozen(made.definition));
  });

  it("has version 1 unless it says otherwise", () => {
    assert.equal(w.workflow("a", run).version, "1");
    assert.equal(w.workflow("a", { version: undefined }, run).definition.version, "1");
  });

  it("may be declared first and implemented later", () => {
    const contract = w.workflow.contract("tree", { version: "2", input: Order, output: w.Type.String() });
    assert.equal(contract.definition.run, undefined);
    assert.deepEqual(contract.implement(run).definition, { ...contract.definition, run });
  });

  it("may be a plain function that returns a generator", () => {
    assert.doesNotThrow(() => untyped.workflow("a", (order: { id: string }) => run(order)));
  });

  const wrong: readonly [string, () => unknown, string, RegExp][] = [
    [
      "an async function",
      () => untyped.workflow("a", async () => 5),
      "INVALID_DEFINITION",
      /workflow a is an async function.*`async function\* \(input, ctx\)/,
    ],
    ["a sync generator function", () => untyped.workflow("a", function* () {}), "INVALID_DEFINITION", /without `async`.*`async function\*/],
    ["no function", () => untyped.workflow("a", { version: "1" }), "INVALID_DEFINITION", /workflow a has no function/],
    ["a bad name", () => untyped.workflow("a/b", run), "INVALID_NAME", /the name of a workflow/],
    ["a bad version", () => untyped.workflow("a", { version: "1 beta" }, run), "INVALID_NAME", /the version of workflow a/],
    ["a version that is a number", () => untyped.workflow("a", { version: 1 }, run), "INVALID_NAME", /the version of workflow a/],
    ["an unknown option", () => untyped.workflow("a", { verison: "1" }, run), "INVALID_OPTION", /workflow a has no option "verison"/],
    [
      "variables that are no function",
      () => untyped.workflow("a", { variables: { a: 1 } }, run),
      "INVALID_DEFINITION",
      /the variables of workflow a must be a function/,
    ],
    [
      "variables from a generator",
      () => untyped.workflow("a", { variables: run }, run),
      "INVALID_DEFINITION",
      /the variables of workflow a/,
    ],
    ["a schema that is none", () => untyped.workflow("a", { output: String }, run), "INVALID_DEFINITION", /the output of workflow a/],
    ["a bad implementation", () => untyped.workflow.contract("a").implement(async () => 5), "INVALID_DEFINITION", /is an async function/],
  ];
  for (const [name, define, code, message] of wrong) it(`is refused: ${name}`, () => assert.throws(define, { code, message }));
});

describe("an event", () => {
  it("is frozen data", () => {
    const Paid = w.event("payment.received", Order);
    assert.deepEqual({ ...Paid }, { name: "payment.received", schema: Order });
    assert.deepEqual({ ...w.event("approved") }, { name: "approved" });
    assert.ok(Object.isFrozen(Paid));
  });
  it("H077 is refused with a bad name or schema", () => {
    assert.throws(() => w.event("a\u0000"), { code: "INVALID_NAME" });
    assert.throws(() => untyped.event("a", {}), { code: "INVALID_DEFINITION", message: /the schema of event a/ });
  });
});
