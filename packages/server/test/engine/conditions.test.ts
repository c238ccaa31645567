import assert from "node:assert/strict";
import { test } from "node:test";
import {
  activity,
  all,
  awaitEvent,
  condition,
  event,
  race,
  sleep,
  TimeoutError,
  Type,
  type WorkflowError,
  type WovyrError,
  workflow,
} from "@wovyr/sdk";
import { delivery } from "@wovyr/sdk/client";
import { inCase, inEachCache } from "./case.ts";

const Item = event("item", Type.Number());
const echo = activity("echo", async (value: string) => value);

test("a condition that holds costs nothing; one that does not waits until the state changes", async () => {
  const counting = workflow("counting", async function* (wanted: number, ctx) {
    let sum = 0;
    ctx.on(Item, (n) => {
      sum += n;
    });
    yield* condition(() => true);
    yield* condition(() => sum >= wanted);
    return sum;
  });
  await inEachCache({ workflows: [counting] }, async (env) => {
    const run = await env.start(counting, 3);
    for (const n of [1, 1, 5]) {
      assert.equal((await env.state(run.id)).conditions.size, 1);
      assert.match((await run.describe()).waitingAt[0] ?? "", /conditions\.test\.ts:\d+/);
      await run.send(Item, n);
    }
    assert.equal(await run.result(), 7);
    assert.equal((await env.state(run.id)).conditions.size, 0);
  });
});

test("a condition is met by what another branch does, in the same turn, and branch after branch", async () => {
  const chain = workflow("chain", async function* () {
    const log: string[] = [];
    const link = async function* (name: string, after: string) {
      yield* condition(() => log.includes(after));
      log.push(name);
      yield* condition(() => log.length >= 3);
      return name;
    };
    const names = yield* all([
      link("c", "b"),
      link("b", "a"),
      async function* () {
        log.push(yield* echo("a"));
        return "a";
      },
    ]);
    return { names, log };
  });
  await inEachCache({ workflows: [chain] }, async (env) => {
    assert.deepEqual(await env.execute(chain), { names: ["c", "b", "a"], log: ["a", "b", "c"] });
  });
});

test("a condition times out with a TimeoutError, loses a race, and can be cancelled", async () => {
  const waiting = workflow("waiting", async function* (_: undefined, ctx) {
    const began = ctx.now().getTime();
    let error: unknown;
    try {
      yield* condition(() => false, { timeout: "2h" });
    } catch (caught) {
      error = caught;
    }
    const { winner } = yield* race({ never: condition(() => false), soon: sleep("1h") });
    return { timeout: error instanceof TimeoutError && error.timeout, hours: (ctx.now().getTime() - began) / 3_600_000, winner };
  });
  const stuck = workflow("stuck", async function* () {
    yield* condition(() => false);
  });
  await inEachCache({ workflows: [waiting, stuck] }, async (env) => {
    assert.deepEqual(await env.execute(waiting), { timeout: "wait", hours: 3, winner: "soon" });
    const run = await env.start(stuck, undefined, { id: "s" });
    await assert.rejects(run.result(), /s will never end: .*a condition at .*conditions\.test\.ts/);
    await run.cancel();
    assert.equal((await run.describe()).status, "Cancelled");
    const other = await env.start(stuck);
    await other.terminate();
    assert.equal((await other.describe()).status, "Terminated");
  });
});

test("what a condition's question throws is thrown where it is waited for", async () => {
  const asking = workflow("asking", async function* (_: undefined, ctx) {
    let ready = false;
    ctx.on(Item, () => {
      ready = true;
    });
    try {
      yield* condition(() => {
        if (ready) throw new RangeError("asked too much");
        return false;
      });
      return "held";
    } catch (error) {
      return (error as Error).message;
    }
  });
  await inEachCache({ workflows: [asking] }, async (env) => {
    const run = await env.start(asking);
    await run.send(Item, 1);
    assert.equal(await run.result(), "asked too much");
  });
});

test("a condition that is no function of its own is refused", () => {
  assert.throws(() => condition(true as never), { code: "INVALID_OPTION", message: /synchronous function/ });
  assert.throws(() => condition((async () => true) as never), { code: "INVALID_OPTION" });
  assert.throws(() => condition(() => true, { timeout: "soon" as never }), { code: "INVALID_DURATION" });
  assert.throws(() => condition(() => true, { timeot: 1 } as never), { code: "INVALID_OPTION" });
});

test("a history whose condition no longer holds when it did is a divergence", async () => {
  const made = (wanted: number) =>
    workflow("counting", async function* (_: undefined, ctx) {
      let sum = 0;
      ctx.on(Item, (n) => {
        sum += n;
      });
      yield* condition(() => sum >= wanted);
      yield* sleep("1h");
      return sum;
    });
  await inCase({ workflows: [made(1)], end: { skipReplay: () => true } }, async (env) => {
    const run = await env.start(made(1));
    await run.send(Item, 1);
    await env.settle();
    await env.restart({ workflows: [made(5)] });
    await run.describe();
    await env.settle();
    assert.match((await run.describe()).parked?.message ?? "", /history recorded condition 0 that holds.*; the code now asks for nothing/);
    await env.restart({ workflows: [made(1)] });
    assert.equal(await run.result(), 1);
  });
});

test("what answers with an effect, a generator or a promise says neither yes nor no: the wait fails with its line", async () => {
  const flow = async function* () {
    yield* sleep("1h");
  };
  const answers: Record<string, [answer: () => unknown, code: string]> = {
    effect: [() => sleep("1h"), "EFFECT_NOT_YIELDED"],
    generator: [() => flow(), "EFFECT_NOT_YIELDED"],
    promise: [() => Promise.reject(new Error("adrift")), "FOREIGN_AWAIT"],
  };
  const asked = workflow("asked", async function* ({ kind, late }: { kind: string; late: boolean }, ctx) {
    let arrived = !late;
    ctx.on(Item, () => {
      arrived = true;
    });
    yield* condition((() => arrived && answers[kind]?.[0]()) as () => boolean);
  });
  const matched = workflow("matched", async function* ({ kind }: { kind: string; late: boolean }) {
    yield* awaitEvent(Item, { match: (() => answers[kind]?.[0]()) as () => boolean });
  });
  const compared = workflow("compared", async function* () {
    yield* condition(() => (echo("x") as never) > 5);
  });
  await inEachCache({ workflows: [asked, matched, compared] }, async (env) => {
    for (const [kind, [, code]] of Object.entries(answers))
      for (const [each, who] of [
        [asked, "The question of condition()"],
        [matched, "The `match` of awaitEvent(item)"],
      ] as const)
        for (const late of [false, true]) {
          const run = await env.start(each, { kind, late }, late ? {} : { event: delivery(Item, 1) });
          if (late) await run.send(Item, 1);
          await assert.rejects(run.result(), (error: WorkflowError) => {
            const { message, code: given } = error.cause as WovyrError;
            assert.equal(given, code, kind);
            assert.ok(message.startsWith(`${who} at /`), message);
            assert.match(message, new RegExp(`conditions\\.test\\.ts:\\d+:\\d+ answered with an? ${kind}`));
            if (kind === "effect")
              assert.match(message, /sleep\(…\), made at .*conditions\.test\.ts:\d+:\d+\. .*Write `yield\* sleep\(…\)`/);
            return true;
          });
        }
    await assert.rejects(env.execute(compared), /activity "echo", made at .*, was used as a value/);
    assert.deepEqual(env.trouble, []);
  });
});
