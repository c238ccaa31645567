import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { CancelledError, NonRetryableError, RetryAfterError, TimeoutError } from "@wovyr/sdk";
import fc from "fast-check";
import { errorOf, failureOf } from "../../src/model/failure.ts";
import { type FailureKind, failureKinds, kindOf } from "../../src/model/failure-kind.ts";
import { decideRetry, type FailedAttempt } from "../../src/model/retry-decision.ts";
import { type BackoffContext, type RetryPolicy, resolveRetry } from "../../src/model/retry-policy.ts";

const broken: unknown[] = [];

function decide(policy: RetryPolicy, error: unknown, more: Partial<FailedAttempt> = {}) {
  return decideRetry(resolveRetry({ jitter: "none", ...policy }), {
    attempt: 1,
    error,
    kind: kindOf(error),
    scheduledAt: 1_000,
    now: 5_000,
    previousDelay: 0,
    random: () => 0.5,
    broken: (_, cause) => broken.push(cause),
    ...more,
  });
}

class OutOfStock extends Error {
  readonly item = "pen";
}
class Throttled extends Error {
  override readonly name = "ThrottlingException";
  readonly code = "THROTTLED";
}

describe("whether a failure is followed by another attempt", () => {
  it("hangs on the policy, up to its number of attempts", () => {
    const policy: RetryPolicy = { maxAttempts: 3, initialDelay: 100 };
    assert.deepEqual(decide(policy, new Error("x")), { retryAt: 5_100 });
    assert.deepEqual(decide(policy, new Error("x"), { attempt: 2 }), { retryAt: 5_200 });
    assert.deepEqual(decide(policy, new Error("x"), { attempt: 3 }), { noRetry: "maxAttempts" });
    assert.deepEqual(decide({ maxAttempts: Number.POSITIVE_INFINITY }, "text", { attempt: 1e9 }), { retryAt: 65_000 });
  });

  it("hangs on what the error says, before anything else", () => {
    const rules = [{ when: Error, retry: { initialDelay: 1 } }];
    assert.deepEqual(decide({ rules }, new NonRetryableError("no")), { noRetry: "permanent" });
    assert.deepEqual(decide({}, new CancelledError()), { noRetry: "permanent" });
    assert.deepEqual(decide({}, new Error("x"), { kind: "permanent" }), { noRetry: "permanent" });
    assert.deepEqual(decide({ rules }, new Error("x"), { kind: "permanent" }), { retryAt: 5_001 }, "a rule goes over a kind");
    for (const kind of ["transient", "timeout", "infrastructure"] as const)
      assert.deepEqual(decide({ initialDelay: 7 }, new Error("x"), { kind }), { retryAt: 5_007 });
  });

  it("is over when the next attempt would begin too late", () => {
    const policy: RetryPolicy = { initialDelay: 100, maxDuration: 4_100 };
    assert.deepEqual(decide(policy, new Error("x")), { retryAt: 5_100 });
    assert.deepEqual(decide(policy, new Error("x"), { now: 5_001 }), { noRetry: "maxDuration" });
    assert.deepEqual(decide({ initialDelay: 100 }, new Error("x"), { deadline: 5_101 }), { retryAt: 5_100 });
    assert.deepEqual(decide({ initialDelay: 100 }, new Error("x"), { deadline: 5_100 }), { noRetry: "scheduleToClose" });
  });

  it("of one that runs once at most needs a rule, or an error, that says that nothing happened", () => {
    const once = { atMostOnce: true };
    assert.deepEqual(decide({}, new Error("x"), once), { noRetry: "atMostOnce" });
    assert.deepEqual(decide({ rules: [{ when: "THROTTLED", retry: { initialDelay: 3 } }] }, new Throttled(), once), { retryAt: 5_003 });
    assert.deepEqual(decide({}, new RetryAfterError("busy", 10), once), { retryAt: 5_010 });
    assert.deepEqual(decide({ rules: [{ when: "OTHER", retry: {} }] }, new Throttled(), once), { noRetry: "atMostOnce" });
  });
});

describe("the time that a RetryAfterError asks for", () => {
  it("is a duration or a date, and may be beyond maxDelay", () => {
    assert.deepEqual(decide({ maxDelay: 10 }, new RetryAfterError("busy", "1h")), { retryAt: 3_605_000 });
    assert.deepEqual(decide({}, new RetryAfterError("busy", new Date(9_000))), { retryAt: 9_000 });
    assert.deepEqual(decide({}, new RetryAfterError("busy", new Date(1))), { retryAt: 5_000 }, "a time that has passed is now");
    const back = errorOf(failureOf(new RetryAfterError("busy", "1h")));
    assert.deepEqual(decide({}, back), { retryAt: 3_605_000 }, "also one that crossed a process");
  });

  it("is bounded by maxDuration, by the time of all attempts and by their number", () => {
    assert.deepEqual(decide({ maxDuration: "10m" }, new RetryAfterError("busy", "1h")), { noRetry: "maxDuration" });
    assert.deepEqual(decide({}, new RetryAfterError("busy", "1h"), { deadline: 10_000 }), { noRetry: "scheduleToClose" });
    assert.deepEqual(decide({ maxAttempts: 1 }, new RetryAfterError("busy", 1)), { noRetry: "maxAttempts" });
  });

  for (const after of [Number.NaN, Number.POSITIVE_INFINITY, -1, "abc", new Date(Number.NaN), {}, null])
    it(`H002 that is none (${String(after)}) ends the retries with an error that names it`, () => {
      const error = new RetryAfterError("busy", after as never);
      const decision = decide({}, error);
      assert.ok("noRetry" in decision && decision.noRetry === "permanent");
      assert.match(String(decision.instead), /INVALID_DURATION|`after` of RetryAfterError/);
      assert.equal((decision.instead as { code?: string }).code, "INVALID_DURATION");
      assert.equal(decision.instead?.cause, error);
    });
});

describe("the rules of a policy", () => {
  const fits = (when: NonNullable<RetryPolicy["rules"]>[number]["when"], error: unknown) =>
    "noRetry" in decide({ rules: [{ when, retry: false }] }, error);

  it("fit by class, by code, by features and by what a function says", () => {
    assert.ok(fits(OutOfStock, new OutOfStock("x")));
    assert.ok(!fits(OutOfStock, new Error("x")));
    assert.ok(fits(Error, new OutOfStock("x")), "a class fits those that extend it");
    assert.ok(fits("THROTTLED", new Throttled()));
    assert.ok(!fits("THROTTLED", new Error("THROTTLED")));
    assert.ok(fits({ name: "ThrottlingException" }, new Throttled()));
    assert.ok(fits({ name: "ThrottlingException", code: "THROTTLED" }, new Throttled()));
    assert.ok(!fits({ name: "ThrottlingException", code: "OTHER" }, new Throttled()));
    assert.ok(fits({ kind: "timeout" }, new TimeoutError("late")));
    assert.ok(fits((error) => error instanceof OutOfStock && error.item === "pen", new OutOfStock("x")));
    assert.ok(fits((error, kind) => kind === "transient" && error === "text", "text"));
  });

  it("H072 fit an error that crossed a process by the name of its class", () => {
    class Named extends Error {}
    Named.prototype.name = "SoldOut";
    for (const error of [new OutOfStock("x"), new Named()]) {
      const back = errorOf(failureOf(error));
      assert.ok(!(back instanceof error.constructor));
      assert.ok(fits(error.constructor as typeof OutOfStock, back));
    }
  });

  it("are asked in order, those of a later policy first, and the first that fits counts", () => {
    const engine: RetryPolicy = {
      rules: [
        { when: "THROTTLED", retry: { initialDelay: "10s" } },
        { when: OutOfStock, retry: false },
      ],
    };
    const activity: RetryPolicy = { jitter: "none", rules: [{ when: Throttled, retry: { initialDelay: "3s", maxAttempts: 2 } }] };
    const about = { scheduledAt: 0, now: 0, previousDelay: 0, kind: "transient" as const, random: () => 0, broken: () => {} };
    const both = resolveRetry(engine, activity);
    assert.deepEqual(decideRetry(both, { ...about, attempt: 1, error: new Throttled() }), { retryAt: 3_000 });
    assert.deepEqual(decideRetry(both, { ...about, attempt: 2, error: new Throttled() }), { noRetry: "maxAttempts" });
    assert.deepEqual(decideRetry(both, { ...about, attempt: 2, error: new OutOfStock() }), { noRetry: "rule" });
  });

  it("leave everything else to the policy", () => {
    const rules = [{ when: "THROTTLED", retry: { initialDelay: "5m" as const } }];
    assert.deepEqual(decide({ rules, maxDelay: "1m" }, new Throttled()), { retryAt: 305_000 }, "a longer first delay goes over the cap");
    assert.deepEqual(decide({ rules }, new Error("x")), { retryAt: 6_000 });
  });

  it("do no harm when a function of theirs throws: it does not fit, and whoever runs the engine hears of it", () => {
    broken.length = 0;
    const rules: RetryPolicy["rules"] = [
      {
        when: () => {
          throw new RangeError("oops");
        },
        retry: false,
      },
    ];
    assert.deepEqual(decide({ rules, initialDelay: 1 }, new Error("x")), { retryAt: 5_001 });
    assert.deepEqual(broken.map(String), ["RangeError: oops"]);
    const proxy = new Proxy(new Error("x"), {
      get: () => {
        throw new Error("no");
      },
    });
    assert.ok("retryAt" in decide({ rules: [{ when: "A", retry: false }] }, proxy, { kind: "transient" }));
  });

  const wrong: readonly [unknown, RegExp][] = [
    [5, /retry.rules must be a list/],
    [[5], /the options of retry.rules\[0\] must be an object/],
    [[{ when: "A" }], /retry.rules\[0\].retry must be false or an object/],
    [[{ retry: false }], /retry.rules\[0\].when must be an error class/],
    [[{ when: "", retry: false }], /retry.rules\[0\].when must be/],
    [[{ when: {}, retry: false }], /names nothing/],
    [[{ when: { status: 1 }, retry: false }], /has no option "status"/],
    [[{ when: { kind: "bad" }, retry: false }], /when.kind must be one of transient/],
    [[{ when: "A", retry: true }], /must be false or an object/],
    [[{ when: "A", retry: { rules: [] } }], /has no option "rules"/],
    [[{ when: "A", retry: { maxAttempts: 0 } }], /retry.rules\[0\].retry.maxAttempts/],
    [[{ when: "A", retry: { maxDelay: "soon" } }], /retry.rules\[0\].retry.maxDelay/],
  ];
  for (const [rules, message] of wrong)
    it(`are checked when they are given: ${JSON.stringify(rules)}`, () =>
      assert.throws(() => resolveRetry({ rules } as RetryPolicy), { message }));
});

describe("a backoff function", () => {
  it("is told what happened, and its delay is taken as it is, up to maxDelay", () => {
    const seen: BackoffContext[] = [];
    const backoff = (context: BackoffContext) => {
      seen.push(context);
      return `${context.attempt * 10}s` as const;
    };
    const error = new Throttled();
    assert.deepEqual(decide({ backoff, jitter: "full", maxDelay: "15s" }, error, { attempt: 1, previousDelay: 3 }), { retryAt: 15_000 });
    assert.deepEqual(decide({ backoff, jitter: "full", maxDelay: "15s" }, error, { attempt: 2 }), { retryAt: 20_000 });
    const { random, ...first } = seen[0] as BackoffContext;
    assert.deepEqual(first, { attempt: 1, error, kind: "transient", previousDelay: 3, elapsed: 4_000 });
    assert.equal(random(), 0.5);
  });

  for (const returned of [Number.NaN, -1, "soon", undefined, new Date()])
    it(`H002 that gives no duration (${String(returned)}) is passed over, and whoever runs the engine hears of it`, () => {
      broken.length = 0;
      assert.deepEqual(decide({ backoff: () => returned as never, initialDelay: 250 }, new Error("x")), { retryAt: 5_250 });
      assert.match(String(broken[0]), /what retry\.backoff returned/);
    });
});

describe("the delay between attempts", () => {
  it("H066 of decorrelated jitter stays between the first delay and three times the one before, within the cap", () => {
    fc.assert(
      fc.property(
        fc.nat(1e6),
        fc.nat(1e8),
        fc.nat(1e9),
        fc.double({ min: 0, max: 1, maxExcluded: true, noNaN: true }),
        (initialDelay, more, previousDelay, fraction) => {
          const maxDelay = initialDelay + more;
          const decision = decide({ jitter: "decorrelated", initialDelay, maxDelay }, new Error("x"), {
            previousDelay,
            random: () => fraction,
          });
          assert.ok("retryAt" in decision);
          const delay = decision.retryAt - 5_000;
          assert.ok(Number.isSafeInteger(delay) && delay >= initialDelay && delay <= maxDelay, `${delay}`);
          assert.ok(delay <= Math.max(initialDelay, previousDelay * 3));
        },
      ),
      { numRuns: 5_000 },
    );
  });

  it("H066 is decided within every limit, whatever the policy, the failure and the past", () => {
    const duration = fc.oneof(fc.constantFrom(0, 1, 1_000), fc.nat(1e9));
    fc.assert(
      fc.property(
        fc.record({
          maxAttempts: fc.oneof(fc.integer({ min: 1, max: 10 }), fc.constant(Number.POSITIVE_INFINITY)),
          maxDuration: fc.option(duration, { nil: undefined }),
          backoff: fc.constantFrom("fixed" as const, "linear" as const, "exponential" as const),
          maxDelay: duration,
          factor: fc.constantFrom(1, 2, 1e300),
          jitter: fc.constantFrom("none" as const, "full" as const, "equal" as const, "decorrelated" as const),
        }),
        fc.record({
          attempt: fc.integer({ min: 1, max: 5_000 }),
          kind: fc.constantFrom<FailureKind>(...failureKinds),
          scheduledAt: fc.nat(1e9),
          now: fc.nat(1e12),
          previousDelay: fc.nat(1e9),
          deadline: fc.option(fc.nat(2e12), { nil: undefined }),
          fraction: fc.double({ min: 0, max: 1, maxExcluded: true, noNaN: true }),
        }),
        (policy, { fraction, ...about }) => {
          const decision = decide(policy, new Error("x"), { ...about, random: () => fraction });
          if (!("retryAt" in decision)) return;
          const { retryAt } = decision;
          const { now, scheduledAt, deadline, attempt, kind } = about;
          assert.ok(kind !== "permanent" && kind !== "cancelled");
          assert.ok(attempt < policy.maxAttempts);
          assert.ok(retryAt >= now && retryAt <= now + policy.maxDelay);
          assert.ok(retryAt <= scheduledAt + (policy.maxDuration ?? Number.POSITIVE_INFINITY));
          assert.ok(deadline === undefined || retryAt < deadline);
        },
      ),
      { numRuns: 5_000 },
    );
  });
});
