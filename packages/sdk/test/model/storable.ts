import fc from "fast-check";

const key = fc.oneof(
  fc.string({ maxLength: 6 }),
  fc.constantFrom("__proto__", "constructor", "prototype", "then", "toJSON", "length", "0", "kind"),
);

/** Every kind of value that a payload holds, nested. */
export const storable: fc.Arbitrary<unknown> = fc.letrec((tie) => ({
  leaf: fc.oneof(
    fc.constantFrom(
      null,
      undefined,
      true,
      false,
      0,
      -0,
      Number.NaN,
      Number.POSITIVE_INFINITY,
      Number.NEGATIVE_INFINITY,
      1e21,
      "",
      "\ud800",
      "\u0000",
    ),
    fc.integer(),
    fc.double(),
    fc.string({ unit: "binary" }),
    fc.bigInt(),
    fc.date({ noInvalidDate: false }),
    fc.uint8Array({ maxLength: 20 }),
    fc.float64Array({ maxLength: 5 }),
    fc.bigInt64Array({ maxLength: 3 }),
    fc.uint8Array({ maxLength: 20 }).map((bytes) => bytes.slice().buffer),
    fc.constantFrom(/a/g, /[<>&"']\//iu, new URL("https://example.com/a?b=c#d")),
  ),
  value: fc.oneof(
    { depthSize: "small", withCrossShrink: true },
    tie("leaf"),
    fc.array(tie("value"), { maxLength: 4 }),
    fc.sparseArray(tie("value"), { maxLength: 6, maxNumElements: 3 }),
    fc.dictionary(key, tie("value"), { maxKeys: 4, noNullPrototype: false }),
    fc.array(fc.tuple(tie("value"), tie("value")), { maxLength: 3 }).map((entries) => new Map(entries)),
    fc.array(tie("value"), { maxLength: 3 }).map((items) => new Set(items)),
  ),
})).value;

/** Every kind of error that may be thrown or stored. */
export const storableError: fc.Arbitrary<Error> = fc.letrec<{ error: Error }>((tie) => ({
  error: fc
    .record({
      message: fc.string({ unit: "binary", maxLength: 20 }),
      kind: fc.constantFrom(Error, TypeError, RangeError),
      name: fc.option(fc.string({ minLength: 1, maxLength: 10 }), { nil: undefined }),
      code: fc.option(fc.oneof(fc.string({ maxLength: 10 }), fc.integer()), { nil: undefined }),
      fields: fc.dictionary(fc.stringMatching(/^[a-z]{1,6}$/), storable, { maxKeys: 3 }),
      cause: fc.option(fc.oneof({ depthSize: "small" }, tie("error"), storable as fc.Arbitrary<Error>), { nil: undefined }),
    })
    .map(({ message, kind: Kind, name, code, fields, cause }) => {
      const error = cause === undefined ? new Kind(message) : new Kind(message, { cause });
      const { name: _n, message: _m, stack: _s, cause: _c, code: _o, ...rest } = fields as Record<string, unknown>;
      return Object.assign(error, rest, name !== undefined && { name }, code !== undefined && { code });
    }),
})).error;
