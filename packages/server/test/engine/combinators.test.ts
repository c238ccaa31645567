import assert from "node:assert/strict";
import { test } from "node:test";
import {
  activity,
  all,
  any,
  awaitEvent,
  CancelledError,
  event,
  map,
  race,
  select,
  settled,
  sideEffect,
  sleep,
  spawn,
  step,
  TimeoutError,
  timeout,
  type WorkflowContext,
  workflow,
} from "@wovyr/sdk";
import { ExecutionRecord, Gate } from "@wovyr/testing";
import { inCase, inEachCache } from "./case.ts";

const go = event("go");
const echo = activity("echo", async (value: unknown) => value);
const fails = activity("fails", { retry: { maxAttempts: 1 } }, async (message: string) => {
  throw new Error(message);
});
const later = async function* <T>(ms: number, value: T) {
  yield* sleep(ms);
  return value;
};
const brokenLater = async function* (ms: number, message: string) {
  yield* sleep(ms);
  throw new Error(message);
};
const messageOf = (error: unknown) => (error as Error).message;

test("all gives values in the shape of its branches, and of nothing at once nothing", async () => {
  const shapes = workflow("shapes", async function* () {
    return [
      yield* all([later(2, "a"), echo("b"), () => later(1, "c")]),
      yield* all({ x: later(2, 1), y: echo(2) }),
      yield* all([]),
      yield* all({}),
      yield* settled([]),
      yield* map([], () => sleep(1)),
    ];
  });
  await inEachCache({ workflows: [shapes] }, async (env) => {
    assert.deepEqual(await env.execute(shapes), [["a", "b", "c"], { x: 1, y: 2 }, [], {}, [], []]);
  });
});

test("any gives the first success, or every failure in the order of the branches", async () => {
  const tries = workflow("tries", async function* () {
    const first = yield* any({ bad: brokenLater(1, "bad"), slow: later(3, "slow"), quick: later(2, "quick") });
    try {
      yield* any([brokenLater(3, "a"), brokenLater(1, "b"), brokenLater(2, "c")]);
    } catch (error) {
      assert.ok(error instanceof AggregateError);
      return [first, error.errors.map(messageOf)];
    }
    return [];
  });
  await inEachCache({ workflows: [tries] }, async (env) => {
    assert.deepEqual(await env.execute(tries), [{ winner: "quick", value: "quick" }, ["a", "b", "c"]]);
  });
});

test("race gives the first outcome, a failure too; a race of nothing is refused", async () => {
  const races = workflow("races", async function* () {
    const seen: unknown[] = [yield* race([later(2, "late"), later(1, "early")])];
    for (const make of [() => race([later(2, "late"), brokenLater(1, "broken")]), () => race([]), () => race({})]) {
      try {
        yield make();
      } catch (error) {
        seen.push(messageOf(error));
      }
    }
    return seen;
  });
  await inEachCache({ workflows: [races] }, async (env) => {
    const [won, lost, ...refused] = await env.execute(races);
    assert.deepEqual([won, lost], [{ winner: 1, value: "early" }, "broken"]);
    assert.ok(refused.length === 2 && refused.every((message) => /no branches|branch/.test(String(message))));
  });
});

test("branches that start together settle in order: the first that is ready at once wins", async () => {
  const races = workflow("races", async function* () {
    const first = yield* race([sideEffect(() => "a"), sideEffect(() => "b")]);
    return [first, (yield* settled([sideEffect(() => 1), echo(2)])).length];
  });
  await inEachCache({ workflows: [races] }, async (env) => assert.deepEqual(await env.execute(races), [{ winner: 0, value: "a" }, 2]));
});

test("select takes the first task and leaves the others alive", async () => {
  const selects = workflow("selects", async function* (_: undefined, ctx) {
    const tasks = { slow: yield* spawn(later(3_000, "slow")), quick: yield* spawn(later(1_000, "quick")) };
    const first = yield* select(tasks);
    const second = yield* select([tasks.slow]);
    return [first.winner, second.value, yield* tasks.quick, ctx.now().getTime()];
  });
  await inEachCache({ workflows: [selects] }, async (env) => {
    const began = env.now().getTime();
    assert.deepEqual(await env.execute(selects), ["quick", "slow", "quick", began + 3_000]);
  });
});

test("map keeps to its concurrency and to item order", async () => {
  const gate = new Gate<number, number>();
  const work = activity("work", gate.body);
  const mapper = workflow("mapper", async function* () {
    return yield* map([10, 20, 30, 40, 50], (item, index) => work(item + index), { concurrency: 2 });
  });
  await inEachCache({ workflows: [mapper] }, async (env) => {
    const run = await env.start(mapper);
    let most = 0;
    for (const next of ["21", "10", "43", "32", "54"]) {
      await gate.arrived(next);
      most = Math.max(most, gate.waiting.length);
      gate.open(next, Number(next) * 2);
      await env.settle();
    }
    assert.equal(most, 2);
    assert.deepEqual(await run.result(), [20, 42, 64, 86, 108]);
  });
});

test("map tolerates failures up to its limits, by count, share and required successes", async () => {
  const table = [
    [{ tolerateFailures: 2 }, 2, true],
    [{ tolerateFailures: 2 }, 3, false],
    [{ tolerateFailures: "20%" }, 2, true],
    [{ tolerateFailures: "20%" }, 3, false],
    [{ minSuccess: 8 }, 2, true],
    [{ minSuccess: 8 }, 3, false],
    [{ minSuccess: 0 }, 10, true],
    [{ minSuccess: 11 }, 0, false],
    [{ tolerateFailures: 0 }, 0, true],
    [{ tolerateFailures: 0 }, 1, false],
  ] as const;
  const mapper = workflow("mapper", async function* (row: number) {
    const [options, failures] = table[row] as (typeof table)[number];
    try {
      const entries = yield* map([...Array(10).keys()], (n) => (n < failures ? brokenLater(n, `${n}`) : later(n, n)), options);
      return entries.filter((entry) => entry.status === "rejected").length;
    } catch (error) {
      return messageOf(error);
    }
  });
  await inEachCache({ workflows: [mapper] }, async (env) => {
    for (const [row, [options, failures, passes]] of table.entries()) {
      const result = await env.execute(mapper, row);
      assert.equal(typeof result === "number", passes, `${JSON.stringify(options)} with ${failures}: ${result}`);
      if (passes) assert.equal(result, failures);
    }
  });
});

test("timeout throws TimeoutError after its branch has cleaned up, and lets what is quick pass", async () => {
  const record = new ExecutionRecord();
  const limited = workflow("limited", async function* (_: undefined, ctx) {
    const quick = yield* timeout(later(1_000, "quick"), "2s");
    const began = ctx.now().getTime();
    try {
      yield* timeout(async function* () {
        try {
          yield* sleep("1h");
        } catch (error) {
          record.note((error as Error).name);
          throw error;
        } finally {
          yield* sleep("5s");
        }
      }, "2s");
    } catch (error) {
      assert.ok(error instanceof TimeoutError && error.timeout === "scope");
    }
    return [quick, ctx.now().getTime() - began];
  });
  await inEachCache({ workflows: [limited] }, async (env) => {
    assert.deepEqual(await env.execute(limited), ["quick", 7_000]);
    assert.equal(record.count("CancelledError"), record.total);
  });
});

test("spawned tasks go on beside their parent, end with it, and can be cancelled and joined", async () => {
  const parent = workflow("parent", async function* (_: undefined, ctx) {
    const seen: string[] = [];
    const sleeper = async function* (name: string) {
      try {
        yield* sleep("1h");
      } finally {
        seen.push(`${name} ended`);
        yield* echo(name);
      }
    };
    const a = yield* spawn(sleeper("a"));
    yield* spawn(sleeper("b"));
    yield* sleep("1s");
    yield* a.cancel("enough");
    yield* a.cancel();
    try {
      yield* a;
    } catch (error) {
      assert.ok(error instanceof CancelledError);
      seen.push(error.message);
    }
    const nested = yield* spawn(async function* () {
      yield* spawn(sleeper("c"));
      yield* sleep(1);
      return "nested";
    });
    seen.push(yield* nested);
    (ctx as WorkflowContext<Record<string, unknown>>).variables.seen = seen;
    return seen;
  });
  await inEachCache({ workflows: [parent] }, async (env) => {
    const run = await env.start(parent);
    assert.deepEqual(await run.result(), ["a ended", "enough", "c ended", "nested", "b ended"]);
    const ended = (await env.turns(run.id)).flatMap((turn) => turn.events).filter((fact) => fact.type === "ActivityScheduled");
    assert.equal(ended.length, 3);
  });
});

test("nested combinators close every loser, innermost first, before the winner's value is seen", async () => {
  const order: string[] = [];
  const note = activity("note", async (name: string) => name);
  const guarded = async function* (name: string) {
    try {
      yield* awaitEvent(go);
    } finally {
      order.push(yield* note(name));
    }
  };
  const nested = workflow("nested", async function* () {
    order.length = 0;
    const first = yield* race({
      quick: sleep("1s"),
      deep: all([
        guarded("a"),
        race([
          guarded("b"),
          async function* () {
            try {
              yield* all({ c: guarded("c"), d: guarded("d") });
            } finally {
              order.push("inner");
            }
          },
        ]),
      ]),
      task: async function* () {
        yield* spawn(guarded("e"));
        yield* awaitEvent(go);
      },
    });
    return [first.winner, ...order];
  });
  await inEachCache({ workflows: [nested] }, async (env) => {
    const run = await env.start(nested);
    const [winner, ...closed] = await run.result();
    assert.equal(winner, "quick");
    assert.deepEqual([...closed].sort(), ["a", "b", "c", "d", "e", "inner"]);
    assert.ok(closed.indexOf("inner") > closed.indexOf("c") && closed.indexOf("inner") > closed.indexOf("d"));
  });
});

test("effect ids follow the place in the code, so that a branch that gains a step shifts no sibling", async () => {
  const ids = workflow("ids", async function* () {
    yield* sleep(1);
    yield* all([
      echo("x"),
      async function* () {
        yield* echo("y");
        yield* all([sleep(1), race([sleep(1)])]);
      },
    ]);
    yield* timeout(sleep(1), "1s");
    const task = yield* spawn(async function* () {
      yield* sleep(1);
    });
    yield* task;
    yield* echo("named").with({ id: "mine" });
    yield* sleep(2);
    yield* map([1, 2], (n) => echo(n));
    yield* step("last", () => 1);
  });
  await inEachCache({ workflows: [ids] }, async (env) => {
    const run = await env.start(ids);
    await run.result();
    const opened = (await env.turns(run.id))
      .flatMap((turn) => turn.events)
      .flatMap((fact) => (fact.type === "ActivityScheduled" || fact.type === "TimerStarted" ? [fact.effect] : []));
    assert.deepEqual(opened, ["0", "1.0", "1.1/0", "1.1/1.0", "1.1/1.1.0", "2.0", "2!timeout", "3.0/0", "@mine", "4", "5.0", "5.1", "6"]);
  });
});

test("a custom effect id is used once in a run, and lets its call move within the code", async () => {
  let order = ["a", "b"];
  const mover = workflow("mover", async function* () {
    yield* awaitEvent(go);
    const values: string[] = [];
    for (const name of order) values.push(yield* step(name, () => name, { id: name }));
    try {
      yield* step("again", () => 1, { id: "a" });
    } catch (error) {
      values.push((error as { code: string }).code);
    }
    yield* awaitEvent(go);
    return values;
  });
  await inCase({ workflows: [mover] }, async (env) => {
    order = ["a", "b"];
    const run = await env.start(mover);
    await run.send(go);
    await env.settle();
    await env.evict(run);
    await run.send(go);
    assert.deepEqual(await run.result(), ["a", "b", "INVALID_OPTION"]);
  });
});

test("sideEffect is called once in the life of a run, and its value is what was recorded", async () => {
  let calls = 0;
  const effects = workflow("effects", async function* () {
    const first = yield* sideEffect(() => ++calls);
    yield* sleep("1s");
    const second = yield* sideEffect(() => ({ n: ++calls }));
    let thrown = "";
    try {
      yield* sideEffect(() => {
        throw new Error("no");
      });
    } catch (error) {
      thrown = messageOf(error);
    }
    yield* sleep("1s");
    return [first, second.n, thrown];
  });
  for (const evictAlways of [false, true])
    await inCase({ workflows: [effects], evictAlways }, async (env) => {
      calls = 0;
      assert.deepEqual(await env.execute(effects), [1, 2, "no"]);
      assert.equal(calls, 2);
    });
});

test("now, random and uuid come from the run: the same on replay, others in another run", async () => {
  const draw = (ctx: WorkflowContext) => [ctx.now().getTime(), ctx.random(), ctx.uuid()];
  const results: unknown[] = [];
  const drawer = workflow("drawer", async function* (_: undefined, ctx) {
    const seen = [draw(ctx)];
    yield* sleep("1s");
    seen.push(draw(ctx));
    yield* awaitEvent(go);
    seen.push(draw(ctx));
    return seen;
  });
  await inEachCache({ workflows: [drawer] }, async (env) => {
    const [one, two] = [await env.start(drawer), await env.start(drawer)];
    await env.advance("1s");
    await one.send(go);
    await two.send(go);
    const [a, b] = [await one.result(), await two.result()];
    results.push([a, b]);
    assert.notDeepEqual(
      a.map((seen) => seen.slice(1)),
      b.map((seen) => seen.slice(1)),
    );
    assert.equal((a[1]?.[0] as number) - (a[0]?.[0] as number), 1_000);
  });
  assert.deepEqual(results[0], results[1]);
});

test("variables and attributes are recorded with the turn that changed them, and survive eviction and restart", async () => {
  const keeper = workflow("keeper", { variables: () => ({ steps: [] as string[] }) }, async function* (_: undefined, ctx) {
    ctx.variables.steps.push("begun");
    ctx.attributes.stage = "first";
    yield* awaitEvent(go);
    ctx.variables.steps.push("gone on");
    ctx.attributes.stage = "second";
    ctx.attributes.seen = ctx.now();
    yield* awaitEvent(go);
    return ctx.variables.steps;
  });
  await inEachCache({ workflows: [keeper] }, async (env) => {
    const run = await env.start(keeper, undefined, { attributes: { origin: "test" } });
    const look = async () => {
      const { variables, attributes } = await run.describe();
      return [variables, attributes];
    };
    assert.deepEqual(await look(), [{ steps: ["begun"] }, { origin: "test", stage: "first" }]);
    await env.evict(run);
    await run.send(go);
    await env.restart();
    const second = [{ steps: ["begun", "gone on"] }, { origin: "test", stage: "second", seen: env.now().toISOString() }];
    assert.deepEqual(await look(), second);
    await run.send(go);
    assert.deepEqual(await run.result(), ["begun", "gone on"]);
    const changes = (await env.turns(run.id)).map((turn) => turn.events.filter((fact) => /Changed$/.test(fact.type)).length);
    assert.deepEqual(changes, [2, 2, 0]);
  });
});

test("variables that cannot be stored fail the run with the place of the bad value", async () => {
  const careless = workflow("careless", { variables: () => ({}) as Record<string, unknown> }, async function* (_: undefined, ctx) {
    yield* sleep(1);
    ctx.variables.fn = () => 1;
    yield* sleep(1);
  });
  await inEachCache({ workflows: [careless] }, async (env) => {
    await assert.rejects(env.execute(careless), (error: Error) => /\$\.fn/.test(String(error.cause)));
  });
});

test("an effect may have 10,000 branches and not one more", async () => {
  const wide = workflow("wide", async function* (size: number) {
    const seen: unknown[] = [];
    const branches = () => Array.from({ length: size }, (_, n) => sideEffect(() => n));
    for (const make of [
      () => all(branches()),
      () => settled(branches()),
      () => map(branches(), (branch) => branch),
      () => any(branches()),
      () => race(branches()),
    ]) {
      try {
        const value = yield make();
        seen.push(Array.isArray(value) ? value.length : 1);
      } catch (error) {
        seen.push((error as { code: string }).code);
      }
    }
    return seen;
  });
  await inCase({ workflows: [wide] }, async (env) => {
    assert.deepEqual(await env.execute(wide, 10_000), [10_000, 10_000, 10_000, 1, 1]);
    assert.deepEqual(await env.execute(wide, 10_001), Array(5).fill("TOO_MANY_BRANCHES"));
  });
});

test("what one turn may record is bounded, with an error that can be caught and repeated", async () => {
  const heavy = workflow("heavy", async function* () {
    let begun = 0;
    try {
      yield* all(Array.from({ length: 20 }, (_, n) => echo(`${n}${"x".repeat(1_000)}`)));
    } catch (error) {
      begun += 1;
      yield* sleep(1);
      return [(error as { code: string }).code, begun];
    }
    return [];
  });
  await inEachCache({ workflows: [heavy], limits: { turn: 10_000 } }, async (env) => {
    assert.deepEqual(await env.execute(heavy), ["TURN_TOO_LARGE", 1]);
  });
});

test("the length of history is bounded: the workflow may tidy up and ends, and a replay agrees", async () => {
  const endless = workflow("endless", async function* () {
    for (;;) yield* sleep(1);
  });
  await inEachCache({ workflows: [endless], limits: { history: 50 } }, async (env) => {
    const run = await env.start(endless);
    await assert.rejects(run.result(), (error: Error) => (error.cause as { code: string }).code === "HISTORY_TOO_LONG");
    assert.ok((await env.state(run.id)).tail <= 55);
  });
});

test("failures of unawaited branches in all are told once, the first by completion wins", async () => {
  const racing = workflow("racing", async function* () {
    try {
      yield* all([brokenLater(2, "second"), brokenLater(1, "first"), fails("third")]);
    } catch (error) {
      return messageOf(error);
    }
    return "";
  });
  await inEachCache({ workflows: [racing] }, async (env) => assert.match(await env.execute(racing), /third/));
});

test("historyLength is the same on replay as it was when the turn was made", async () => {
  const counter = workflow("counter", async function* (_: undefined, ctx) {
    const seen: number[] = [];
    for (let n = 0; n < 3; n++) {
      seen.push((yield* echo(ctx.historyLength)) as number);
      yield* all([sleep(1), echo(ctx.historyLength), sideEffect(() => ctx.historyLength)]);
      (ctx.variables as Record<string, unknown>).n = n;
    }
    return seen;
  });
  await inEachCache({ workflows: [counter] }, async (env) => {
    const [first, ...others] = await env.execute(counter);
    assert.equal(first, 1);
    assert.ok(others.every((length, at) => length > ([first, ...others][at] ?? 0)));
  });
});
