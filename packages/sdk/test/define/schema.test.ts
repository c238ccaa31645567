import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { Kind, Type } from "@sinclair/typebox";
import { type } from "arktype";
import * as v from "valibot";
import { z } from "zod";
import { checkSchema, checkWorks, jsonSchemaOf, parse, type Schema } from "../../src/define/schema.ts";
import { ValidationError, type WovyrError } from "../../src/model/errors.ts";

const Order = Type.Object({
  id: Type.String(),
  total: Type.Number({ minimum: 0 }),
  lines: Type.Array(Type.Object({ "a/b~c": Type.Number() })),
});

function refusal(schema: Schema, value: unknown): ValidationError {
  try {
    parse(schema, value, "the input of activity reserve");
  } catch (error) {
    assert.ok(error instanceof ValidationError, String(error));
    return error;
  }
  throw new assert.AssertionError({ message: "it was accepted" });
}

describe("a TypeBox schema", () => {
  it("gives the value itself, neither coerced nor completed", () => {
    const value = { id: "1", total: 1, lines: [], extra: true };
    assert.equal(parse(Order, value, "x"), value);
    assert.equal(refusal(Type.Number(), "5").code, "INVALID_INPUT");
    assert.deepEqual(parse(Type.Object({ a: Type.Optional(Type.String({ default: "x" })) }), {}, "x"), {});
  });

  it("says where a value does not fit", () => {
    const error = refusal(Order, { id: 1, total: -1, lines: [{ "a/b~c": "x" }] });
    assert.deepEqual(
      error.violations.map(({ pointer }) => pointer),
      ["/id", "/total", "/lines/0/a~1b~0c"],
    );
    assert.match(error.message, /^the input of activity reserve does not fit its schema: \/id: Expected string; \/total: /);
    assert.match(refusal(Order, 5).message, /schema: the value: Expected object/);
  });

  it("lists 5 violations in the message and 100 in all", () => {
    const error = refusal(
      Type.Array(Type.Number()),
      Array.from({ length: 1_000 }, () => "x"),
    );
    assert.equal(error.violations.length, 100);
    assert.equal(error.message.match(/Expected number/g)?.length, 5);
    assert.match(error.message, /; and 95 more$/);
  });

  it("may use formats", () => {
    const good: Record<string, string[]> = {
      email: ["a@b.co", "a.b+c@d.e.f"],
      uuid: ["123e4567-e89b-12d3-a456-426614174000"],
      date: ["2024-02-29"],
      time: ["23:59:59.5Z", "12:00:00+02:00"],
      "date-time": ["2024-02-29T12:00:00Z", "2024-02-29T12:00:00.123-05:30"],
      uri: ["https://a.b/c?d#e", "urn:isbn:5"],
      ipv4: ["1.2.3.4", "255.255.255.255"],
      ipv6: ["::1", "2001:db8::ff00:42:8329", "::ffff:1.2.3.4"],
    };
    const bad: Record<string, string[]> = {
      email: ["", "a", "@b.c", "a@b", "a b@c.d", "a@b..c"],
      uuid: ["123", "123e4567-e89b-12d3-a456-42661417400g"],
      date: ["2023-02-29", "2024-13-01", "2024-2-9", "x"],
      time: ["24:00:00Z", "12:00Z", "12:00:00"],
      "date-time": ["2024-02-30T12:00:00Z", "2024-02-29", "2024-02-29T12:00:00"],
      uri: ["/a", "a b:c", "https://"],
      ipv4: ["1.2.3", "1.2.3.256", "1.2.3.4.", "a"],
      ipv6: [":::", "1", "::g", "1.2.3.4"],
    };
    for (const [format, texts] of Object.entries(good))
      for (const text of texts) assert.equal(parse(Type.String({ format }), text, "x"), text);
    for (const [format, texts] of Object.entries(bad)) for (const text of texts) refusal(Type.String({ format }), text);
  });

  it("is at fault itself when it uses an unknown format or kind", () => {
    for (const schema of [Type.String({ format: "colour" }), Type.Unsafe<string>({ type: "string" })]) {
      assert.throws(
        () => parse(schema, "red", "the input of activity paint"),
        (error: WovyrError) =>
          error.code === "INVALID_DEFINITION" &&
          !(error instanceof ValidationError) &&
          error.message.includes("the input of activity paint"),
      );
    }
  });

  it("is told so before there is a value, wherever in it the format is", () => {
    const deep = Type.Object({ paint: Type.Optional(Type.Union([Type.Number(), Type.Array(Type.String({ format: "colour" }))])) });
    const told = /the schema of output of activity "mix" uses the format "colour".*FormatRegistry\.Set\("colour"/;
    assert.throws(() => checkWorks(deep, 'output of activity "mix"'), { code: "INVALID_DEFINITION", message: told });
    const shade = { [Kind]: "Shade" } as unknown as Schema;
    assert.throws(() => checkWorks(shade, "x"), { code: "INVALID_DEFINITION", message: /of the kind "Shade".*TypeRegistry\.Set\("Shade"/ });
    // Not every `format` is one.
    const named = Type.Object(
      { format: Type.String() },
      { default: { format: "colour" }, examples: [{ [Kind]: "Number", format: "colour" }] },
    );
    checkWorks(named, "x");
    assert.deepEqual(parse(named, { format: "A4" }, "x"), { format: "A4" });
    checkWorks(undefined, "x");
    checkWorks(z.string(), "x");
  });

  it("H076 does not fall for a cycle or a getter that throws", () => {
    const Node = Type.Recursive((Self) => Type.Object({ next: Self }));
    const node: { next?: unknown } = {};
    node.next = node;
    assert.match(refusal(Node, node).message, /cannot be read/);
    const getter = Object.defineProperty({}, "id", {
      enumerable: true,
      get() {
        throw new Error("locked");
      },
    });
    assert.match(refusal(Order, getter).message, /locked/);
  });
});

describe("a Standard Schema", () => {
  it("gives its output: defaults, coercion, transforms", () => {
    assert.deepEqual(parse(z.object({ n: z.coerce.number(), d: z.string().default("x") }), { n: "5" }, "x"), { n: 5, d: "x" });
    assert.deepEqual(parse(v.object({ a: v.optional(v.string(), "x") }), {}, "x"), { a: "x" });
    assert.deepEqual(parse(type({ name: "string" }), { name: "n" }, "x"), { name: "n" });
  });

  const schemas: Record<string, Schema> = {
    zod: z.object({ list: z.array(z.object({ "a/b": z.number() })) }),
    valibot: v.object({ list: v.array(v.object({ "a/b": v.number() })) }),
    arktype: type({ list: type({ "a/b": "number" }).array() }),
  };
  for (const [library, schema] of Object.entries(schemas)) {
    it(`says where a value does not fit: ${library}`, () => {
      const error = refusal(schema, { list: [{ "a/b": "x" }] });
      assert.equal(error.violations[0]?.pointer, "/list/0/a~1b");
      assert.match(error.message, /does not fit its schema: \/list\/0\/a~1b: /);
    });
  }

  it("is refused when it validates asynchronously, and leaves no rejection behind", async () => {
    const rejects = async () => {
      throw new Error("late");
    };
    const rejecting = { "~standard": { version: 1, vendor: "own", validate: rejects } } as unknown as Schema;
    for (const schema of [
      z.string().refine(async () => true),
      v.pipeAsync(
        v.string(),
        v.checkAsync(async () => true),
      ),
      rejecting,
    ]) {
      assert.throws(() => parse(schema, "x", "the input of workflow w"), {
        code: "INVALID_DEFINITION",
        message: /^the schema of the input of workflow w answers with a promise/,
      });
    }
    await new Promise((resolve) => setImmediate(resolve));
  });

  it("says why when it throws, if its library lets it through", () => {
    const validate = () => {
      throw new Error("parser bug");
    };
    const schema = { "~standard": { version: 1, vendor: "own", validate } } as unknown as Schema;
    assert.match(refusal(schema, "x").message, /the schema threw \(parser bug\)/);
    const transform = z.string().transform(validate); // zod answers with a promise then
    assert.throws(() => parse(transform, "x", "the input"), { code: "INVALID_DEFINITION", message: /one of its functions threw/ });
  });
});

describe("any schema", () => {
  it("may be missing", () => {
    const value = { a: 1 };
    assert.equal(parse(undefined, value, "x"), value);
  });

  it("gives the code that is asked for", () => {
    assert.throws(() => parse(Type.String(), 5, "x", "INVALID_OUTPUT"), { code: "INVALID_OUTPUT" });
  });

  it("is recognised", () => {
    for (const schema of [undefined, Order, z.string(), v.string(), type("string")]) checkSchema(schema, "x");
    for (const schema of [null, 5, "string", {}, { type: "string" }, () => 1, String]) {
      assert.throws(() => checkSchema(schema, "the input of activity a"), {
        code: "INVALID_DEFINITION",
        message: /^the input of activity a must be a TypeBox schema/,
      });
    }
  });

  it("gives its JSON Schema where it can", () => {
    assert.equal(jsonSchemaOf(Order), Order);
    const own = {
      "~standard": {
        version: 1,
        vendor: "own",
        validate: (value: unknown) => ({ value }),
        jsonSchema: { input: ({ target }: { target: string }) => ({ target }) },
      },
    };
    assert.deepEqual(jsonSchemaOf(own as unknown as Schema), { target: "draft-2020-12" });
    assert.equal((jsonSchemaOf(type({ name: "string" })) as { type?: string }).type, "object");
    assert.equal(jsonSchemaOf(v.string()), null);
    const throwing = {
      "~standard": {
        ...own["~standard"],
        jsonSchema: {
          input() {
            throw new Error("cannot be expressed");
          },
        },
      },
    };
    assert.equal(jsonSchemaOf(throwing as unknown as Schema), null);
  });
});
