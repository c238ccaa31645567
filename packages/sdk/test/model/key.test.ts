import assert from "node:assert/strict";
import { test } from "node:test";
import type { WovyrError } from "../../src/index.ts";
import { keyOf } from "../../src/model/concurrency.ts";
import { checkEventKey } from "../../src/model/event-key.ts";

test("a key that is none is refused with what it is instead", () => {
  const said: readonly (readonly [key: unknown, what: string])[] = [
    [undefined, "undefined"],
    [null, "null"],
    [5, "a value of type number"],
    [Promise.resolve("a"), "a promise"],
    ["", "an empty text"],
    ["x".repeat(256), "a text of 256 characters"],
    ["a\n", "a text that holds control characters or halves of a character"],
    ["\ud800", "a text that holds control characters or halves of a character"],
  ];
  for (const [key, what] of said)
    for (const check of [() => keyOf(() => key as string, undefined, "the key"), () => checkEventKey(key, "event x")])
      assert.throws(check, (error: WovyrError) => error.code === "INVALID_OPTION" && error.message.endsWith(`, not ${what}`));
  assert.equal(
    keyOf(() => "ä/☃ ", undefined, "the key"),
    "ä/☃ ",
  );
});
