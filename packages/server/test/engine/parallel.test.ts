import assert from "node:assert/strict";
import { test } from "node:test";
import { ActivityError, activity, all, awaitEvent, event, type RetryPolicy, race, settled, sleep, spawn, workflow } from "@wovyr/sdk";
import { ExecutionRecord, Gate, SeededRandom } from "@wovyr/testing";
import { inCase, inEachCache } from "./case.ts";

const quickly = { retry: { initialDelay: "1s", jitter: "none", backoff: "fixed" } } as const;

test("H014 branches that are retried do not shift what follows them", async () => {
  for (let seed = 1; seed <= 8; seed++) {
    const random = new SeededRandom(seed);
    const failures = Array.from({ length: 5 }, () => random.below(3));
    const record = new ExecutionRecord();
    const a = activity("A", quickly, async (branch: number) => {
      if (record.note(`A${branch}`) <= (failures[branch] ?? 0)) throw new Error("not yet");
      return branch * 10;
    });
    const b = activity("B", async (results: number[]) => {
      record.note("B");
      return results;
    });
    const c = activity("C", async () => record.note("C"));
    const fan = workflow("fan", async function* () {
      const results = yield* b(yield* all([a(0), a(1), a(2), a(3), a(4)]));
      yield* c();
      return results;
    });
    await inCase({ workflows: [fan], seed, evictAlways: seed % 2 === 0, end: { everyAttemptExecuted: true } }, async (env) => {
      assert.deepEqual(await env.execute(fan), [0, 10, 20, 30, 40]);
      assert.deepEqual([record.count("B"), record.count("C")], [1, 1]);
      assert.equal(record.total, 7 + failures.reduce((sum, n) => sum + n));
    });
  }
});

class Refused extends Error {
  override readonly name = "Refused";
  readonly reason: string;
  constructor(reason: string) {
    super(`refused: ${reason}`);
    this.reason = reason;
  }
}

test("H015 all rejects with the first failure by completion, settled has an entry for each branch, also on replay", async () => {
  const gate = new Gate<string, string>();
  const work = activity("work", { retry: { maxAttempts: 1 }, errors: [Refused] }, gate.body);
  const go = event("go");
  const failing = workflow("failing", async function* () {
    let first: unknown;
    try {
      yield* all([work("a"), work("b"), work("c")]);
    } catch (error) {
      first = error;
    }
    const entries = yield* settled([work("d"), work("e")]);
    yield* awaitEvent(go);
    assert.ok(first instanceof ActivityError && first.cause instanceof Refused);
    return [
      first.cause.reason,
      entries.map((entry) => (entry.status === "fulfilled" ? entry.value : (entry.reason.cause as Refused).reason)),
    ];
  });
  await inEachCache({ workflows: [failing] }, async (env) => {
    const run = await env.start(failing);
    await gate.arrived("c");
    gate.open("a", "A");
    gate.fail("c", new Refused("c"));
    gate.fail("b", new Refused("b"));
    await gate.arrived("e");
    gate.fail("e", new Refused("e"));
    gate.open("d", "D");
    await env.evict(run);
    await run.send(go);
    assert.deepEqual(await run.result(), ["c", ["D", "e"]]);
  });
});

test("H016 tasks may be joined again and again, in any combinator, and run once", async () => {
  const record = new ExecutionRecord();
  const work = activity("work", async () => record.note("work"));
  const joiner = workflow("joiner", async function* (_: undefined, ctx) {
    const began = ctx.now().getTime();
    const task = yield* spawn(work());
    const seen: unknown[] = [];
    seen.push(...(yield* all([task])), ...(yield* all([task])), (yield* race([task, sleep("1h")])).value);
    seen.push(yield* task, yield task);
    return [...seen, ctx.now().getTime() - began];
  });
  await inEachCache({ workflows: [joiner] }, async (env) => {
    const before = record.total;
    const value = before + 1;
    assert.deepEqual(await env.execute(joiner), [value, value, value, value, value, 0]);
    assert.equal(record.total, value);
  });
});

/** Which side of `race(all(a, race(b, timer)), all(c, event))` wins, by the order in which things happen. */
function model(order: readonly string[]): unknown {
  const happened = new Set<string>();
  const first = (...names: string[]) => order.find((name) => names.includes(name)) ?? "";
  for (const name of order) {
    happened.add(name);
    if (happened.has("a") && (happened.has("b") || happened.has("timer"))) return ["left", first("b", "timer")];
    if (happened.has("c") && happened.has("event")) return ["right", "c"];
  }
  return undefined;
}

test("H017 nested combinators settle as a model on the recorded order does, in every order of completion", async () => {
  const gate = new Gate<string, string>();
  const work = activity("work", gate.body);
  const arrive = event("arrive");
  const nested = workflow("nested", async function* () {
    const first = yield* race({
      left: all([work("a"), race({ b: work("b"), timer: sleep("1h") })]),
      right: all([work("c"), awaitEvent(arrive)]),
    });
    return first.winner === "left" ? ["left", first.value[1].winner] : ["right", first.value[0]];
  });
  const orders = permutations(["a", "b", "c", "event", "timer"]);
  await inCase({ workflows: [nested] }, async (env) => {
    for (const [index, order] of orders.entries()) {
      const run = await env.start(nested);
      for (const name of order) {
        await env.settle();
        if ((await env.state(run.id)).closed) break;
        if (index % 3 === 0) await env.evict(run);
        if (name === "event") await run.send(arrive);
        else if (name === "timer") await env.advance("1h");
        else gate.open(name, name);
      }
      assert.deepEqual(await run.result(), model(order), order.join(" "));
      for (const left of gate.waiting) gate.open(left, left);
    }
  });
});

function permutations<T>(items: readonly T[]): T[][] {
  if (items.length <= 1) return [[...items]];
  return items.flatMap((item, index) => permutations(items.toSpliced(index, 1)).map((rest) => [item, ...rest]));
}

test("H070 in a parallel block each branch is tried as often, and as late, as its own policy says", async () => {
  const record = new ExecutionRecord();
  const began = new Map<number, number[]>();
  let now = () => 0;
  const work = activity("work", { retry: { maxAttempts: 3, jitter: "none" } }, async (n: number) => {
    record.note(`${n}`);
    began.set(n, [...(began.get(n) ?? []), now()]);
    throw new Error(`no ${n}`);
  });
  const policies: readonly [RetryPolicy, readonly number[]][] = [
    [{ initialDelay: "2s", backoff: "exponential" }, [0, 2_000, 6_000]],
    [{ initialDelay: "1s", backoff: "fixed" }, [0, 1_000, 2_000]],
    [{ initialDelay: "3s", backoff: "linear" }, [0, 3_000, 9_000]],
    [{ initialDelay: "1s", backoff: "exponential", factor: 10 }, [0, 1_000, 11_000]],
    [{ initialDelay: 0, backoff: "fixed" }, [0, 0, 0]],
  ];
  const fan = workflow("fan", async function* () {
    return (yield* settled(policies.map(([retry], n) => work(n).with({ retry })))).map((entry) => entry.status);
  });
  await inEachCache({ workflows: [fan], end: { everyAttemptExecuted: true } }, async (env) => {
    began.clear();
    const before = record.total;
    now = () => env.now().getTime() - start;
    const start = env.now().getTime();
    assert.deepEqual(await env.execute(fan), Array(5).fill("rejected"));
    assert.equal(record.total - before, 15);
    for (const [n, [, times]] of policies.entries()) assert.deepEqual(began.get(n), times, `branch ${n}`);
  });
});
