import assert from "node:assert/strict";
import { describe, it } from "node:test";
import type { AnyEffect } from "../../src/effects/any-effect.ts";
import * as w from "../../src/index.ts";

// biome-ignore lint/suspicious/noExplicitAny: mistakes that TypeScript would catch
const untyped = w as any;

const score = w.activity("score", async (n: number) => n * 2);
const ship = w.workflow("ship", async function* (_id: string) {});
const Paid = w.event("paid");
const flow = async function* () {
  yield* w.sleep(1);
};
const task = (id: string) => new w.Task<number>(id, {});

/** What an effect says beside its kind and the place where it was made. */
function parts(effect: w.Effect<unknown>): Record<string, unknown> {
  const { site: _, kind: __, ...rest } = effect as unknown as Record<string, unknown>;
  return Object.fromEntries(Object.entries(rest).filter(([, value]) => value !== undefined));
}

/** Does not compile when a kind is missing. */
function kindOf(effect: AnyEffect): string {
  switch (effect.kind) {
    case "activity":
      return effect.definition.name;
    case "sleep":
      return `${effect.delay ?? effect.until}`;
    case "event":
      return effect.event.name;
    case "child":
      return effect.workflow.name;
    case "all":
    case "settled":
    case "any":
    case "race":
      return `${effect.branches.length}`;
    case "select":
      return `${effect.tasks.length}`;
    case "map":
      return `${effect.items.length}`;
    case "timeout":
      return `${effect.after}`;
    case "spawn":
    case "shield":
    case "saga":
      return typeof effect.branch;
    case "compensateNow":
      return typeof effect.site;
    case "condition":
      return typeof effect.until;
    case "patched":
      return effect.id;
    case "continueAsNew":
      return `${effect.version}`;
    case "sideEffect":
      return typeof effect.fn;
    case "task":
      return effect.id;
    case "cancelTask":
      return effect.task.id;
    default:
      return effect satisfies never;
  }
}

describe("an effect", () => {
  const effects: readonly [AnyEffect, string][] = [
    [score(1), "activity"],
    [w.step("s", () => 1), "activity"],
    [w.sleep(5), "sleep"],
    [w.sleepUntil("2030-01-01"), "sleep"],
    [w.awaitEvent(Paid), "event"],
    [w.child(ship, "x"), "child"],
    [w.all([]), "all"],
    [w.settled([]), "settled"],
    [w.any([score(1)]), "any"],
    [w.race({ a: score(1) }), "race"],
    [w.select([task("1")]), "select"],
    [w.map([1], (n) => score(n)), "map"],
    [w.timeout(score(1), 5), "timeout"],
    [w.spawn(score(1)), "spawn"],
    [w.saga(score(1)), "saga"],
    [w.compensateNow(), "compensateNow"],
    [score(1).compensate(() => score(2)), "activity"],
    [w.child(ship, "x").compensate(() => score(2)), "child"],
    [w.sideEffect(() => 1), "sideEffect"],
    [task("1"), "task"],
    [task("1").cancel(), "cancelTask"],
  ];
  for (const [effect, kind] of effects) {
    it(`is described by its kind, knows its line and is no thenable: ${kind}`, async () => {
      assert.equal(effect.kind, kind);
      assert.ok(effect instanceof w.Effect);
      assert.equal(typeof kindOf(effect), "string");
      assert.equal((effect as unknown as { then?: unknown }).then, undefined);
      assert.equal(await effect, effect);
      assert.match(effect.site.stack?.split("\n")[1] ?? "", /effects\.test\.ts/, "the first frame is the user's");
    });
  }

  it("yields itself once and gives what it is resumed with, as often as wanted", async () => {
    const effect = w.sleep(5);
    for (let round = 0; round < 2; round++) {
      const generator = (async function* () {
        return [yield* effect as w.Effect<unknown>];
      })();
      assert.deepEqual(await generator.next(), { done: false, value: effect });
      assert.deepEqual(await generator.next("resumed"), { done: true, value: ["resumed"] });
    }
  });
});

describe("a call of an activity", () => {
  it("is modified by with, which leaves the original alone and adds up", () => {
    const plain = score(1);
    const first = plain.with({ id: "first", retry: { maxAttempts: 2 } });
    const second = first.with({ summary: "s", retry: { jitter: "none" } });
    assert.deepEqual(plain.options, {});
    assert.deepEqual(first.options, { id: "first", retry: { maxAttempts: 2 } });
    assert.deepEqual(second.options, { id: "first", summary: "s", retry: { jitter: "none" } });
    assert.equal(second.input, 1);
    assert.equal(second.definition, score.definition);
    assert.equal(second.site, plain.site);
    assert.ok(Object.isFrozen(second.options));
  });

  it("may be a step, which is told its context only", async () => {
    const effect = w.step("charge", async (ctx) => ctx.attempt, { retry: { maxAttempts: 1 } });
    assert.equal(effect.input, undefined);
    assert.deepEqual(effect.options, { retry: { maxAttempts: 1 } });
    assert.equal(effect.definition.name, "charge");
    assert.equal(await effect.definition.run?.("ignored", { attempt: 7 } as w.ActivityContext), 7);
  });

  const wrong: readonly [string, () => unknown, string, RegExp][] = [
    ["an unknown option", () => untyped.step("s", () => 1).with({ retires: 1 }), "INVALID_OPTION", /activity s has no option "retires"/],
    ["a bad retry", () => score(1).with({ retry: { maxAttempts: -1 } }), "INVALID_OPTION", /^activity score: retry\.maxAttempts/],
    [
      "H002 a bad timeout",
      () => score(1).with({ timeout: { startToClose: Number.NaN } }),
      "INVALID_DURATION",
      /timeout\.startToClose: NaN/,
    ],
    ["H077 a bad id", () => score(1).with({ id: "a\u0000" }), "INVALID_NAME", /the id of activity score/],
    ["a summary without end", () => score(1).with({ summary: "x".repeat(1_001) }), "INVALID_OPTION", /the summary of activity score/],
    ["a step without a function", () => untyped.step("s"), "INVALID_DEFINITION", /step s needs a function/],
    ["a step with a generator function", () => untyped.step("s", flow), "INVALID_DEFINITION", /step s needs a function/],
    ["a step with a bad name", () => untyped.step("", () => 1), "INVALID_NAME", /the name of a step/],
    ["a step with bad options", () => untyped.step("s", () => 1, { x: 1 }), "INVALID_OPTION", /step s has no option "x"/],
  ];
  for (const [name, make, code, message] of wrong) it(`is refused: ${name}`, () => assert.throws(make, { code, message }));
});

describe("a sleep", () => {
  it("lasts milliseconds or until a time", () => {
    assert.deepEqual(parts(w.sleep("1h30m")), { delay: 5_400_000 });
    assert.deepEqual(parts(w.sleep(0)), { delay: 0 });
    assert.deepEqual(parts(w.sleepUntil(new Date(5))), { until: 5 });
    assert.deepEqual(parts(w.sleepUntil("1970-01-01T00:00:01Z")), { until: 1_000 });
  });
  for (const delay of [Number.NaN, Number.POSITIVE_INFINITY, -1, "abc", {}, undefined, 1e21]) {
    it(`H002 H003 is refused: ${String(delay)}`, () =>
      assert.throws(() => untyped.sleep(delay), { code: "INVALID_DURATION", message: /^sleep: / }));
  }
  it("H002 is refused until an invalid date", () => {
    assert.throws(() => w.sleepUntil(new Date(Number.NaN)), { code: "INVALID_DURATION", message: /^sleepUntil: the date/ });
  });
});

describe("a wait for an event", () => {
  it("has its options in milliseconds", () => {
    const match = () => true;
    assert.deepEqual(parts(w.awaitEvent(Paid, { match, timeout: "1d" })), { event: Paid, match, timeout: 86_400_000 });
    assert.deepEqual(parts(w.awaitEvent(Paid, { timeout: undefined, key: undefined })), { event: Paid });
    assert.deepEqual(parts(w.awaitEvent(Paid, { key: "order/42 é" })), { event: Paid, key: "order/42 é" });
  });
  it("H002 is refused with a bad option", () => {
    assert.throws(() => untyped.awaitEvent("paid"), { code: "INVALID_OPTION", message: /event\(name, schema\?\)/ });
    assert.throws(() => untyped.awaitEvent(Paid, { timeout: -1 }), { code: "INVALID_DURATION", message: /awaitEvent\(paid\) timeout/ });
    assert.throws(() => untyped.awaitEvent(Paid, { match: 5 }), { code: "INVALID_OPTION", message: /match must be a function/ });
    assert.throws(() => untyped.awaitEvent(Paid, { mtach: 5 }), { code: "INVALID_OPTION", message: /no option "mtach"/ });
    for (const key of ["", "x".repeat(256), "a\nb", "\u0000", "\ud800", 5, null])
      assert.throws(() => untyped.awaitEvent(Paid, { key }), { code: "INVALID_OPTION", message: /the key of awaitEvent\(paid\)/ });
  });
});

describe("a publication", () => {
  it("is an activity of the engine's own, which history names by its event", () => {
    const Typed = w.event("typed", w.Type.Object({ amount: w.Type.Number() }));
    const effect = w.publish(Typed, { amount: 1 }, { key: "order-1", idempotencyKey: "k", summary: "s" });
    assert.deepEqual(effect.definition, { name: "publish:typed", builtIn: "publish" });
    assert.deepEqual(effect.input, { event: "typed", payload: { amount: 1 }, key: "order-1", idempotencyKey: "k" });
    assert.deepEqual(effect.options, { summary: "s" });
    assert.deepEqual(w.publish(w.event("bare")).input, { event: "bare" });
  });
  it("is refused at once when nobody could take it", () => {
    assert.throws(() => untyped.publish("paid"), { code: "INVALID_OPTION", message: /event\(name, schema\?\)/ });
    assert.throws(() => untyped.publish(w.event("typed", w.Type.Number()), "1"), { code: "INVALID_INPUT" });
    assert.throws(() => untyped.publish(Paid, undefined, { key: "" }), { code: "INVALID_OPTION", message: /the key of publish\(paid\)/ });
    assert.throws(() => untyped.publish(Paid, undefined, { idempotencyKey: "a b" }), { code: "INVALID_OPTION" });
    assert.throws(() => untyped.publish(Paid, undefined, { kay: "k" }), {
      code: "INVALID_OPTION",
      message: /it takes key, idempotencyKey/,
    });
  });
});

describe("a child", () => {
  it("is terminated with its parent unless it says otherwise", () => {
    assert.deepEqual(parts(w.child(ship, "x")), { workflow: ship.definition, input: "x", onParentClose: "terminate" });
    const options = { id: "ship-1", onParentClose: "abandon" } as const;
    assert.deepEqual(parts(w.child(ship, "x", options)), { workflow: ship.definition, input: "x", ...options });
  });
  it("is refused with a bad option", () => {
    assert.throws(() => untyped.child(undefined), { code: "INVALID_OPTION" });
    assert.throws(() => untyped.child(score, 1), { code: "INVALID_OPTION", message: /is an activity/ });
    assert.throws(() => untyped.child(ship, "x", { id: "a b" }), { code: "INVALID_NAME", message: /the id of child\(ship\)/ });
    assert.throws(() => untyped.child(ship, "x", { onParentClose: "kill" }), {
      code: "INVALID_OPTION",
      message: /terminate, cancel, abandon/,
    });
    assert.throws(() => untyped.child(ship, "x", { timeout: 5 }), { code: "INVALID_OPTION", message: /no option "timeout"/ });
  });
});

describe("branches", () => {
  const branches = [score(1), flow, flow(), task("1")];
  for (const combine of [w.all, w.settled, w.any, w.race]) {
    it(`are listed, with keys when they come as a record: ${combine.name}`, () => {
      assert.deepEqual(parts(combine(branches)), { branches });
      assert.deepEqual(parts(combine({ b: score, a: flow } as never)), { branches: [score, flow], keys: ["b", "a"] });
    });
  }
  it("are not those that are put into the array later", () => {
    const given = [score(1)];
    const effect = w.all(given);
    given.push(score(2));
    assert.equal(effect.branches.length, 1);
    assert.ok(Object.isFrozen(effect.branches));
  });
  const wrong: readonly [string, () => unknown, RegExp][] = [
    ["a promise", () => untyped.all([score(1), Promise.resolve(1)]), /^all: branch 1 is a promise \(run it in an activity or in `step/],
    ["a promise in a record", () => untyped.race({ a: score(1), late: Promise.resolve(1) }), /^race: branch late is a promise/],
    ["a value", () => untyped.any([5]), /^any: branch 0 is a number/],
    ["nothing", () => untyped.settled([undefined]), /^settled: branch 0 is undefined/],
    ["a hole", () => untyped.all(new Array(1)), /^all: branch 0 is undefined/],
    ["a single effect", () => untyped.all(score(1)), /^all takes an array or a record of branches, not a single effect/],
    ["a generator", () => untyped.all(flow()), /not a generator/],
    ["no branches", () => untyped.all(), /not undefined/],
    ["a branch of a spawn", () => untyped.spawn(5), /^spawn: the branch is a number/],
    ["a branch of a timeout", () => untyped.timeout(Promise.resolve(), 5), /^timeout: the branch is a promise/],
    ["tasks of a select", () => untyped.select({ a: w.sleep(1) }), /^select takes an array or a record of tasks/],
    ["no tasks of a select", () => untyped.select([]), /^select takes/],
    ["an effect as tasks", () => untyped.select(task("1")), /^select takes/],
  ];
  for (const [name, make, message] of wrong) it(`are refused: ${name}`, () => assert.throws(make, { code: "INVALID_OPTION", message }));

  it("H002 of a timeout have a valid limit", () => {
    assert.deepEqual(parts(w.timeout(flow, "5s")), { branch: flow, after: 5_000 });
    assert.throws(() => w.timeout(flow, Number.NaN), { code: "INVALID_DURATION" });
  });
  it("may be spawned and selected", () => {
    assert.deepEqual(parts(w.spawn(flow)), { branch: flow });
    const [one, two] = [task("1"), task("2")];
    assert.deepEqual(parts(w.select([one, two])), { tasks: [one, two] });
    assert.deepEqual(parts(w.select({ two, one })), { tasks: [two, one], keys: ["two", "one"] });
    assert.deepEqual(parts(one.cancel("enough")), { task: one, reason: "enough" });
  });
});

describe("a map", () => {
  const fn = (n: number) => score(n);
  it("keeps its items and reads its tolerance", () => {
    const items = [1, 2];
    const effect = w.map(items, fn, { concurrency: 8 });
    items.push(3);
    assert.deepEqual(parts(effect), { items: [1, 2], fn, concurrency: 8 });
    assert.deepEqual(parts(w.map([1], fn, { tolerateFailures: 3 })).tolerateFailures, { count: 3 });
    assert.deepEqual(parts(w.map([1], fn, { tolerateFailures: "12.5%" })).tolerateFailures, { percent: 12.5 });
    assert.deepEqual(parts(w.map([1], fn, { minSuccess: 0 })).minSuccess, 0);
  });
  const wrong: readonly [unknown[], RegExp][] = [
    [[new Set([1]), fn], /spread others/],
    [[[1], 5], /a function that makes a branch/],
    [[[1], fn, { concurrency: 0 }], /concurrency/],
    [[[1], fn, { concurrency: 1.5 }], /concurrency/],
    [[[1], fn, { minSuccess: -1 }], /minSuccess/],
    [[[1], fn, { tolerateFailures: -1 }], /tolerateFailures/],
    [[[1], fn, { tolerateFailures: "101%" }], /tolerateFailures/],
    [[[1], fn, { tolerateFailures: "many" }], /tolerateFailures/],
    [[[1], fn, { tolerateFailures: {} }], /tolerateFailures/],
    [[[1], fn, { concurency: 2 }], /no option "concurency"/],
  ];
  for (const [args, message] of wrong)
    it(`is refused: ${message}`, () => assert.throws(() => untyped.map(...args), { code: "INVALID_OPTION", message }));
});

describe("a side effect", () => {
  it("is a synchronous function", () => {
    const fn = () => 5;
    assert.deepEqual(parts(w.sideEffect(fn)), { fn });
    for (const wrong of [async () => 5, flow, function* () {}, 5, undefined]) {
      assert.throws(() => untyped.sideEffect(wrong), { code: "INVALID_OPTION", message: /synchronous function/ });
    }
  });
});
