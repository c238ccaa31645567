import assert from "node:assert/strict";
import { describe, it, test } from "node:test";
import { type ActivityError, activity, all, NonRetryableError, settled, type TimeoutError, workflow } from "@wovyr/sdk";
import { type CircuitBreakerOptions, resolveCircuitBreaker } from "@wovyr/sdk/internal";
import type { TestEnvironment } from "@wovyr/testing";
import { Gate } from "@wovyr/testing";
import fc from "fast-check";
import { CircuitBreaker } from "../../src/engine/circuit-breaker.ts";
import { inCase, inEachCache } from "./case.ts";

const breakerOf = (options: CircuitBreakerOptions) => new CircuitBreaker(resolveCircuitBreaker(options));

describe("a circuit", () => {
  it("opens after so many failures in a row, and a success begins the row anew", () => {
    const breaker = breakerOf({ failureThreshold: 3, openFor: "1m" });
    for (const outcome of ["failed", "failed", "succeeded", "failed", "failed"] as const) breaker[outcome](breaker.term, 0);
    assert.equal(breaker.stateAt(0), "closed");
    breaker.failed(breaker.term, 10);
    assert.equal(breaker.stateAt(10), "open");
    assert.equal(breaker.until, 60_010);
    assert.equal(breaker.admits(60_009), false);
  });

  it("with a window opens after so many failures within it, whatever succeeded between", () => {
    const breaker = breakerOf({ failureThreshold: 3, window: 100, openFor: "1m" });
    breaker.failed(0, 0);
    breaker.succeeded(0);
    breaker.failed(0, 50);
    breaker.failed(0, 100);
    assert.equal(breaker.stateAt(100), "closed", "the first one is too long ago");
    breaker.failed(0, 149);
    assert.equal(breaker.stateAt(149), "open");
  });

  it("half-open lets so many through, closes when all of them succeed, and opens again when one fails", () => {
    const opened = () => {
      const breaker = breakerOf({ failureThreshold: 1, openFor: 100, halfOpenAttempts: 2 });
      breaker.failed(0, 0);
      assert.deepEqual([breaker.admits(99), breaker.admits(100), breaker.admits(100), breaker.admits(100)], [false, true, true, false]);
      return breaker;
    };
    const good = opened();
    good.succeeded(good.term);
    assert.equal(good.stateAt(100), "halfOpen");
    good.succeeded(good.term);
    assert.equal(good.stateAt(100), "closed");
    const bad = opened();
    const { term } = bad;
    bad.succeeded(term);
    bad.failed(term, 150);
    assert.equal(bad.stateAt(249), "open");
    bad.failed(term, 240);
    assert.equal(bad.until, 250, "what an attempt of an earlier term comes to does not count");
    const stopped = opened();
    stopped.gaveUp(stopped.term);
    assert.ok(stopped.admits(100), "one that ended without an outcome makes room");
  });

  it("never lets anything through while it is open, nor more than it may half-open", () => {
    const step = fc.tuple(fc.constantFrom("admit", "fail", "succeed", "giveUp"), fc.nat(3), fc.nat(60));
    fc.assert(
      fc.property(
        fc.integer({ min: 1, max: 4 }),
        fc.integer({ min: 1, max: 3 }),
        fc.boolean(),
        fc.array(step, { maxLength: 200 }),
        (threshold, probes, windowed, steps) => {
          const breaker = breakerOf({
            failureThreshold: threshold,
            openFor: 50,
            halfOpenAttempts: probes,
            ...(windowed && { window: 100 }),
          });
          let now = 0;
          const running: number[] = [];
          for (const [what, which, passed] of steps) {
            now += passed;
            const state = breaker.stateAt(now);
            const [term] = what === "admit" ? [] : running.splice(which, 1);
            if (what === "admit") {
              const letThrough = breaker.admits(now);
              assert.equal(letThrough && state === "open", false);
              if (state === "closed") assert.ok(letThrough);
              if (letThrough) running.push(breaker.term);
            } else if (term !== undefined) {
              if (what === "fail") breaker.failed(term, now);
              else if (what === "succeed") breaker.succeeded(term);
              else breaker.gaveUp(term);
            }
            if (breaker.stateAt(now) === "halfOpen") assert.ok(running.filter((each) => each === breaker.term).length <= probes);
            assert.ok(breaker.roomAt(now) >= 0);
          }
          // Whatever happened, it lets something through again when everything has ended.
          for (const term of running) breaker.gaveUp(term);
          assert.ok(breaker.admits(now + 1_000));
        },
      ),
      { numRuns: 2_000 },
    );
  });

  for (const wrong of [
    {},
    { failureThreshold: 0, openFor: 1 },
    { failureThreshold: 1 },
    { failureThreshold: 1, openFor: -1 },
    { failureThreshold: 1e9, openFor: 1 },
    { failureThreshold: 1, openFor: 1, halfOpenAttempts: 0 },
    { failureThreshold: 1, openFor: 1, windows: 1 },
    5,
  ])
    it(`is refused where it is defined: ${JSON.stringify(wrong)}`, () =>
      assert.throws(() => activity("a", { circuitBreaker: wrong as never }, async () => 1), { code: /INVALID_OPTION|INVALID_DURATION/ }));
});

const circuitOf = async (env: TestEnvironment, id: string) => (await env.client.handle(id).describe()).activities[0]?.circuit;

test("while a circuit is open its attempts wait, take no place, use up no attempt, and begin when it is half-open", async () => {
  let works = false;
  const began: string[] = [];
  const call = activity(
    "call",
    { retry: { maxAttempts: 3, initialDelay: "1s", jitter: "none" }, circuitBreaker: { failureThreshold: 2, openFor: "10m" } },
    async (name: string, ctx) => {
      began.push(`${name}${ctx.attempt}`);
      if (!works) throw new Error("down");
      return name;
    },
  );
  const other = activity("other", async () => "other");
  const caller = workflow("caller", async function* (name: string) {
    return yield* call(name);
  });
  const bystander = workflow("bystander", async function* () {
    return yield* other();
  });
  await inCase({ workflows: [caller, bystander], limits: { activities: 1 }, autoSkip: false }, async (env) => {
    const a = await env.start(caller, "a", { id: "a" });
    await env.advance(0);
    await env.start(caller, "b", { id: "b" });
    await env.advance(0);
    assert.deepEqual(began, ["a1", "b1"]);
    const opened = env.now().getTime();
    await env.advance("5m");
    assert.deepEqual(began, ["a1", "b1"], "the second attempts are recorded, and held back");
    assert.equal((await a.describe()).activities[0]?.attempt, 2);
    assert.deepEqual(await circuitOf(env, "a"), { state: "open", until: new Date(opened + 600_000) });
    assert.equal(await env.execute(bystander), "other", "the only place is free");
    works = true;
    await env.advance("6m");
    assert.equal(await a.result(), "a");
    assert.equal(await env.client.handle("b").result(), "b");
    assert.deepEqual(began, ["a1", "b1", "a2", "b2"]);
    const lines = env.logs.filter(({ message }) => message.includes("circuit")).map(({ level, message }) => `${level} ${message}`);
    assert.deepEqual(lines, [
      "warn the circuit of an activity is open: its attempts are held back",
      "info the circuit of an activity is closed again",
    ]);
  });
});

test("half-open, so many probes begin; a failure opens the circuit again, and the rest goes on waiting", async () => {
  const gate = new Gate<string, string>();
  const call = activity(
    "call",
    {
      retry: { maxAttempts: 9, initialDelay: 0, jitter: "none" },
      circuitBreaker: { failureThreshold: 1, openFor: "1m", halfOpenAttempts: 2 },
    },
    gate.body,
  );
  const caller = workflow("caller", async function* () {
    return yield* all(["a", "b", "c", "d"].map((name) => call(name)));
  });
  await inCase({ workflows: [caller], limits: { activities: 1 } }, async (env) => {
    env.autoSkip = false;
    const run = await env.start(caller, undefined, { id: "run" });
    await gate.arrived("a");
    gate.fail("a", new Error("down"));
    await env.advance("1m");
    assert.deepEqual(gate.waiting.length, 1, "one place, so one probe at a time");
    const probe = gate.waiting[0] ?? "";
    gate.fail(probe, new Error("still down"));
    await env.advance("59s");
    assert.deepEqual(gate.waiting, []);
    await env.advance("1s");
    for (let left = 4; left > 0; left -= 1) {
      await env.until(() => gate.waiting.length > 0);
      const next = gate.waiting[0] ?? "";
      gate.open(next, next);
      await env.settle();
    }
    env.autoSkip = true;
    assert.deepEqual(await run.result(), ["a", "b", "c", "d"]);
  });
});

test("the time of an attempt that is held back goes on: scheduleToStart and scheduleToClose end it", async () => {
  const down = activity(
    "down",
    { retry: { maxAttempts: 1 }, circuitBreaker: { failureThreshold: 1, openFor: "1h" } },
    async (_: string) => {
      throw new Error("down");
    },
  );
  const caller = workflow("caller", async function* () {
    const outcomes = yield* settled([
      down("first"),
      async function* () {
        yield* settled([down("opens it")]);
        return yield* settled([
          down("a").with({ timeout: { scheduleToStart: "5m" } }),
          down("b").with({ timeout: { scheduleToClose: "7m", scheduleToStart: "8m" } }),
        ]);
      },
    ]);
    const inner = outcomes[1];
    assert.ok(inner?.status === "fulfilled");
    return (inner.value as unknown as readonly { reason: ActivityError }[]).map(({ reason }) => [
      (reason.cause as TimeoutError).timeout,
      (reason.cause as TimeoutError).limit,
      reason.attempts,
    ]);
  });
  await inEachCache({ workflows: [caller] }, async (env) => {
    const began = env.now().getTime();
    assert.deepEqual(await env.execute(caller), [
      ["scheduleToStart", 300_000, 1],
      ["scheduleToClose", 420_000, 1],
    ]);
    assert.ok(env.now().getTime() - began >= 420_000);
  });
});

test("a cancelled attempt that was held back, or was to find out, leaves the way to the next", async () => {
  const gate = new Gate<string, string>();
  const call = activity("call", { retry: { maxAttempts: 1 }, circuitBreaker: { failureThreshold: 1, openFor: "1m" } }, gate.body);
  const caller = workflow("caller", async function* (name: string) {
    return yield* call(name);
  });
  await inCase({ workflows: [caller] }, async (env) => {
    env.autoSkip = false;
    const first = await env.start(caller, "first");
    await gate.arrived("first");
    gate.fail("first", new Error("down"));
    await assert.rejects(first.result());
    const runs = [];
    for (const name of ["a", "b", "c"]) runs.push(await env.start(caller, name));
    await env.settle();
    await runs[0]?.cancel({ mode: "immediate" });
    await env.advance("1m");
    assert.deepEqual(gate.waiting, ["b"]);
    await runs[1]?.cancel({ mode: "immediate" });
    await env.settle();
    assert.ok(gate.waiting.includes("c"), "the probe was stopped: the next one finds out");
    gate.open("c", "works");
    assert.equal(await runs[2]?.result(), "works");
    for (const name of gate.waiting) gate.open(name, "late");
    assert.equal(env.engine.dispatch.circuitOf("default", "call"), undefined);
  });
});

test("what the caller did wrong opens no circuit, and a circuit is one tenant's and one activity's", async () => {
  const options = { retry: { maxAttempts: 1 }, circuitBreaker: { failureThreshold: 1, openFor: "1h" } } as const;
  const picky = activity("picky", options, async (_: string) => {
    throw new NonRetryableError("no such order");
  });
  const down = activity("down", options, async (_: string) => {
    throw new Error("down");
  });
  const caller = workflow("caller", async function* () {
    const outcomes = yield* settled([picky("a"), down("a")]);
    yield* settled([picky("b")]);
    return outcomes.map(({ status }) => status);
  });
  await inCase({ workflows: [caller] }, async (env) => {
    assert.deepEqual(await env.execute(caller), ["rejected", "rejected"]);
    const { dispatch } = env.engine;
    assert.equal(dispatch.circuitOf("default", "picky"), undefined);
    assert.equal(dispatch.circuitOf("default", "down")?.state, "open");
    assert.equal(dispatch.circuitOf("other", "down"), undefined);
  });
});

test("a circuit is forgotten when the process ends", async () => {
  let works = false;
  const call = activity(
    "call",
    { retry: { maxAttempts: 9, initialDelay: "1m", jitter: "none" }, circuitBreaker: { failureThreshold: 1, openFor: "1 day" } },
    async () => {
      if (!works) throw new Error("down");
      return "works";
    },
  );
  const caller = workflow("caller", async function* () {
    return yield* call();
  });
  await inCase({ workflows: [caller] }, async (env) => {
    env.autoSkip = false;
    const run = await env.start(caller, undefined, { id: "run" });
    await env.advance("2m");
    assert.equal((await circuitOf(env, "run"))?.state, "open");
    env.crash();
    works = true;
    await env.restart();
    assert.equal(await run.result(), "works");
    assert.ok(env.now().getTime() - new Date("2026-01-01").getTime() < 3_600_000);
  });
});
