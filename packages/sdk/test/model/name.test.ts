import assert from "node:assert/strict";
import { describe, it } from "node:test";
import fc from "fast-check";
import { checkName } from "../../src/model/name.ts";

describe("a name", () => {
  for (const name of ["a", "order-42", "a.b:c~d@e_f", "...", "-", "0", "x".repeat(255)]) {
    it(`is taken: ${name.slice(0, 20)}`, () => assert.equal(checkName(name, "the id"), name));
  }
  for (const name of ["", ".", "..", " a", "a b", "a/b", "ä", "a\u0000", "a\n", "%2e", "x".repeat(256), undefined, null, 5, {}]) {
    it(`H077 is refused: ${JSON.stringify(name)?.slice(0, 20)}`, () => {
      assert.throws(
        () => checkName(name, "the id of a child"),
        (error: Error & { code: string }) =>
          error.code === "INVALID_NAME" && /^the id of a child must be 1 to 255/.test(error.message) && error.message.length < 400,
      );
    });
  }
  it("is taken or refused, and needs no escaping in a URL path when taken", () => {
    fc.assert(
      fc.property(fc.string({ unit: "binary" }), (text) => {
        try {
          assert.equal(new URL(`http://x/${checkName(text, "the id")}/y`).pathname, `/${text}/y`);
        } catch (error) {
          assert.equal((error as { code?: string }).code, "INVALID_NAME");
        }
      }),
    );
  });
});
