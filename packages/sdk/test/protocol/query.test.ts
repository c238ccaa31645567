import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { ApiError, type errorCodes, WovyrError } from "../../src/model/errors.ts";
import { type QueryOf, readQuery, writeQuery } from "../../src/protocol/query.ts";
import { routes } from "../../src/protocol/routes.ts";
import { statuses } from "../../src/protocol/status.ts";

const { query: list } = routes.listInstances;
const { query: wait } = routes.getResult;

const name = fc.stringMatching(/^[A-Za-z0-9_:~@-]{1,20}$/);
const time = fc.date({ min: new Date("0001-01-02T00:00:00Z"), max: new Date("9999-12-30T00:00:00Z"), noInvalidDate: true });

test("what one side writes the other side reads, attributes of any text included", () => {
  const values = fc.record(
    {
      workflow: name,
      status: fc.array(fc.constantFrom(...statuses), { minLength: 1, maxLength: 4 }),
      attributes: fc.dictionary(
        name,
        fc.oneof(
          fc.string({ unit: "binary" }),
          fc.constantFrom("\ud800", "a\udfffb", '"'),
          fc.boolean(),
          fc.double({ noNaN: true, noDefaultInfinity: true }),
        ),
        {
          minKeys: 1,
          maxKeys: 3,
        },
      ),
      startedAfter: time,
      startedBefore: time,
      cursor: fc.string({ minLength: 1 }),
      limit: fc.integer({ min: 1, max: 500 }),
    },
    { requiredKeys: [] },
  ) as fc.Arbitrary<QueryOf<typeof list>>;
  fc.assert(
    fc.property(values, (written) => {
      const { attributes, ...rest } = readQuery(list, writeQuery(list, written).slice(1));
      const { attributes: expected, ...others } = written;
      assert.deepEqual(rest, others);
      assert.deepEqual(
        Object.entries(attributes ?? {}),
        Object.entries(expected ?? {}).map(([key, value]) => [key, value === 0 ? 0 : value]),
      );
    }),
    { numRuns: 500 },
  );
});

test("an attribute's text that looks like a number or a truth value is kept apart from one by quotes", () => {
  assert.equal(
    writeQuery(list, { attributes: { order: "42", n: 42, yes: "true", on: true, quote: '"' } }),
    "?attributes.order=%2242%22&attributes.n=42&attributes.yes=%22true%22&attributes.on=true&attributes.quote=%22%5C%22%22",
  );
  const { attributes } = readQuery(
    list,
    "attributes.a=%2242%22&attributes.b=42&attributes.c=true&attributes.d=007&attributes.e=&attributes.__proto__=x",
  );
  assert.deepEqual(Object.entries(attributes ?? {}), [
    ["a", "42"],
    ["b", 42],
    ["c", true],
    ["d", "007"],
    ["e", ""],
    ["__proto__", "x"],
  ]);
  assert.equal(Reflect.get({}, "x"), undefined);
});

test("every violation of a query string is reported at once", () => {
  const error = refusal(() => readQuery(list, "limit=0&statu=Failed&status=Broken&cursor=a&cursor=b&tenant=B"));
  assert.equal(error.code, "SCHEMA_VIOLATION");
  assert.deepEqual(error.errors.map(({ pointer }) => pointer).sort(), [
    "/query/cursor",
    "/query/limit",
    "/query/statu",
    "/query/status",
    "/query/tenant",
  ]);
});

test("violations are bounded in number and in length", () => {
  const error = refusal(() => readQuery(list, Array.from({ length: 500 }, (_, index) => `${"x".repeat(2_000)}${index}=1`).join("&")));
  assert.ok(error.errors.length <= 20);
  assert.ok(JSON.stringify(error.errors).length < 20_000);
});

const refused: readonly (readonly [query: string, code: keyof typeof errorCodes])[] = [
  ["limit=1.5", "SCHEMA_VIOLATION"],
  ["limit=-1", "SCHEMA_VIOLATION"],
  ["limit=501", "SCHEMA_VIOLATION"],
  ["limit=1e2", "SCHEMA_VIOLATION"],
  ["limit=", "SCHEMA_VIOLATION"],
  ["limit=10&limit=10", "SCHEMA_VIOLATION"],
  ["attributes.a=1&attributes.a=2", "SCHEMA_VIOLATION"],
  ["attributes=red", "SCHEMA_VIOLATION"],
  ["attributes.a=1e999", "SCHEMA_VIOLATION"],
  ["attributes.a=%22open", "SCHEMA_VIOLATION"],
  ["attributes.a/b=1", "INVALID_NAME"],
  ["attributes.=1", "INVALID_NAME"],
  ["__proto__=1", "SCHEMA_VIOLATION"],
  ["constructor=1", "SCHEMA_VIOLATION"],
  ["workflow=..", "INVALID_NAME"],
  ["workflow=a%00", "INVALID_NAME"],
  ["cursor=", "INVALID_CURSOR"],
  [`cursor=${"a".repeat(2_049)}`, "INVALID_CURSOR"],
  ["startedAfter=yesterday", "INVALID_DURATION"],
  ["workflow=%ff", "MALFORMED_REQUEST"],
  ["%", "MALFORMED_REQUEST"],
];

for (const [query, code] of refused) {
  test(`"${query.slice(0, 40)}" is refused with ${code}`, () => {
    assert.throws(
      () => readQuery(list, query),
      (error) => error instanceof WovyrError && error.code === code,
    );
  });
}

test("a wait is a duration of the SDK's grammar, a bare number is milliseconds, and it is capped at a minute", () => {
  assert.equal(readQuery(wait, "wait=1500").wait, 1_500);
  assert.equal(readQuery(wait, "wait=1.5s").wait, 1_500);
  assert.equal(readQuery(wait, "wait=PT2S").wait, 2_000);
  assert.equal(readQuery(wait, "wait=0").wait, 0);
  assert.equal(readQuery(wait, "wait=3+days").wait, 60_000);
  for (const text of ["soon", "-1", "1e3", ""]) {
    assert.throws(
      () => readQuery(wait, `wait=${encodeURIComponent(text)}`),
      (error) => error instanceof WovyrError && error.code === "INVALID_DURATION",
    );
  }
});

function refusal(act: () => unknown): ApiError {
  try {
    act();
  } catch (error) {
    assert.ok(error instanceof ApiError);
    return error;
  }
  return assert.fail("nothing was refused");
}
