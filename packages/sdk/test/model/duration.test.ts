import assert from "node:assert/strict";
import { describe, it } from "node:test";
import fc from "fast-check";
import { type Duration, duration, instant, maxDuration, milliseconds } from "../../src/model/duration.ts";
import { WovyrError } from "../../src/model/errors.ts";

const second = 1_000;
const minute = 60 * second;
const hour = 60 * minute;
const day = 24 * hour;
const week = 7 * day;

describe("a duration", () => {
  const table: readonly (readonly [Duration | string, number])[] = [
    [0, 0],
    [-0, 0],
    [5_000, 5_000],
    [0.2, 1],
    [1.5, 2],
    ["0s", 0],
    ["10ms", 10],
    ["10 milliseconds", 10],
    ["90s", 90 * second],
    ["1 second", second],
    ["5m", 5 * minute],
    ["2 minutes", 2 * minute],
    ["1.5h", 90 * minute],
    [".5h", 30 * minute],
    ["3 days", 3 * day],
    ["2w", 2 * week],
    ["1 week", week],
    ["1h30m", 90 * minute],
    ["1h 30m", 90 * minute],
    ["1 day 2 hours", day + 2 * hour],
    ["2d12h", 2 * day + 12 * hour],
    ["5m30s", 5 * minute + 30 * second],
    ["1s500ms", 1_500],
    ["0.0001s", 1],
    ["P1D", day],
    ["P1DT2H", day + 2 * hour],
    ["PT1H30M", 90 * minute],
    ["PT0.5S", 500],
    ["P2W", 2 * week],
    ["PT0S", 0],
    [maxDuration, maxDuration],
    ["36525 days", maxDuration],
  ];
  for (const [text, expected] of table) {
    it(`is read: ${text}`, () => assert.equal(milliseconds(text as Duration), expected));
  }

  const refused: readonly (readonly [unknown, RegExp])[] = [
    [Number.NaN, /NaN is no duration/],
    [Number.POSITIVE_INFINITY, /Infinity is more than 100 years/],
    [Number.NEGATIVE_INFINITY, /negative/],
    [-1, /-1 is negative/],
    [Number.MAX_SAFE_INTEGER, /more than 100 years/],
    [1e21, /more than 100 years/],
    [Number.MAX_VALUE, /more than 100 years/],
    ["36526 days", /more than 100 years/],
    ["9".repeat(60), /has no unit/],
    ["9".repeat(1_000_000), /too long/],
    ["abc", /no duration/],
    ["", /no duration/],
    [" ", /no duration/],
    ["5", /has no unit/],
    ["-5s", /no duration/],
    ["1e3s", /no duration/],
    ["5 s ", /no duration/],
    ["5  s", /no duration/],
    ["5x", /no duration/],
    ["s", /no duration/],
    ["3 dyas", /no duration/],
    ["30m1h", /from large to small/],
    ["1h1h", /from large to small/],
    ["P1M", /months or years/],
    ["P1Y2D", /months or years/],
    ["P", /no ISO 8601/],
    ["PT", /no ISO 8601/],
    ["P1DT", /no ISO 8601/],
    ["P1D2H", /no ISO 8601/],
    ["P-1D", /no ISO 8601/],
    [undefined, /undefined is no duration/],
    [null, /null is no duration/],
    [{}, /type object/],
    [5n, /type bigint/],
    [new Date(5), /type object/],
    [Symbol("x"), /type symbol/],
  ];
  for (const [value, says] of refused) {
    it(`H002 H003 is refused: ${String(value).slice(0, 30)}`, () => {
      assert.throws(
        () => milliseconds(value as Duration, "timeout.startToClose"),
        (error: WovyrError) => {
          assert.equal(error.code, "INVALID_DURATION");
          assert.match(error.message, says);
          assert.match(error.message, /^timeout\.startToClose: .*; give milliseconds \(5000\), a text such as/);
          return error.message.length < 400;
        },
      );
    });
  }

  it("H002 is a whole number within bounds, or an error, whatever is given", () => {
    const anything = fc.oneof(fc.double(), fc.string(), fc.stringMatching(/^P?[\dTDHMSW.smhdw ]{0,12}$/), fc.anything());
    fc.assert(
      fc.property(anything, (value) => {
        let result: number;
        try {
          result = milliseconds(value as Duration);
        } catch (error) {
          assert.ok(error instanceof WovyrError && error.code === "INVALID_DURATION");
          return;
        }
        assert.ok(Number.isSafeInteger(result) && result >= 0 && result <= maxDuration);
      }),
      { numRuns: 5_000 },
    );
  });

  it("adds up its parts", () => {
    const parts = fc.record({ d: fc.nat(1_000), h: fc.nat(1_000), m: fc.nat(1_000), s: fc.nat(1_000) });
    fc.assert(
      fc.property(parts, ({ d, h, m, s }) => {
        const expected = d * day + h * hour + m * minute + s * second;
        assert.equal(milliseconds(`${d}d${h}h${m}m${s}s` as Duration), expected);
        assert.equal(milliseconds(`P${d}DT${h}H${m}M${s}S`), expected);
        assert.equal(milliseconds(`${d} days ${h} hours ${m} minutes ${s} seconds` as Duration), expected);
      }),
    );
  });

  it("is checked when it was computed", () => {
    assert.equal(duration("3 days"), "3 days");
    assert.throws(() => duration("3 dyas"), { code: "INVALID_DURATION" });
  });
});

describe("a point in time", () => {
  const table: readonly (readonly [Date | string, number])[] = [
    [new Date(5), 5],
    ["2030-01-31T09:00:00Z", Date.UTC(2030, 0, 31, 9)],
    ["2030-01-31T09:00:00.5+02:00", Date.UTC(2030, 0, 31, 7, 0, 0, 500)],
    ["2030-01-31T09:00Z", Date.UTC(2030, 0, 31, 9)],
    ["2030-01-31", Date.UTC(2030, 0, 31)],
    ["1969-12-31T23:59:59Z", -1_000],
    ["9999-12-31T23:59:59.999Z", 253_402_300_799_999],
  ];
  for (const [at, expected] of table) {
    it(`is read: ${typeof at === "string" ? at : at.toISOString()}`, () => assert.equal(instant(at, "sleepUntil"), expected));
  }
  const refused = [
    new Date(Number.NaN),
    new Date(8.64e15),
    new Date(-8.64e15),
    "",
    "tomorrow",
    "2030",
    "2030-01-31T09:00:00",
    "2030-02-31T00:00:00Z",
    "2030-13-01",
    "+010000-01-01T00:00:00Z",
    "2030-01-31T25:00:00Z",
    5,
    null,
    undefined,
    {},
    { getTime: () => 5 },
  ];
  for (const at of refused) {
    it(`H002 is refused: ${JSON.stringify(at)}`, () => {
      assert.throws(
        () => instant(at as Date, "sleepUntil"),
        (error: WovyrError) => error.code === "INVALID_DURATION" && error.message.startsWith("sleepUntil: "),
      );
    });
  }
});
