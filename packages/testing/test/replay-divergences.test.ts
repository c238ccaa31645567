import assert from "node:assert/strict";
import { test } from "node:test";
import { type AnyWorkflow, activity, all, awaitEvent, child, event, race, sideEffect, sleep, Type, workflow } from "@wovyr/sdk";
import { createTestEnvironment, replay } from "@wovyr/testing";

const reserve = activity("reserve", async (n: number) => n + 1);
const charge = activity("charge", async (n: number) => ({ amount: n }));
const checkFraud = activity("checkFraud", async (n: number) => n > 0);
const ship = activity("ship", async (order: { amount: number; to?: string }) => order.amount);
const pack = activity("pack", async (box: number) => box);
const approved = event("approved", Type.Number());
const released = event("released", Type.Number());
const billing = workflow("billing", async function* () {
  yield* sleep("1s");
  return "billed";
});

/** The history of a run of `recorded` that got its event, if it took any. */
async function historyOf(recorded: AnyWorkflow) {
  await using env = await createTestEnvironment({ workflows: [recorded, billing] });
  const run = await env.start(recorded as never);
  await env.advance("1h");
  if (!(await env.state(run.id)).closed) await run.send(approved, 5);
  await env.settle();
  return env.history(run.id);
}

const here = (line: string | undefined) => assert.match(line ?? "", /replay-divergences\.test\.ts:\d+:\d+$/);
const lineNumber = (at: string | undefined) => Number(/:(\d+):\d+$/.exec(at ?? "")?.[1]);
let marked = 0;
/** Notes the line that it is called at: the yield that is told stands in the next. */
function mark(): void {
  marked = Number(/:(\d+):\d+\)?$/.exec(new Error("here").stack?.split("\n")[2] ?? "")?.[1]);
}

const original = workflow("order", async function* (_: undefined, ctx) {
  const n = yield* reserve(1);
  const region = yield* sideEffect(() => "eu");
  const paid = yield* charge(n);
  yield* all([pack(1), pack(2)]);
  yield* child(billing);
  const bonus = yield* awaitEvent(approved);
  yield* ship({ amount: paid.amount + bonus, to: region });
  return ctx.random();
});

type Case = {
  readonly code: AnyWorkflow;
  readonly seq: number;
  readonly expected: string;
  readonly got: string;
  readonly diff: string;
};

const cases: Record<string, Case> = {
  "a renamed activity": {
    code: workflow("order", async function* (_: undefined, ctx) {
      const n = yield* reserve(1);
      const region = yield* sideEffect(() => "eu");
      mark();
      const paid = yield* activity("debit", async (n: number) => ({ amount: n }))(n);
      yield* all([pack(1), pack(2)]);
      yield* child(billing);
      const bonus = yield* awaitEvent(approved);
      yield* ship({ amount: paid.amount + bonus, to: region });
      return ctx.random();
    }),
    seq: 5,
    expected: 'activity "charge" as effect 2',
    got: 'activity "debit" as effect 2',
    diff: `
  activity reserve
  side effect
- activity charge
+ activity debit
  activity pack
  activity pack
  child billing
  … 3 more
  (as if done, for history holds no outcome: activity debit)`,
  },
  "an inserted effect": {
    code: workflow("order", async function* (_: undefined, ctx) {
      const n = yield* reserve(1);
      const region = yield* sideEffect(() => "eu");
      mark();
      yield* checkFraud(n);
      const paid = yield* charge(n);
      yield* all([pack(1), pack(2)]);
      yield* child(billing);
      const bonus = yield* awaitEvent(approved);
      yield* ship({ amount: paid.amount + bonus, to: region });
      return ctx.random();
    }),
    seq: 5,
    expected: 'activity "charge" as effect 2',
    got: 'activity "checkFraud" as effect 2',
    diff: `
  activity reserve
  side effect
+ activity checkFraud
  activity charge
  activity pack
  activity pack
  … 4 more
  (as if done, for history holds no outcome: activity checkFraud)`,
  },
  "a removed effect": {
    code: workflow("order", async function* (_: undefined, ctx) {
      const n = yield* reserve(1);
      const region = yield* sideEffect(() => "eu");
      const paid = { amount: n };
      mark();
      yield* all([pack(1), pack(2)]);
      yield* child(billing);
      const bonus = yield* awaitEvent(approved);
      yield* ship({ amount: paid.amount + bonus, to: region });
      return ctx.random();
    }),
    seq: 5,
    expected: 'activity "charge" as effect 2',
    got: 'activity "pack" as effect 2.0',
    diff: `
  activity reserve
  side effect
- activity charge
  activity pack
  activity pack
  child billing
  … 3 more`,
  },
  "swapped effects": {
    code: workflow("order", async function* (_: undefined, ctx) {
      const n = yield* reserve(1);
      const region = yield* sideEffect(() => "eu");
      const paid = yield* charge(n);
      mark();
      yield* child(billing);
      yield* all([pack(1), pack(2)]);
      const bonus = yield* awaitEvent(approved);
      yield* ship({ amount: paid.amount + bonus, to: region });
      return ctx.random();
    }),
    seq: 7,
    expected: 'activity "pack" as effect 3.0',
    got: 'child "billing" as effect 3',
    diff: `
  activity reserve
  side effect
  activity charge
+ child billing
  activity pack
  activity pack
- child billing
  event approved
  activity ship
  end (completed)`,
  },
  "another input": {
    code: workflow("order", async function* (_: undefined, ctx) {
      const n = yield* reserve(1);
      const region = yield* sideEffect(() => "eu");
      const paid = yield* charge(n);
      yield* all([pack(1), pack(2)]);
      yield* child(billing);
      const bonus = yield* awaitEvent(approved);
      mark();
      yield* ship({ amount: paid.amount + bonus, to: region.toUpperCase() });
      return ctx.random();
    }),
    seq: 16,
    expected: 'activity "ship" as effect 6',
    got: 'activity "ship" as effect 6 with another input',
    diff: `
  … 4 more
  activity pack
  child billing
  event approved
- activity ship
+ activity ship  (another input at .to)
  end (completed)`,
  },
  "one branch more": {
    code: workflow("order", async function* (_: undefined, ctx) {
      const n = yield* reserve(1);
      const region = yield* sideEffect(() => "eu");
      const paid = yield* charge(n);
      mark();
      yield* all([pack(1), pack(2), pack(3)]);
      yield* child(billing);
      const bonus = yield* awaitEvent(approved);
      yield* ship({ amount: paid.amount + bonus, to: region });
      return ctx.random();
    }),
    seq: 9,
    expected: "nothing more in this turn",
    got: 'activity "pack" as effect 3.2',
    diff: `
  … 2 more
  activity charge
  activity pack
  activity pack
+ activity pack
  child billing
  event approved
  activity ship
  … 1 more
  (as if done, for history holds no outcome: activity pack)`,
  },
  "one branch less": {
    code: workflow("order", async function* (_: undefined, ctx) {
      const n = yield* reserve(1);
      const region = yield* sideEffect(() => "eu");
      const paid = yield* charge(n);
      mark();
      yield* all([pack(1)]);
      yield* child(billing);
      const bonus = yield* awaitEvent(approved);
      yield* ship({ amount: paid.amount + bonus, to: region });
      return ctx.random();
    }),
    seq: 8,
    expected: 'activity "pack" as effect 3.1',
    got: "nothing",
    diff: `
  … 1 more
  side effect
  activity charge
  activity pack
- activity pack
  child billing
  event approved
  activity ship
  … 1 more`,
  },
  "another event": {
    code: workflow("order", async function* (_: undefined, ctx) {
      const n = yield* reserve(1);
      const region = yield* sideEffect(() => "eu");
      const paid = yield* charge(n);
      yield* all([pack(1), pack(2)]);
      yield* child(billing);
      mark();
      const bonus = yield* awaitEvent(released);
      yield* ship({ amount: paid.amount + bonus, to: region });
      return ctx.random();
    }),
    seq: 13,
    expected: 'wait for event "approved" as effect 5',
    got: 'wait for event "released" as effect 5',
    diff: `
  … 3 more
  activity pack
  activity pack
  child billing
- event approved
+ event released
  activity ship
  end (completed)
  (as if done, for history holds no outcome: event released)`,
  },
  "an effect more at the end": {
    code: workflow("order", async function* (_: undefined, ctx) {
      const n = yield* reserve(1);
      const region = yield* sideEffect(() => "eu");
      const paid = yield* charge(n);
      yield* all([pack(1), pack(2)]);
      yield* child(billing);
      const bonus = yield* awaitEvent(approved);
      yield* ship({ amount: paid.amount + bonus, to: region });
      mark();
      yield* checkFraud(1);
      return ctx.random();
    }),
    seq: 18,
    expected: "the end of the workflow (completed)",
    got: 'activity "checkFraud" as effect 7',
    diff: `
  … 5 more
  child billing
  event approved
  activity ship
+ activity checkFraud
  end (completed)
  (as if done, for history holds no outcome: activity checkFraud)`,
  },
  "an effect less at the end": {
    code: workflow("order", async function* (_: undefined, ctx) {
      const n = yield* reserve(1);
      yield* sideEffect(() => "eu");
      yield* charge(n);
      yield* all([pack(1), pack(2)]);
      yield* child(billing);
      mark();
      yield* awaitEvent(approved);
      return ctx.random();
    }),
    seq: 16,
    expected: 'activity "ship" as effect 6',
    got: "the end of the workflow (completed)",
    diff: `
  … 4 more
  activity pack
  child billing
  event approved
- activity ship
  end (completed)`,
  },
};

for (const [what, { code, seq, expected, got, diff }] of Object.entries(cases))
  test(`code with ${what} is told by event, effect, line and difference`, async () => {
    const history = await historyOf(original);
    assert.equal((await replay(original, history)).text, "1 history checked: all replay.");
    const report = await replay(code, history);
    const [divergence] = report.divergences.map((run) => run.divergence);
    assert.ok(divergence, report.text);
    assert.equal(`\n${divergence.diff}`, diff, report.text);
    assert.deepEqual([divergence.seq, divergence.expected, divergence.got], [seq, expected, got], report.text);
    here(divergence.at);
    assert.equal(lineNumber(divergence.at), marked + 1);
    assert.equal(report.ok, false);
    for (const part of [`event ${seq}: history recorded ${expected}`, divergence.at ?? "", "What to do: "])
      assert.ok(report.text.includes(part));
  });

test("code that asks for the same effects at other moments is told so", async () => {
  const parallel = workflow("packing", async function* () {
    yield* all([pack(1), pack(2)]);
  });
  const serial = workflow("packing", async function* () {
    yield* pack(1);
    yield* pack(2);
  });
  const { divergences } = await replay(serial, await historyOf(parallel));
  const { diff, expected, got } = divergences[0]?.divergence ?? assert.fail();
  assert.deepEqual([expected, got], ['activity "pack" as effect 0.0', 'activity "pack" as effect 0']);
  assert.equal(
    `\n${diff}`,
    `
  activity pack
  activity pack
  end (completed)
  (the same effects: only when they are asked for, or what cancels them, differs)`,
  );
});

test("what is no longer cancelled is told where the code waits for it instead", async () => {
  const first = workflow("packing", async function* () {
    yield* race([pack(1), sleep("1 day")]);
  });
  const both = workflow("packing", async function* () {
    yield* all([pack(1), sleep("1 day")]);
  });
  const { divergences } = await replay(both, await historyOf(first));
  const { diff, expected, got } = divergences[0]?.divergence ?? assert.fail();
  assert.deepEqual([expected, got], ["cancellation of effect 0.1", "nothing"]);
  assert.equal(`\n${diff}`, "\n  activity pack\n  sleep\n- sleep cancelled\n- end (completed)");
});
