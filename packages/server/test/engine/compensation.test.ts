import assert from "node:assert/strict";
import { test } from "node:test";
import {
  activity,
  all,
  awaitEvent,
  CancelledError,
  CompensationError,
  type CompensationOptions,
  child,
  compensateNow,
  event,
  type Flow,
  map,
  NonRetryableError,
  race,
  saga,
  settled,
  sideEffect,
  sleep,
  spawn,
  step,
  Type,
  timeout,
  update,
  WorkflowError,
  workflow,
} from "@wovyr/sdk";
import type { HistoryFact, Turn } from "@wovyr/sdk/internal";
import { ExecutionRecord, type TestEnvironment } from "@wovyr/testing";
import { inCase, inEachCache } from "./case.ts";

const record = new ExecutionRecord();
const book = activity("book", async (what: string) => {
  record.note(`book ${what}`);
  return what;
});
const undo = activity("undo", async (what: string) => record.note(`undo ${what}`));
const broken = activity("broken", async (): Promise<string> => {
  throw new NonRetryableError("broken");
});
const mark = activity("mark", async (what: string) => record.note(what));
const brokenLater = async function* () {
  yield* sleep("1m");
  yield* broken();
};
const never = event("never");

const facts = (turns: readonly Turn[]): HistoryFact[] => turns.flatMap((turn) => turn.events);
/** What was executed since, in order. */
const since = (begin: number): readonly string[] => record.order.slice(begin);
const ended = (status: string, cause?: RegExp) => (error: unknown) => {
  assert.ok(error instanceof WorkflowError);
  assert.equal(error.status, status);
  if (cause !== undefined) assert.match(String(error.cause), cause);
  return true;
};
const undone = (begin: number) => since(begin).flatMap((line) => (line.startsWith("undo ") ? [line.slice(5)] : []));

/** Two bookings, then whatever is to happen. */
const trip = (compensation: CompensationOptions | undefined, next: () => Flow<void>) =>
  workflow("trip", { compensation }, async function* () {
    yield* book("a").compensate((what) => undo(what));
    yield* book("b").compensate((what) => undo(what));
    yield* next();
  });
const waits = async function* () {
  yield* sleep("1h");
};
const fails = async function* (): Flow<void> {
  yield* [];
  throw new RangeError("no seats");
};

// ── what is undone, and in which order ──

test("H045 what completed is undone when the run fails, the last one first, once each; the run ends with what it failed with", async () => {
  await inEachCache({ workflows: [trip(undefined, fails)] }, async (env) => {
    const begin = record.total;
    await assert.rejects(env.execute(trip(undefined, fails)), ended("Compensated", /RangeError: no seats/));
    assert.deepEqual(since(begin), ["book a", "book b", "undo b", "undo a"]);
  });
});

for (const mode of ["graceful", "compensate"] as const)
  test(`H045 a cancellation (${mode}) undoes what completed, outside of what it cancels`, async () => {
    const definition = trip(mode === "graceful" ? { on: "always" } : undefined, waits);
    await inEachCache({ workflows: [definition] }, async (env) => {
      const begin = record.total;
      const run = await env.start(definition);
      await env.settle();
      await run.cancel({ mode, reason: "rain" });
      await assert.rejects(run.result(), ended("Compensated", /CancelledError: rain/));
      assert.deepEqual(undone(begin), ["b", "a"]);
    });
  });

test("H045 a termination and an immediate cancellation undo nothing", async () => {
  const definition = trip({ on: "always" }, waits);
  await inCase({ workflows: [definition] }, async (env) => {
    const begin = record.total;
    const [first, second] = [await env.start(definition), await env.start(definition)];
    await env.settle();
    await first.terminate();
    await assert.rejects(first.result(), ended("Terminated"));
    await second.cancel({ mode: "immediate" });
    await assert.rejects(second.result(), ended("Cancelled"));
    assert.deepEqual(undone(begin), []);
  });
});

test("H046 a failure in a nested block ends the saga; what comes after it is for the author to say", async () => {
  const nested = workflow("nested", async function* (caught: boolean) {
    try {
      yield* saga(async function* () {
        yield* book("1").compensate(undo);
        for (const inner of [true]) {
          if (!inner) continue;
          yield* book("2").compensate(undo);
          yield* broken().compensate(undo);
        }
        yield* book("4").compensate(undo);
      });
    } catch (error) {
      if (!caught) throw error;
    }
    yield* book("5").compensate(undo);
    return "done";
  });
  await inEachCache({ workflows: [nested] }, async (env) => {
    let begin = record.total;
    await assert.rejects(env.execute(nested, false), ended("Failed", /broken/));
    assert.deepEqual(since(begin), ["book 1", "book 2", "undo 2", "undo 1"]);
    begin = record.total;
    assert.equal(await env.execute(nested, true), "done");
    assert.deepEqual(since(begin), ["book 1", "book 2", "undo 2", "undo 1", "book 5"]);
  });
});

test("a run that completes undoes nothing, and one that has nothing to undo fails as it always did", async () => {
  const fine = trip(undefined, async function* () {
    yield* [];
  });
  const poor = workflow("poor", async function* () {
    yield* book("x");
    throw new Error("poor");
  });
  await inEachCache({ workflows: [fine, poor] }, async (env) => {
    const begin = record.total;
    await env.execute(fine);
    await assert.rejects(env.execute(poor), ended("Failed", /poor/));
    assert.deepEqual(undone(begin), []);
  });
});

test("only what completed is undone, in the order in which it did, whatever branch it was in", async () => {
  const branches = workflow("branches", async function* () {
    const slow = async function* (what: string, ms: number) {
      yield* sleep(ms);
      yield* book(what).compensate((booked) => undo(booked));
    };
    yield* all([slow("third", 300), slow("first", 100)]);
    yield* race({ loser: slow("never", 10_000), winner: slow("second", 50) });
    yield* map(["x", "y"], (what) => book(what).compensate(undo), { concurrency: 1 });
    const task = yield* spawn(book("task").compensate(undo));
    yield* task;
    yield* settled([broken().compensate(undo), step("step", () => "step").compensate((value) => undo(value))]);
    yield* timeout(book("timed").compensate(undo), "1h");
    throw new Error("enough");
  });
  await inEachCache({ workflows: [branches] }, async (env) => {
    const begin = record.total;
    await assert.rejects(env.execute(branches), ended("Compensated", /enough/));
    assert.deepEqual(undone(begin), ["timed", "step", "task", "y", "x", "second", "third", "first"]);
  });
});

test("`.with` and `.compensate` add to each other in any order, and an effect may be yielded twice", async () => {
  const both = workflow("both", async function* () {
    const effect = book("x")
      .with({ id: "chosen" })
      .compensate((what) => undo(`chosen ${what}`))
      .with({ summary: "books x" });
    yield* effect;
    const again = book("y").compensate((what) => undo(`first ${what}`));
    yield* again.compensate((what) => undo(`instead ${what}`));
    yield* again;
    throw new Error("enough");
  });
  await inEachCache({ workflows: [both] }, async (env) => {
    const begin = record.total;
    const run = await env.start(both);
    await assert.rejects(run.result(), ended("Compensated"));
    assert.deepEqual(undone(begin), ["first y", "instead y", "chosen x"]);
    const { compensations } = await run.describe();
    assert.deepEqual(
      compensations.map(({ effect, undoes, state }) => [effect, undoes, state]),
      [
        ["~2", "1", "done"],
        ["~1", "0", "done"],
        ["~0", "@chosen", "done"],
      ],
    );
  });
});

test("in parallel all are undone at once; the run ends when the last one is", async () => {
  const order = trip({ order: "parallel" }, fails);
  const slowly = workflow("slowly", { compensation: { order: "parallel" } }, async function* () {
    for (const ms of [3_000, 1_000, 2_000])
      yield* book(`${ms}`).compensate(async function* (what) {
        yield* sleep(ms);
        yield* undo(what);
      });
    throw new Error("enough");
  });
  await inEachCache({ workflows: [order, slowly] }, async (env) => {
    const begin = record.total;
    const started = env.now().getTime();
    await assert.rejects(env.execute(slowly), ended("Compensated"));
    assert.deepEqual(undone(begin), ["1000", "2000", "3000"]);
    assert.equal(env.now().getTime() - started, 3_000);
  });
});

test("a compensation is workflow code: it may yield whatever a workflow may, and sees what the workflow knows", async () => {
  const Refund = event("refund", Type.String());
  const Ask = update("ask", { output: Type.String() });
  const rich = workflow("rich", { variables: () => ({ notes: [] as string[] }) }, async function* (_: undefined, ctx) {
    ctx.onUpdate(Ask, { handler: () => `undoing, ${ctx.variables.notes.length} so far` });
    yield* book("a").compensate(async function* (what) {
      const how = yield* awaitEvent(Refund);
      const [id] = yield* all([sideEffect(() => "drawn"), sleep("1m")]);
      yield* child(helper, `${what} by ${how} (${id})`);
      ctx.variables.notes.push(what);
    });
    throw new Error("enough");
  });
  const helper = workflow("helper", async function* (what: string) {
    yield* undo(what);
  });
  await inEachCache({ workflows: [rich, helper] }, async (env) => {
    const begin = record.total;
    const run = await env.start(rich);
    await env.settle();
    assert.equal((await run.describe()).status, "Compensating");
    assert.match((await run.describe()).compensating?.message ?? "", /enough/);
    assert.match((await run.describe()).waitingAt.join(), /compensation\.test\.ts:\d+:\d+$/);
    assert.equal(await run.update(Ask), "undoing, 0 so far");
    await run.send(Refund, "card");
    await assert.rejects(run.result(), ended("Compensated", /enough/));
    assert.deepEqual(undone(begin), ["a by card (drawn)"]);
    assert.deepEqual((await run.describe()).variables, { notes: ["a"] });
  });
});

test("what undoes is not undone, and cannot be cancelled; a run that undoes can be terminated", async () => {
  const slow = workflow("slow", async function* () {
    yield* book("a").compensate(async function* () {
      yield* book("again").compensate(() => undo("never"));
      yield* compensateNow();
      yield* sleep("3h");
      yield* undo("a");
    });
    throw new Error("enough");
  });
  await inEachCache({ workflows: [slow] }, async (env) => {
    const begin = record.total;
    const [run, other] = [await env.start(slow), await env.start(slow)];
    await env.settle();
    for (const mode of ["graceful", "immediate", "compensate"] as const) await run.cancel({ mode });
    await other.terminate({ reason: "enough of it" });
    await assert.rejects(other.result(), ended("Terminated", /enough of it/));
    await assert.rejects(run.result(), ended("Compensated", /Error: enough/));
    assert.deepEqual(undone(begin), ["a"]);
  });
});

test("clean-up comes before compensation", async () => {
  const cleaning = workflow("cleaning", async function* () {
    yield* book("a").compensate(undo);
    try {
      yield* sleep("1h");
    } finally {
      yield* sleep("30s");
      yield* book("clean-up");
    }
  });
  await inEachCache({ workflows: [cleaning] }, async (env) => {
    const begin = record.total;
    const run = await env.start(cleaning);
    await env.settle();
    await run.cancel();
    await run.cancel({ mode: "compensate", reason: "too late to be the reason" });
    await assert.rejects(run.result(), ended("Compensated", /cancelled on request/));
    assert.deepEqual(since(begin), ["book a", "book clean-up", "undo a"]);
  });
});

test("with `when: started` what did not complete is undone as well, without its value", async () => {
  const lost = activity("lost", { retry: { maxAttempts: 1 } }, async (what: string): Promise<string> => {
    record.note(`book ${what}`);
    throw new Error("the answer was lost");
  });
  const unsure = workflow("unsure", async function* () {
    yield* book("known").compensate((what) => undo(`${what}`), { when: "started" });
    yield* settled([lost("unknown").compensate((what) => undo(`${what}, perhaps`), { when: "started" })]);
    // Refused before anything of it is recorded: it was never started.
    yield* settled([book(Symbol("no text") as never).compensate(() => undo("never"), { when: "started" })]);
    yield* race([book("slow").compensate((what) => undo(`${what} of the race`), { when: "started" }), sideEffect(() => 1)]);
    throw new Error("enough");
  });
  await inCase({ workflows: [unsure] }, async (env) => {
    const begin = record.total;
    await assert.rejects(env.execute(unsure), ended("Compensated"));
    assert.deepEqual(undone(begin), ["undefined of the race", "undefined, perhaps", "known"]);
  });
});

test("a failure of the run that is not its function's is undone too: of a handler, of its output, of what it keeps", async () => {
  const Bad = event("bad");
  const handler = workflow("handler", async function* (_: undefined, ctx) {
    ctx.on(Bad, () => {
      throw new Error("the handler failed");
    });
    yield* book("a").compensate(undo);
    yield* awaitEvent(never);
  });
  const output = workflow("output", { output: Type.Number() }, async function* () {
    yield* book("b").compensate(undo);
    return "no number" as never;
  });
  const variables = workflow("variables", { variables: () => ({ kept: undefined as unknown }) }, async function* (_: undefined, ctx) {
    yield* saga(async function* () {
      yield* book("c").compensate(undo);
      ctx.variables.kept = () => "cannot be stored";
      yield* awaitEvent(never);
    });
  });
  await inEachCache({ workflows: [handler, output, variables] }, async (env) => {
    const begin = record.total;
    const run = await env.start(handler);
    await env.settle();
    await run.send(Bad);
    await assert.rejects(run.result(), ended("Compensated", /the handler failed/));
    await assert.rejects(env.execute(output), ended("Compensated", /output/));
    await assert.rejects(env.execute(variables), ended("Compensated", /cannot be stored/));
    assert.deepEqual(undone(begin), ["a", "b", "c"]);
  });
});

// ── policies ──

type Want = { readonly failure: boolean; readonly cancel: boolean; readonly compensate: boolean; readonly now: boolean };
const yes = true;
const no = false;
const policies: readonly (readonly [string, CompensationOptions | undefined, Want])[] = [
  ["none", undefined, { failure: yes, cancel: no, compensate: yes, now: yes }],
  ["failure", { on: "failure" }, { failure: yes, cancel: no, compensate: yes, now: yes }],
  ["cancel", { on: "cancel" }, { failure: no, cancel: yes, compensate: yes, now: yes }],
  ["always", { on: "always" }, { failure: yes, cancel: yes, compensate: yes, now: yes }],
  ["manual", { on: "manual" }, { failure: no, cancel: no, compensate: yes, now: yes }],
  ["never", { on: "never" }, { failure: no, cancel: no, compensate: no, now: no }],
  ["a function", { on: (error) => error instanceof RangeError }, { failure: yes, cancel: no, compensate: yes, now: yes }],
  ["another function", { on: (error) => error instanceof CancelledError }, { failure: no, cancel: yes, compensate: yes, now: yes }],
  [
    "a function that throws",
    {
      on: () => {
        throw new Error("cannot say");
      },
    },
    { failure: yes, cancel: yes, compensate: yes, now: yes },
  ],
];
const outcomes: Record<
  keyof Want,
  { readonly next: Parameters<typeof trip>[1]; readonly act: (run: Cancellable) => Promise<void>; readonly otherwise: string }
> = {
  failure: { next: fails, act: async () => {}, otherwise: "Failed" },
  cancel: { next: waits, act: (run) => run.cancel(), otherwise: "Cancelled" },
  compensate: { next: waits, act: (run) => run.cancel({ mode: "compensate" }), otherwise: "Cancelled" },
  now: {
    next: async function* () {
      yield* compensateNow();
    },
    act: async () => {},
    otherwise: "Completed",
  },
};
type Cancellable = Awaited<ReturnType<TestEnvironment["start"]>>;

for (const [name, policy, want] of policies)
  test(`policy ${name}: ${Object.entries(want)
    .map(([what, does]) => `${what} ${does ? "undoes" : "does not"}`)
    .join(", ")}`, async () => {
    for (const [what, { next, act, otherwise }] of Object.entries(outcomes)) {
      const definition = trip(policy, next);
      await inEachCache({ workflows: [definition] }, async (env) => {
        const begin = record.total;
        const run = await env.start(definition);
        await env.settle();
        await act(run);
        const { status } = await run.result().then(
          () => ({ status: "Completed" }),
          (error) => error as WorkflowError,
        );
        const does = want[what as keyof Want];
        assert.deepEqual(undone(begin), does ? ["b", "a"] : [], what);
        assert.equal(status, does && what !== "now" ? "Compensated" : otherwise, what);
      });
    }
  });

test("a policy that changes holds for what ends afterwards: what is being undone is undone to its end", async () => {
  const slow = (on: CompensationOptions["on"], order: CompensationOptions["order"]) =>
    workflow("changing", { compensation: { on, order } }, async function* () {
      for (const what of ["a", "b", "c"])
        yield* book(what).compensate(async function* () {
          yield* sleep("1h");
          yield* undo(what);
        });
      throw new Error("enough");
    });
  await inCase({ workflows: [slow("failure", "reverse")] }, async (env) => {
    const begin = record.total;
    const run = await env.start(slow("failure", "reverse"));
    await env.advance("90m");
    assert.deepEqual(undone(begin), ["c"]);
    await env.restart({ workflows: [slow("never", "parallel")] });
    await assert.rejects(run.result(), ended("Compensated"));
    assert.deepEqual(undone(begin), ["c", "b", "a"]);
    // The checks at the end make every turn once more.
    await env.restart({ workflows: [slow("failure", "reverse")] });
  });
});

test("a changed set of compensations parks the run only once it undoes them", async () => {
  const version = (compensated: boolean, fixed: boolean) =>
    workflow("growing", async function* () {
      const effect = book("a");
      yield* compensated ? effect.compensate(undo) : effect;
      yield* book("b").compensate(async function* (what) {
        yield* sleep("1h");
        yield* undo(what);
      });
      yield* sleep("1h");
      if (!fixed) throw new Error("enough");
    });
  await inCase({ workflows: [version(false, false)] }, async (env) => {
    const begin = record.total;
    const early = await env.start(version(false, false));
    await env.settle();
    // Nothing is undone yet: a compensation may be added.
    await env.restart({ workflows: [version(true, false)] });
    await env.advance("90m");
    await env.restart({ workflows: [version(false, false)] });
    await early.describe();
    await env.settle();
    assert.equal((await early.describe()).status, "Parked");
    assert.match(
      (await early.describe()).parked?.message ?? "",
      /history recorded compensation of "book" \(effect 1\), "book" \(effect 0\)/,
    );
    await env.restart({ workflows: [version(true, false)] });
    await assert.rejects(early.result(), ended("Compensated"));
    assert.deepEqual(undone(begin), ["b", "a"]);
  });
});

// ── sagas and compensateNow ──

test("a saga that completes leaves its compensations to what is around it", async () => {
  const outer = workflow("outer", async function* () {
    yield* book("0").compensate(undo);
    const inner = yield* saga(
      async function* () {
        yield* book("1").compensate(undo);
        yield* saga(book("2").compensate(undo));
        return "inner";
      },
      { order: "parallel" },
    );
    yield* book(inner).compensate(undo);
    throw new Error("enough");
  });
  await inEachCache({ workflows: [outer] }, async (env) => {
    const begin = record.total;
    await assert.rejects(env.execute(outer), ended("Compensated", /enough/));
    assert.deepEqual(undone(begin), ["inner", "2", "1", "0"]);
  });
});

test("a saga that loses a race, or is out of time, is undone before the race goes on", async () => {
  const racing = workflow("racing", async function* () {
    const attempt = async function* (what: string) {
      yield* book(what).compensate(undo);
      yield* sleep("1 day");
    };
    const { winner } = yield* race({ slow: saga(() => attempt("slow")), fast: sleep("1h") });
    yield* settled([
      timeout(
        saga(() => attempt("late")),
        "1h",
      ),
      all([saga(() => attempt("sibling")), brokenLater()]),
    ]);
    const task = yield* spawn(saga(() => attempt("task")));
    yield* sleep("1m");
    yield* task.cancel();
    yield* spawn(saga(() => attempt("unjoined")));
    yield* sleep("1m");
    yield* mark("at the end");
    return winner;
  });
  await inEachCache({ workflows: [racing] }, async (env) => {
    const begin = record.total;
    assert.equal(await env.execute(racing), "fast");
    const lines = since(begin).filter((line) => line === "at the end" || line.startsWith("undo "));
    assert.deepEqual([...new Set(lines)], ["undo slow", "undo sibling", "undo late", "undo task", "at the end", "undo unjoined"]);
  });
});

test("a cancellation of the run undoes its sagas as the policy says", async () => {
  const definition = (on: CompensationOptions["on"], ofSaga?: CompensationOptions["on"]) =>
    workflow("cancelled", { compensation: { on } }, async function* () {
      yield* book("outer").compensate(undo);
      yield* saga(
        async function* () {
          yield* book("inner").compensate(undo);
          yield* sleep("1h");
        },
        { on: ofSaga },
      );
    });
  const cases = [
    [definition("failure"), undefined, [], "Cancelled"],
    [definition("failure"), "compensate", ["inner", "outer"], "Compensated"],
    [definition("always"), undefined, ["inner", "outer"], "Compensated"],
    [definition("failure", "always"), undefined, ["inner"], "Cancelled"],
    [definition("manual", "failure"), undefined, [], "Cancelled"],
  ] as const;
  for (const [workflow, mode, want, status] of cases)
    await inEachCache({ workflows: [workflow] }, async (env) => {
      const begin = record.total;
      const run = await env.start(workflow);
      await env.settle();
      await run.cancel({ mode });
      await assert.rejects(run.result(), ended(status));
      assert.deepEqual(undone(begin), want);
    });
});

test("compensateNow undoes what its own saga has, once, and tells what it could not", async () => {
  const now = workflow("now", async function* () {
    yield* book("outer").compensate(undo);
    yield* saga(async function* () {
      yield* book("1").compensate(undo);
      const open = yield* spawn(async function* () {
        yield* sleep("1h");
        yield* book("later").compensate(undo);
      });
      yield* book("2").compensate(undo);
      yield* compensateNow();
      yield* compensateNow();
      yield* book("3").compensate(() => broken());
      yield* book("4").compensate(undo);
      try {
        yield* compensateNow();
      } catch (error) {
        assert.ok(error instanceof CompensationError);
        assert.equal(error.code, "COMPENSATION_FAILED");
        assert.deepEqual(
          error.failures.map(({ effect, name, outcome }) => [effect, name, outcome]),
          [["~3", "book", "failed"]],
        );
        assert.match(String(error.errors[0]), /activity "broken" failed/);
        yield* mark("told");
      }
      yield* open;
    });
    return "done";
  });
  await inEachCache({ workflows: [now] }, async (env) => {
    const begin = record.total;
    const run = await env.start(now);
    assert.equal(await run.result(), "done");
    assert.deepEqual(since(begin), [
      "book outer",
      "book 1",
      "book 2",
      "undo 2",
      "undo 1",
      "book 3",
      "book 4",
      "undo 4",
      "told",
      "book later",
    ]);
    assert.deepEqual((await run.describe()).compensations, []);
  });
});

test("compensateNow in the clean-up of a cancelled run has the time that it needs", async () => {
  const patient = workflow("patient", { compensation: { on: "manual" } }, async function* () {
    yield* book("a").compensate(async function* (what) {
      yield* sleep("1 day");
      yield* undo(what);
    });
    try {
      yield* sleep("30 days");
    } catch (error) {
      yield* all([
        async function* () {
          yield* compensateNow();
        },
      ]);
      yield* mark("undone");
      yield* sleep("60 days");
      yield* mark("dropped");
      throw error;
    }
  });
  await inEachCache({ workflows: [patient] }, async (env) => {
    const begin = record.total;
    const run = await env.start(patient);
    await env.settle();
    await run.cancel();
    await assert.rejects(run.result(), ended("Cancelled"));
    assert.deepEqual(since(begin), ["book a", "undo a", "undone"]);
    const timers = facts(await env.turns(run.id)).filter((fact) => fact.type === "TimerStarted" && fact.purpose === "cleanup");
    assert.ok(timers.length > 8 && timers.length < 14, `${timers.length} timers`);
  });
});

// ── children ──

test("a child has undone what it did before its parent goes on, and is undone itself when it completed", async () => {
  const leg = workflow("leg", async function* (what: string) {
    yield* book(`${what} 1`).compensate(undo);
    if (what === "bad") throw new Error("no leg");
    yield* book(`${what} 2`).compensate(undo);
    return what;
  });
  const journey = workflow("journey", async function* () {
    yield* child(leg, "good").compensate((what) => undo(`whole ${what}`));
    try {
      yield* child(leg, "bad").compensate(() => undo("never"));
    } catch (error) {
      assert.ok(error instanceof WorkflowError);
      assert.equal(error.status, "Compensated");
      assert.match(String(error.cause), /no leg/);
      yield* mark("goes on");
      throw error;
    }
  });
  await inEachCache({ workflows: [journey, leg] }, async (env) => {
    const begin = record.total;
    await assert.rejects(env.execute(journey), ended("Compensated", /ended as Compensated: no leg/));
    assert.deepEqual(since(begin), ["book good 1", "book good 2", "book bad 1", "undo bad 1", "goes on", "undo whole good"]);
  });
});

test("a cancellation with compensation reaches the children that are open; their parent waits until they are undone", async () => {
  const leg = workflow("leg", { compensation: { on: "manual" } }, async function* (what: string) {
    yield* book(what).compensate(async function* () {
      yield* sleep("2 days");
      yield* undo(what);
    });
    if (what !== "fast") yield* awaitEvent(never);
    return what;
  });
  const journey = workflow("journey", async function* () {
    yield* book("own").compensate(undo);
    yield* spawn(child(leg, "spawned", { onParentClose: "cancel" }));
    yield* spawn(child(leg, "left alone", { onParentClose: "abandon", id: "alone" }));
    yield* all([child(leg, "awaited").compensate(() => undo("never")), child(leg, "fast").compensate((what) => undo(`whole ${what}`))]);
  });
  await inEachCache({ workflows: [journey, leg] }, async (env) => {
    const begin = record.total;
    const run = await env.start(journey);
    await env.settle();
    await run.cancel({ mode: "compensate", reason: "rain" });
    await env.settle();
    assert.deepEqual(
      (await run.describe()).children.map(({ effect }) => effect),
      ["1.0", "2.0", "3.0"],
    );
    await run.cancel({ mode: "compensate" });
    await assert.rejects(run.result(), ended("Compensated", /rain/));
    assert.deepEqual(undone(begin), ["awaited", "spawned", "whole fast", "own"]);
    assert.equal((await env.client.handle("alone").describe()).status, "Waiting");
    await env.client.handle("alone").terminate();
  });
});

test("a child that completes although it was asked to undo is undone by its parent", async () => {
  const slow = workflow("slow", async function* () {
    return yield* shieldedBooking();
  });
  const shieldedBooking = async function* () {
    yield* sleep("1h");
    return yield* book("child");
  };
  const parent = workflow("parent", async function* () {
    yield* child(slow).compensate((what) => undo(`whole ${what}`));
  });
  await inCase({ workflows: [parent, slow] }, async (env) => {
    const begin = record.total;
    const run = await env.start(parent, undefined, { id: "p" });
    await env.advance("59m");
    // The child's end and the request to it cross.
    const { children } = await run.describe();
    const cancelling = run.cancel({ mode: "compensate" });
    await env.advance("1m");
    await cancelling;
    await run.result().catch(() => {});
    const { status } = await env.client.handle(children[0]?.id ?? "").describe();
    assert.deepEqual(undone(begin), status === "Completed" ? ["whole child"] : []);
  });
});
