import assert from "node:assert/strict";
import { describe, it } from "node:test";
import fc from "fast-check";
import { resolveTimeouts } from "../../src/model/activity-timeouts.ts";
import { delayBeforeJitter, type RetryPolicy, resolveRetry, retryDelay } from "../../src/model/retry-policy.ts";

const policy: fc.Arbitrary<RetryPolicy> = fc
  .record({
    maxAttempts: fc.oneof(fc.integer({ min: 1 }), fc.constant(Number.POSITIVE_INFINITY)),
    backoff: fc.constantFrom("fixed", "linear", "exponential"),
    initialDelay: fc.oneof(fc.constantFrom(0, 1, 1_000), fc.nat(1e9)),
    maxDelay: fc.option(fc.nat(1e9), { nil: undefined }),
    factor: fc.oneof(fc.constantFrom(1, 1.1, 2, 10, 100, 1e300), fc.double({ min: 1, max: 1e6, noNaN: true })),
    jitter: fc.constantFrom("none", "full", "equal"),
  } as const)
  .map((given) => ({ ...given, initialDelay: Math.min(given.initialDelay, given.maxDelay ?? Number.POSITIVE_INFINITY) }));

describe("the delay of a retry", () => {
  it("H066 is finite, between 0 and the cap, and does not decrease before jitter", () => {
    fc.assert(
      fc.property(
        policy,
        fc.integer({ min: 1, max: 5_000 }),
        fc.double({ min: 0, max: 1, maxExcluded: true, noNaN: true }),
        (given, attempt, fraction) => {
          const resolved = resolveRetry(given);
          const base = delayBeforeJitter(resolved, attempt);
          const next = delayBeforeJitter(resolved, attempt + 1);
          const delay = retryDelay(resolved, attempt, fraction);
          assert.ok(Number.isSafeInteger(delay) && delay >= 0 && delay <= resolved.maxDelay, `${delay}`);
          assert.ok(base <= next);
          if (given.jitter === "none") assert.equal(delay, base);
          if (given.jitter === "full") assert.ok(delay <= base);
          if (given.jitter === "equal") assert.ok(delay >= Math.floor(base / 2) && delay <= base);
        },
      ),
      { numRuns: 5_000 },
    );
  });

  it("H066 is the cap at attempt 2000", () => {
    for (const factor of [2, 10, 100]) assert.equal(retryDelay(resolveRetry({ factor, jitter: "none" }), 2_000, 0), 60_000);
    assert.equal(retryDelay(resolveRetry({ backoff: "linear", maxDelay: "1h", jitter: "none" }), 2_000, 0), 2_000_000);
    assert.equal(retryDelay(resolveRetry({ initialDelay: 0, jitter: "none" }), 2_000, 0), 0);
  });

  it("grows as the backoff says", () => {
    const delays = (given: RetryPolicy) =>
      [1, 2, 3, 4].map((attempt) => retryDelay(resolveRetry({ ...given, jitter: "none" }), attempt, 0));
    assert.deepEqual(delays({}), [1_000, 2_000, 4_000, 8_000]);
    assert.deepEqual(delays({ backoff: "fixed" }), [1_000, 1_000, 1_000, 1_000]);
    assert.deepEqual(delays({ backoff: "linear", initialDelay: "2s" }), [2_000, 4_000, 6_000, 8_000]);
    assert.deepEqual(delays({ factor: 10, maxDelay: "30s" }), [1_000, 10_000, 30_000, 30_000]);
  });
});

describe("a retry policy", () => {
  it("has defaults", () => {
    assert.deepEqual(resolveRetry(), {
      maxAttempts: 5,
      maxDuration: Number.POSITIVE_INFINITY,
      backoff: "exponential",
      initialDelay: 1_000,
      maxDelay: 60_000,
      factor: 2,
      jitter: "full",
      rules: [],
    });
    assert.deepEqual(resolveRetry(undefined, {}, { maxAttempts: undefined }), resolveRetry());
  });

  it("of a call goes over that of the definition, option by option", () => {
    const merged = resolveRetry({ maxAttempts: 3, initialDelay: "2s", jitter: "none" }, { maxAttempts: 7, jitter: undefined });
    assert.deepEqual(merged, { ...resolveRetry(), maxAttempts: 7, initialDelay: 2_000, jitter: "none" });
  });

  it("has no cap below its first delay", () => {
    assert.equal(resolveRetry({ initialDelay: "5m" }).maxDelay, 300_000);
    assert.equal(resolveRetry({ maxDelay: 10 }).initialDelay, 10, "a default gives way");
    assert.throws(() => resolveRetry({ initialDelay: "5m", maxDelay: "1m" }), { code: "INVALID_OPTION" });
  });

  const wrong: readonly [object, string][] = [
    [{ maxAttempts: 0 }, "INVALID_OPTION"],
    [{ maxAttempts: 1.5 }, "INVALID_OPTION"],
    [{ maxAttempts: Number.NaN }, "INVALID_OPTION"],
    [{ maxAttempts: "3" }, "INVALID_OPTION"],
    [{ factor: 0.5 }, "INVALID_OPTION"],
    [{ factor: Number.POSITIVE_INFINITY }, "INVALID_OPTION"],
    [{ backoff: "expo" }, "INVALID_OPTION"],
    [{ jitter: true }, "INVALID_OPTION"],
    [{ retries: 3 }, "INVALID_OPTION"],
    [[], "INVALID_OPTION"],
    [{ initialDelay: "soon" }, "INVALID_DURATION"],
    [{ maxDelay: -1 }, "INVALID_DURATION"],
  ];
  for (const [given, code] of wrong) {
    it(`H002 is refused: ${JSON.stringify(given)}`, () => assert.throws(() => resolveRetry(given as RetryPolicy), { code }));
  }
});

describe("the timeouts of an activity", () => {
  it("are merged in milliseconds", () => {
    assert.deepEqual(
      resolveTimeouts({ startToClose: "30s", scheduleToClose: "1h" }, undefined, { startToClose: 5, scheduleToClose: undefined }),
      {
        startToClose: 5,
        scheduleToClose: 3_600_000,
      },
    );
  });
  it("H003 are refused when they cannot be kept, and the message names the option", () => {
    for (const startToClose of [Number.MAX_SAFE_INTEGER, 1e21, "36526 days" as const, Number.NaN]) {
      assert.throws(() => resolveTimeouts({ startToClose }), /^WovyrError: timeout\.startToClose: /);
    }
  });
});
